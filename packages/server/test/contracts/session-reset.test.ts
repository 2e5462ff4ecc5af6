import { afterAll, beforeAll, expect, test } from 'bun:test'
import { SessionReset } from '@ringwire/protocol/events/auth'
import { createValidator } from '@ringwire/protocol/validate'
import { createMemorySessions } from '../../src/adapters/memory/sessions.ts'
import type { Participant } from '../../src/call/call.ts'
import { absenceOf } from '../../src/call/peers.ts'
import { type Arriving, createArrivals } from '../../src/services/arrivals.ts'
import { createCalls } from '../../src/services/calls.ts'
import { createDelivery } from '../../src/services/delivery.ts'
import { createEndQuality } from '../../src/services/end-quality.ts'
import { createRelay } from '../../src/services/relay.ts'
import { newSessionId } from '../../src/session/session-id.ts'
import { createSteadyClock } from '../../src/time/steady-clock.ts'
import { durations } from './call-life.ts'
import { createSocket, type Socket } from './session-parts.ts'
import { openHarness, type SqliteHarness } from './sqlite-harness.ts'

/** A store of logs that is emptied under live sockets, with the services that stand on it [RES4]. */
let database: SqliteHarness
beforeAll(async () => {
  database = await openHarness()
})
afterAll(() => database.close())

const ann: Participant = { product: 'shop', role: 'customer', userId: 'ann' }
const ben: Participant = { product: 'shop', role: 'agent', userId: 'ben' }
const clock = { now: Date.now, monotonic: () => performance.now() }

function compose() {
  const store = database.store()
  const products = database.stores().products
  const resets: Promise<void>[] = []
  const failures: unknown[] = []
  const steady = createSteadyClock(clock)
  const sessions = createMemorySessions({
    windowMs: 120_000,
    resumeWindowMs: 120_000,
    onLogLost: (session, epoch, ringing) => void resets.push(arrivals.reset(session, epoch, ringing)),
  })
  const delivery = createDelivery({
    sessions,
    now: steady.now,
    stepsAfter: (ref, version) => store.stepsAfter(ref, version),
    isHeldElsewhere: () => false,
    tell() {},
    onApplied() {},
    onError: (error) => void failures.push(error),
  })
  const nodes = { self: 'one', isDead: () => false, others: () => [], tell: () => {} }
  const limits = { invite: async () => ({ ok: true }) as const, refundInvite: async () => {} }
  const uptime = { outages: () => [], doubt: () => {} }
  const recorder = { record() {}, relayed() {} }
  const withQuality = createEndQuality({ hearsEnds: () => false, qualityAtEnd: async () => null })
  const given = {
    store,
    products,
    sessions,
    nodes,
    delivery,
    limits,
    uptime,
    recorder,
    withQuality,
    clock: steady,
    durations,
  }
  const onError = (error: unknown) => void failures.push(error)
  const calls = createCalls({ ...given, ringTimeoutMs: 45_000, maxRinging: 5, onCommitted() {}, onTold() {}, onError })
  const arrivals = createArrivals({
    store,
    sessions,
    delivery,
    calls,
    recorder,
    clock: steady,
    absenceOf: (call, side) => absenceOf(call, side, durations),
    onError,
  })
  const lose = async () => {
    sessions.loseLogs()
    await Promise.all(resets)
  }
  return {
    sessions,
    calls,
    arrivals,
    relay: createRelay({
      calls,
      delivery,
      sessions,
      isShared: false,
      isRelayOnly: () => false,
      onPassed() {},
      recorder,
    }),
    lose,
    failures,
  }
}
type Composed = ReturnType<typeof compose>

interface Person {
  readonly session: Arriving
  readonly socket: Socket
  readonly epoch: string
}

async function arrive({ arrivals, sessions }: Composed, participant: Participant, peerRole: string): Promise<Person> {
  const session = {
    participant,
    sessionId: newSessionId(participant),
    deviceId: 'phone',
    node: 'one',
    displayName: participant.userId,
    allowedActions: ['call.invite'],
    allowedPeerRoles: [peerRole],
    contextType: 'order',
    contextId: '1',
    extended: true,
  }
  const socket = createSocket()
  const { epoch } = await arrivals.arrive(session, socket, undefined)
  sessions.ready(session.sessionId)
  return { session, socket, epoch }
}

/** An answered call between two extended sessions. */
async function talk(composed: Composed) {
  const caller = await arrive(composed, { ...ann, userId: crypto.randomUUID() }, 'agent')
  const callee = await arrive(composed, { ...ben, userId: crypto.randomUUID() }, 'customer')
  const { userId, role } = callee.session.participant
  const invited = await composed.calls.invite(caller.session, { callee_user_id: userId, callee_role: role })
  if (!invited.ok) throw new Error(invited.error.code)
  const { call_uuid } = invited.value
  await composed.calls.verb(callee.session, 'accept', call_uuid, null)
  return { caller, callee, call_uuid }
}

const lastOf = ({ socket }: Person) => socket.told.at(-1)

function resetOf(person: Person): SessionReset {
  const reset = lastOf(person)
  if (reset?.event !== 'session.reset') throw new Error(`no reset, but ${reset?.event}`)
  return reset.data as unknown as SessionReset
}

test('[RES4] session.reset is the first of the new log, and says what is true now', async () => {
  const composed = compose()
  const { caller, callee, call_uuid } = await talk(composed)
  await composed.lose()
  for (const [person, direction] of [
    [caller, 'outgoing'],
    [callee, 'incoming'],
  ] as const) {
    const reset = lastOf(person)
    expect(reset).toMatchObject({ event: 'session.reset', seq: 1 })
    expect(reset).not.toHaveProperty('version')
    const data = resetOf(person)
    expect(createValidator(SessionReset)(data).ok).toBe(true)
    expect(data).toMatchObject({
      session_id: person.session.sessionId,
      active_calls: [{ call_uuid, status: 'accepted', version: 2, direction, holds_place: true }],
    })
    expect(data.epoch).not.toBe(person.epoch)
  }
  expect(composed.failures).toEqual([])
})

test('[RES4] after it the session goes on: pushes, and a resume under the new epoch', async () => {
  const composed = compose()
  const { caller, callee, call_uuid } = await talk(composed)
  await composed.lose()
  const { epoch } = resetOf(caller)
  const sdp = { call_uuid, sdp: { type: 'answer', sdp: '' } }
  expect(await composed.relay.relay(callee.session, 'webrtc.answer', sdp, undefined)).toBe('accepted')
  expect(lastOf(caller)).toMatchObject({ event: 'webrtc.answer', seq: 2 })

  await composed.arrivals.leave(caller.session, caller.socket, { closed: false, forGood: false, cause: 'lost' })
  expect((await composed.calls.verb(callee.session, 'end', call_uuid, null)).ok).toBe(true)
  const { sessionId } = caller.session
  const comeBack = async (named: string, seq: number) => {
    const socket = createSocket()
    const session = { ...caller.session, sessionId: newSessionId(caller.session.participant) }
    const arrival = await composed.arrivals.arrive(session, socket, { sessionId, epoch: named, seq })
    composed.sessions.ready(arrival.sessionId)
    return { arrival, socket }
  }
  const back = await comeBack(epoch, 1)
  expect(back.arrival).toMatchObject({ sessionId, recovered: true, epoch, activeCalls: [] })
  expect(back.socket.told.map(({ event, seq }) => [event, seq])).toEqual([
    ['webrtc.answer', 2],
    ['call.ended', 3],
  ])
  const before = await comeBack(caller.epoch, 1)
  expect(before.arrival.recovered).toBe(false)
})

test('[RES4] nobody without a socket is told, and nobody comes back as if nothing had been lost', async () => {
  const composed = compose()
  const { caller, callee, call_uuid } = await talk(composed)
  const told = caller.socket.told.length
  await composed.arrivals.leave(caller.session, caller.socket, { closed: false, forGood: false, cause: 'lost' })
  await composed.lose()
  expect(caller.socket.told).toHaveLength(told)
  expect(lastOf(callee)?.event).toBe('session.reset')
  const session = { ...caller.session, sessionId: newSessionId(caller.session.participant) }
  const request = { sessionId: caller.session.sessionId, epoch: caller.epoch, seq: told }
  const arrival = await composed.arrivals.arrive(session, createSocket(), request)
  expect(arrival).toMatchObject({ sessionId: session.sessionId, recovered: false })
  // The place is its own all the same [RES2].
  expect(arrival.activeCalls).toMatchObject([{ call_uuid, holds_place: true }])
})

test('[WS5] [RES4] a reset says nothing of a call that began past the end of the token, until the session has a new one', async () => {
  const composed = compose()
  const caller = await arrive(composed, { ...ann, userId: crypto.randomUUID() }, 'agent')
  const callee = await arrive(composed, { ...ben, userId: crypto.randomUUID() }, 'customer')
  await composed.arrivals.renew(callee.session, Date.now() - 1_000)
  const { userId, role } = callee.session.participant
  const invited = await composed.calls.invite(caller.session, { callee_user_id: userId, callee_role: role })
  expect(invited).toMatchObject({ ok: true, value: { delivered: false } })
  await composed.lose()
  expect(callee.socket.told.map(({ event }) => event)).toEqual(['session.reset'])
  expect(resetOf(callee).active_calls).toEqual([])
  await composed.arrivals.renew(callee.session, Date.now() + 60_000)
  expect(lastOf(callee)?.event).toBe('call.ringing')
  expect(composed.failures).toEqual([])
})
