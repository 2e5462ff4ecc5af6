import { beforeEach, expect, test } from 'bun:test'
import {
  type AnsweredCall,
  type Call,
  type CallRef,
  callKey,
  type LiveCall,
  type OverCall,
  type RingingCall,
} from '../call/call.ts'
import { actorOf, durations } from '../call/decide.fixture.ts'
import { decide } from '../call/decide.ts'
import { acceptedData, type Notice, overData, ringingData, type Step } from '../call/effects.ts'
import { firstTurn } from '../call/turns.ts'
import { accepted, created, ended, participant, ringing, transferring } from '../ports/call-store.fixture.ts'
import type { LeftRow } from '../ports/outbox.ts'
import type { Push } from '../ports/push.ts'
import { openSink, stepsOf } from '../ports/sessions.fixture.ts'
import type { SessionStep, Sessions } from '../ports/sessions.ts'
import { SessionMovedError, StoreError } from '../ports/store-error.ts'
import { createMemorySessions } from '../stores/memory/sessions.ts'
import { createDelivery } from './delivery.ts'

/** Right after the calls of these tests have ended. */
const justOver = 1_000_000 + 5_001
let time = justOver
/** The rows of the call in the outbox, and the rows that were reported as done. */
let left: LeftRow[]
let toldRows: number[]
beforeEach(() => {
  time = justOver
  left = []
  toldRows = []
})
/** The versions that are left, each in the row of ten times its number. */
const leave = (...versions: readonly number[]) => {
  left = versions.map((version) => ({ row: version * 10, version }))
}

/** A callee with one session, and the pushes that it got. */
function setUp(openedAt = 0, onRang?: (call: Call, members: number) => void) {
  const sessions = createMemorySessions({ windowMs: 120_000, resumeWindowMs: 120_000 })
  const callee = participant('callee', 'doctor')
  const told: string[] = []
  sessions.open(
    { sessionId: 's', participant: callee, deviceId: null, extended: false },
    openSink({ send: (text) => told.push(JSON.parse(text).event) }),
    openedAt,
  )
  sessions.ready('s')
  const committed: Step[] = []
  const failures: unknown[] = []
  const broken = { on: false }
  /** Rings wait for it on their way; they may arrive and nobody hears of that. */
  const way: { until?: Promise<void>; isUnknown?: boolean } = {}
  /** After which versions the steps were read, and the answer of the store instead. */
  const reads: number[] = []
  const reading: { instead?: Promise<readonly Step[]> } = {}
  const away = () => Promise.reject(new StoreError('unavailable', 'away'))
  const delivery = createDelivery({
    unjumped: (_, at) => at,
    sessions: {
      ...sessions,
      async appendLive(...how) {
        if (broken.on) await away()
        await way.until
        const count = await sessions.appendLive(...how)
        if (way.isUnknown) throw new StoreError('unknown', 'no answer')
        return count
      },
    },
    now: () => time,
    stepsAfter(_, version) {
      reads.push(version)
      return reading.instead ?? committed.filter(({ call }) => call.version > version)
    },
    isHeldElsewhere: ({ node }) => node === 'elsewhere',
    leftOf: () => left,
    load: () => undefined,
    onToldLeft(rows) {
      left = left.filter(({ row }) => !rows.some((gone) => gone.row === row))
    },
    nodes: { tell() {}, told() {} },
    onApplied: () => {},
    onRang,
    onError: (error) => void failures.push(error),
  })
  const call = ringing(participant('caller'), callee)
  const invited = withNotice(created(call), 'call.ringing', ringingData(call, call.startedAt))
  const over = ended(call)
  if (over.call.status === 'ringing' || !('endedAt' in over.call)) throw new Error('unreachable')
  /** As the store does: with each step a row of the outbox. */
  function commit(...steps: readonly Step[]): void {
    committed.push(...steps)
    leave(...steps.map(({ call }) => call.version))
  }
  /** As a committing process: a step that has reached everybody is not left any more. */
  async function apply(step: Step): Promise<void> {
    if (!committed.some(({ call }) => call.version === step.call.version)) {
      committed.push(step)
      left.push({ row: step.call.version * 10, version: step.call.version })
    }
    if (await delivery.apply(step)) left = left.filter(({ version }) => version !== step.call.version)
  }
  /** A call rings, at these members of a group where there are some. */
  async function withMembers(call: RingingCall, members: readonly string[] | undefined, { event }: Step) {
    const group = members === undefined ? call.group : { name: 'all', members, declined: [] }
    left = []
    committed.length = 0
    await apply({ call: { ...call, ...(group !== undefined && { group }) }, event })
  }
  return {
    delivery,
    sessions,
    told,
    commit,
    apply,
    withMembers,
    broken,
    way,
    reads,
    reading,
    call,
    invited,
    final: withNotice(over, 'call.ended', overData(over.call, null)),
  }
}

function withNotice(step: Step, event: 'call.ringing' | 'call.ended', data: object): Step {
  const notice = { to: { place: 'rung', except: [] }, event, data } as Step['event']['notices'][number]
  return { ...step, event: { ...step.event, notices: [notice] } }
}

test('a read that overtakes the answer to a commit does not swallow its notices', async () => {
  const { delivery, told, apply, call, invited, final } = setUp()
  delivery.learn(call)
  await apply(invited)
  await apply(invited)
  expect(told).toEqual(['call.ringing'])
  delivery.learn(final.call)
  expect(delivery.known.get(callKey(call))?.version).toBe(2)
  await apply(final)
  await apply(final)
  expect(told).toEqual(['call.ringing', 'call.ended'])
})

test('[GROUP1] an answer that is told when the call is over stops the ring at the other members', async () => {
  const { sessions, delivery, told, commit, apply, call: of, invited } = setUp()
  const answering = actorOf(participant('eve', 'doctor'))
  const { sessionId } = answering
  sessions.open({ sessionId, participant: answering.participant, deviceId: null, extended: false }, openSink({}), 0)
  sessions.ready(sessionId)
  const group = { name: 'all', members: ['callee', 'eve'], declined: [] }
  const call: RingingCall = { ...of, callee: { ...of.callee, userId: '' }, group }
  await apply({ ...invited, call })
  expect(told).toEqual(['call.ringing'])
  const [answer] = decide(call, { type: 'accept', actor: answering }, time, durations).steps
  const [end] = decide(answer?.call, { type: 'end', actor: answering, reason: null }, time, durations).steps
  if (answer === undefined || end === undefined) throw new Error('unreachable')
  // As a store has it by then: each event with the call as it is.
  commit({ call: { ...end.call, version: answer.call.version }, event: answer.event }, end)
  expect(await delivery.catchUp(end.call)).toBe('done')
  expect(told).toEqual(['call.ringing', 'call.cancelled'])
})

test('[TRACE1] [GROUP1] how many people had a session is said of a call that rings at all of them at once', async () => {
  const rang: number[] = []
  const { call: of, invited, withMembers } = setUp(0, (_, people) => rang.push(people))
  const others = { ...of, callUuid: crypto.randomUUID() }
  await withMembers(of, ['callee', 'eve', 'dan'], invited)
  const turns = { ...firstTurn(5_000, 0), member: 'callee' }
  const inTurn: RingingCall = { ...others, group: { name: 'all', members: ['callee'], declined: [], turns } }
  await withMembers(inTurn, undefined, invited)
  expect(rang).toEqual([1])
  await withMembers({ ...of, callUuid: crypto.randomUUID() }, undefined, invited)
  const absent = { ...of.callee, userId: 'dan' }
  await withMembers({ ...of, callUuid: crypto.randomUUID(), callee: absent }, undefined, invited)
  expect(rang).toEqual([1, 1, 0])
})

test('[ORD2] [REL2] what the callee sends waits for the answer, also where nobody could tell of that yet', async () => {
  const { sessions, told, apply, call, invited } = setUp()
  const { callee, callUuid } = call
  const place = { ...call.callerPlace, sessionId: 's' }
  const mine: RingingCall = { ...call, caller: callee, callee: call.caller, callerPlace: place }
  await apply({ ...invited, call: mine, event: { ...invited.event, notices: [] } })
  const relay = JSON.stringify({ event: 'webrtc.answer', data: { call_uuid: callUuid } })
  const push: Push = { kind: 'relay', call: callKey(mine), version: undefined, text: relay, forPlace: true }
  expect(await sessions.append('s', push)).toBe('kept')
  const step = accepted(mine)
  const notice: Notice = { to: { place: 'caller' }, event: 'call.accepted', data: acceptedData(step.call) }
  await apply({ ...step, event: { ...step.event, notices: [notice] } })
  expect(told).toEqual(['call.accepted', 'webrtc.answer'])
})

/** A ring on its way, of which others commit the rest meanwhile. */
function setUpRing(change: (step: Step) => Step = (step) => step, rest?: (ring: Call) => readonly Step[]) {
  const set = setUp()
  const caller = { sessionId: 'session-1', participant: participant('caller'), deviceId: null, extended: false }
  set.sessions.open(caller, openSink({}), 0)
  const { promise: arrival, resolve: arrive } = Promise.withResolvers<void>()
  const ring = change(set.invited)
  time = ring.call.startedAt
  set.way.until = arrival
  const rung = set.apply(ring)
  set.commit(ring, ...(rest?.(ring.call) ?? [set.final]))
  return { ...set, rung, arrive }
}

test('[RING1] a ring that comes after another node has told of the end stops again', async () => {
  for (const how of ['learn', 'hear', 'catchUp'] as const) {
    const { delivery, told, reads, final, rung, arrive } = setUpRing()
    // If it does not ring yet, the other node delivers nothing.
    delivery.hear(callKey(final.call), 2)
    if (how === 'learn') delivery.learn(final.call)
    const caughtUp = how === 'catchUp' && delivery.catchUp(final.call)
    arrive()
    await rung
    await caughtUp
    await untilTold(told, 2)
    expect(told).toEqual(['call.ringing', 'call.ended'])
    expect(reads).toEqual([1])
  }
})

/** In these tests a step that nobody waits for takes no time of its own. */
async function untilTold(told: readonly string[], count: number): Promise<void> {
  for (let turns = 0; told.length < count && turns < 100; turns++) await Promise.resolve()
}

test('[RING1] an answer to a ring that has arrived costs no look, and neither does what was known before', async () => {
  const { delivery, told, reads, apply, invited, final } = setUp()
  time = invited.call.startedAt
  await apply(invited)
  await apply(final)
  delivery.learn(final.call)
  delivery.hear(callKey(final.call), 2)
  await delivery.catchUp(final.call)
  expect(told).toEqual(['call.ringing', 'call.ended'])
  expect(reads).toEqual([])
  const own = setUpRing()
  own.delivery.learn(own.invited.call)
  own.delivery.hear(callKey(own.final.call), 1)
  own.arrive()
  await own.rung
  expect(own.reads).toEqual([])
})

test('[RING1] a ring that may have arrived without an answer is looked after once, and then it is done', async () => {
  const { delivery, told, reads, way, final, rung, arrive } = setUpRing()
  way.isUnknown = true
  delivery.learn(final.call)
  delivery.hear(callKey(final.call), 2)
  arrive()
  await rung
  await untilTold(told, 2)
  expect(told).toEqual(['call.ringing', 'call.ended'])
  delivery.hear(callKey(final.call), 3)
  await delivery.retry()
  expect(reads).toEqual([1])
})

test('[RING1] nobody waits for the look, and it comes again where the store was away', async () => {
  const { delivery, told, reads, reading, apply, final, rung, arrive } = setUpRing()
  const { promise, reject } = Promise.withResolvers<readonly Step[]>()
  reading.instead = promise
  delivery.learn(final.call)
  delivery.hear(callKey(final.call), 2)
  arrive()
  await rung
  await apply(final)
  expect(told).toEqual(['call.ringing'])
  reject(new StoreError('unavailable', 'away'))
  reading.instead = undefined as never
  await Bun.sleep(0)
  await delivery.retry()
  await untilTold(told, 2)
  await delivery.retry()
  expect(told).toEqual(['call.ringing', 'call.ended'])
  expect(reads).toEqual([1, 1])
})

test('[RING1] [GROUP1] the ring of a turn stops again, too, and nobody stops who has its next turn', async () => {
  const group = { name: 'all', members: ['callee', 'other'], declined: [] }
  const inTurn = (call: Call, version: number, member: string | null): Call => ({
    ...{ ...call, version, callee: { ...call.callee, userId: '' } },
    group: { ...group, turns: { member, until: 0, memberRingMs: 1, next: 0, count: 1, hasRung: true, rang: [] } },
  })
  for (const [member, expected] of [
    [null, ['call.ringing', 'call.cancelled']],
    ['callee', ['call.ringing']],
  ] as const) {
    const to = { place: 'rung', except: [], member: 'callee' } as const
    const notice = { to, event: 'call.cancelled', data: { ended_at: null } } as unknown as Notice
    const { delivery, told, rung, arrive, call } = setUpRing(
      (step) => turnOf(step, inTurn(step.call, 1, 'callee')),
      (ring) => [
        { call: inTurn(ring, 2, null), event: { type: 'passed', at: time, by: null, notices: [notice] } },
        { call: inTurn(ring, 3, member), event: { type: 'turn', at: time, by: null, notices: [] } },
      ],
    )
    delivery.hear(callKey(call), 3)
    arrive()
    await rung
    await untilTold(told, 3)
    expect(told).toEqual([...expected])
  }
})

function turnOf(step: Step, call: Call): Step {
  const notices = step.event.notices.map((notice) => ({ ...notice, to: { ...notice.to, member: 'callee' } }) as Notice)
  return { call, event: { ...step.event, type: 'turn', notices } }
}

test('[RING1] where the place of the caller is elsewhere nobody says what was committed: it looks', async () => {
  const { reads, told, rung, arrive } = setUpRing((step) => {
    const call = step.call as RingingCall
    return { ...step, call: { ...call, callerPlace: { ...call.callerPlace, node: 'elsewhere' } } }
  })
  arrive()
  await rung
  await untilTold(told, 2)
  expect(told).toEqual(['call.ringing', 'call.ended'])
  expect(reads).toEqual([1])
})

test('[XFER1] who knows an old version of the first call tells of its end after the answer of the new one', async () => {
  const { sessions, told } = setUp()
  const place = { state: 'held', sessionId: 's', deviceId: null, node: 'node-1', settled: true } as const
  const [first, next] = transferring().map((call) => ({ ...call, callerPlace: place })) as [AnsweredCall, RingingCall]
  const over = ended(first)
  const answer = accepted(next)
  const toCaller = (step: Step, notice: Notice): Step => ({ ...step, event: { ...step.event, notices: [notice] } })
  const steps = [
    created(next),
    toCaller(answer, { to: { place: 'caller' }, event: 'call.accepted', data: acceptedData(answer.call) }),
    toCaller(
      { ...over, call: { ...over.call, transferredTo: next.callUuid } },
      { to: { place: 'caller' }, event: 'call.ended', data: overData(over.call as OverCall, null) },
    ),
  ]
  const stepsOfCall = ({ callUuid }: CallRef) => steps.filter(({ call }) => call.callUuid === callUuid)
  const delivery = createDelivery({
    unjumped: (_, at) => at,
    ...{ sessions, now: () => time, isHeldElsewhere: () => false, onToldLeft() {}, onApplied() {}, onError() {} },
    stepsAfter: (ref, version) => stepsOfCall(ref).filter(({ call }) => call.version > version),
    leftOf: (ref) => stepsOfCall(ref).map(({ call: { version } }) => ({ row: version, version })),
    load: (ref) => stepsOfCall(ref).at(-1)?.call,
    nodes: { tell() {}, told() {} },
  })
  expect(await delivery.catchUp(first)).toBe('done')
  expect(told).toEqual(['call.accepted', 'call.ended'])
})

test('versions that nobody handed on go first', async () => {
  const { delivery, told, commit, apply, invited, final } = setUp()
  commit(invited, final)
  await apply(final)
  expect(told).toEqual(['call.ringing', 'call.ended'])
  await apply(invited)
  await delivery.catchUp(final.call)
  expect(told).toEqual(['call.ringing', 'call.ended'])
})

test('[PLACE1] a call that is over for long does not ring, where nobody knows any more who has heard of it', async () => {
  const { delivery, told, commit, invited, final } = setUp()
  const over = withNotice(ended(invited.call as LiveCall), 'call.ringing', ringingData(invited.call as RingingCall, 0))
  commit({ ...invited, call: over.call }, final)
  time = justOver + 10_000
  expect(await delivery.catchUp(final.call)).toBe('done')
  expect(told).toEqual([])
})

test('[PLACE1] a call that was over before a session came does not ring there, whoever is late to tell of it', async () => {
  const { endedAt } = setUp().final.call as OverCall
  for (const [openedAt, names] of [
    [endedAt, ['call.ringing', 'call.ended']],
    [endedAt + 1, []],
  ] as const) {
    const { delivery, told, commit, invited, final } = setUp(openedAt)
    commit({ ...invited, call: { ...final.call, version: 1 } }, final)
    expect(await delivery.catchUp(final.call)).toBe('done')
    expect(told).toEqual([...names])
  }
})

test('what nobody handed on is found by who reads the call', async () => {
  const { delivery, told, commit, apply, invited, final } = setUp()
  await apply(invited)
  commit(final)
  await delivery.catchUp(final.call)
  expect(told).toEqual(['call.ringing', 'call.ended'])
})

test('while the sessions cannot be reached it is undelivered, until somebody catches up', async () => {
  const { delivery, told, apply, call, invited, broken } = setUp()
  expect([...delivery.undelivered]).toEqual([])
  broken.on = true
  await apply(invited)
  broken.on = false
  expect([...delivery.undelivered]).toEqual([callKey(call)])
  expect(await delivery.catchUp(invited.call)).toBe('done')
  expect([...delivery.undelivered]).toEqual([])
  expect(told).toEqual(['call.ringing'])
})

test('what was adopted at the start has been told before', () => {
  const { delivery, told, call, invited } = setUp()
  delivery.adopt(call as LiveCall, ['caller'])
  delivery.catchUp(invited.call)
  expect(told).toEqual([])
})

test('[ORD3] what was adopted at the start for one side may be left for the other', async () => {
  const { delivery, told, commit, call, invited } = setUp()
  commit(invited)
  delivery.adopt(call as LiveCall, [])
  await delivery.catchUp(invited.call)
  expect(told).toEqual(['call.ringing'])
})

test('a call that ended elsewhere, and nobody said so, is forgotten; one that has just begun is not', () => {
  const { delivery, call } = setUp()
  const key = callKey(call)
  delivery.learn(call)
  expect(delivery.sweep(0, new Set())).toEqual([])
  expect(delivery.sweep(0, new Set([callKey(call)]))).toEqual([])
  expect(delivery.sweep(0, new Set())).toEqual([])
  expect(delivery.known.has(key)).toBe(true)
  expect(delivery.sweep(0, new Set())).toEqual([call])
  expect(delivery.known.has(key)).toBe(false)
})

/** Over sessions of a test's own, which may be those of several nodes. */
function deliveryOver(sessions: Sessions, committed: readonly Step[], isHeldElsewhere = false) {
  return createDelivery({
    unjumped: (_, at) => at,
    sessions,
    now: () => time,
    stepsAfter: (_, version) => committed.filter((step) => step.call.version > version),
    isHeldElsewhere: () => isHeldElsewhere,
    leftOf: () => left,
    load: () => undefined,
    onToldLeft: (rows) => void toldRows.push(...rows.map(({ row }) => row)),
    nodes: { tell() {}, told() {} },
    onApplied() {},
    onError(error) {
      throw error
    },
  })
}

test('[PLACE2] what waits at a place of before goes along before anything that was missed is told', async () => {
  const order: string[] = []
  const first = accepted(ringing()).call
  if (first.status !== 'accepted') throw new Error('unreachable')
  const call: Call = { ...first, version: 3, calleePlace: { ...first.calleePlace, sessionId: 'after' } }
  const step = (version: number, event: Partial<Step['event']>): Step => ({
    call: { ...call, version },
    event: { type: 'place_taken', at: 0, by: null, notices: [], ...event },
  })
  const committed = [step(2, { type: 'accepted' }), step(3, { moved: [{ side: 'callee', from: 'before' }] })]
  const noted = <T>(what: string, answer: T) => {
    order.push(what)
    return answer
  }
  const sessions = {
    confirm() {},
    move: (_: string, from: string, to: string) => noted(`${from} → ${to}`, true),
    apply: (id: string) => noted(`hold ${id}`, []),
  } as unknown as Sessions
  const delivery = deliveryOver(sessions, committed)
  leave(2, 3)
  expect(await delivery.catchUp(call)).toBe('done')
  expect(toldRows).toEqual([20, 30])
  expect(order[0]).toBe('before → after')
  expect(order.indexOf('hold after')).toBeGreaterThan(0)
})

test('[REL2] an answer closes the gate of a place before kept relays go out, and before a later step', async () => {
  const order: string[] = []
  const { call } = accepted(ringing())
  if (call.status !== 'accepted') throw new Error('unreachable')
  const { sessionId } = call.calleePlace
  const later: Call = { ...call, version: 3, calleePlace: { ...call.calleePlace, settled: false } }
  const committed: Step[] = [
    { call, event: { type: 'accepted', at: 1, by: null, notices: [] } },
    { call: later, event: { type: 'place_taken', at: 2, by: null, notices: [] } },
  ]
  const { promise: isFound, resolve: find } = Promise.withResolvers<void>()
  const sessions = {
    confirm() {},
    // Its owner is found later than the next one.
    async apply(id: string, { isAnswered, early, version }: SessionStep) {
      if (id !== sessionId) return []
      if (isAnswered && early === undefined) await isFound
      order.push(early !== undefined ? 'open' : isAnswered ? 'answer' : `hold ${version}`)
      return []
    },
  } as unknown as Sessions
  const delivery = deliveryOver(sessions, committed)
  leave(2, 3)
  const caughtUp = delivery.catchUp(later)
  setImmediate(find)
  expect(await caughtUp).toBe('done')
  expect(order).toEqual(['answer', 'open', 'hold 3'])
})

test('[REL2] an answer that could not be handed on whole is left: its gates are opened by whoever does it', async () => {
  const first = accepted(ringing()).call
  if (first.status !== 'accepted') throw new Error('unreachable')
  const call: Call = first
  const committed: Step[] = [{ call, event: { type: 'accepted', at: 1, by: null, notices: [] } }]
  let isLost = true
  leave(call.version)
  const gates: string[] = []
  let isSilent = false
  const sessions = {
    confirm() {},
    // The callee's session is not found yet.
    apply(id: string, { early }: SessionStep) {
      if (id === first.calleePlace.sessionId && isLost) return undefined
      if (early !== undefined) gates.push(id)
      return []
    },
    findAt: () => (isSilent ? Promise.reject(new StoreError('unknown', 'it is silent')) : false),
  } as unknown as Sessions
  const delivery = deliveryOver(sessions, committed, true)
  expect(await delivery.catchUp(call)).toBe('later')
  expect(gates).toEqual([])
  // Nor does its node answer.
  isSilent = true
  expect(await delivery.catchUp(call)).toBe('later')
  isSilent = false
  gates.length = 0
  // Nobody asks about it again: the sweep does.
  await delivery.retry()
  expect([gates, [...delivery.undelivered], toldRows]).toEqual([[], [callKey(call)], []])
  isLost = false
  await delivery.retry()
  expect([...delivery.undelivered]).toEqual([])
  expect(gates.sort()).toEqual([first.callerPlace.sessionId, first.calleePlace.sessionId].sort())
  expect(toldRows).toEqual([call.version * 10])
  expect(await delivery.catchUp(call)).toBe('done')
  expect(gates.length).toBe(2)
})

test('[END4] what led to the end of a call is told where the node of a holder never says that it is lost', async () => {
  const live = accepted(ringing())
  if (live.call.status !== 'accepted') throw new Error('unreachable')
  const over = ended(live.call)
  leave(live.call.version, over.call.version)
  const opened: string[] = []
  const sessions = {
    confirm() {},
    apply(id: string, { orOpen }: SessionStep) {
      if (orOpen !== undefined) opened.push(id)
      return orOpen === undefined ? undefined : []
    },
    findAt: () => false,
  } as unknown as Sessions
  const delivery = deliveryOver(sessions, [live, over], true)
  expect(await delivery.catchUp(over.call)).toBe('done')
  expect(opened).toContain(live.call.callerPlace.sessionId)
  expect(opened).toContain(live.call.calleePlace.sessionId)
})

test('[ORD3] a session of the call that moved to another node is asked again', async () => {
  const { call } = accepted(ringing())
  leave(call.version)
  let moves = 1
  const sessions = {
    confirm() {
      if (moves-- > 0) throw new SessionMovedError('a session of the call has another owner by now')
    },
    apply: () => [],
  } as unknown as Sessions
  const delivery = deliveryOver(sessions, [{ call, event: { type: 'accepted', at: 1, by: null, notices: [] } }])
  expect(await delivery.catchUp(call)).toBe('later')
  expect(await delivery.catchUp(call)).toBe('done')
})

test('[ORD3] a session that another node has by now hears of no later step before the one that it missed', async () => {
  const { call } = accepted(ringing())
  if (call.status !== 'accepted') throw new Error('unreachable')
  const committed: Step[] = [3, 4].map((version) => {
    const notice = { to: { place: 'caller' }, event: 'call.status', data: {} } as Notice
    return { call: { ...call, version }, event: { type: 'connected', at: time, by: null, notices: [notice] } }
  })
  const heard: (number | undefined)[] = []
  let isLost = true
  const sessions = {
    confirm() {
      if (!isLost) return
      isLost = false
      throw new SessionMovedError('a session of the call has another owner by now')
    },
    apply(id: string, { pushes = [] }: SessionStep) {
      if (id === call.callerPlace.sessionId) heard.push(...pushes.map(({ version }) => version))
      return []
    },
  } as unknown as Sessions
  const delivery = deliveryOver(sessions, committed)
  leave(3, 4)
  expect(await delivery.catchUp({ ...call, version: 4 })).toBe('later')
  expect(heard).toEqual([3])
  expect(await delivery.catchUp({ ...call, version: 4 })).toBe('done')
  expect(heard).toEqual([3, 3, 4])
})

test('[WS4] at a start the end of a call is told again, however long ago everybody was told of it', async () => {
  const { delivery, sessions, told, call, final } = setUp()
  stepsOf(sessions).ring('s', callKey(call))
  time = justOver + 60_000
  expect(await delivery.apply(final)).toBe(true)
  expect(told).toEqual([])
  expect(await delivery.tellAgain(final)).toBe(true)
  expect(told).toEqual(['call.ended'])
})

test('[EXT3] where the store does not say what is left, nothing is known to be missing', async () => {
  const { call } = accepted(ringing())
  let isAway = true
  const delivery = createDelivery({
    unjumped: (_, at) => at,
    sessions: { confirm() {} } as unknown as Sessions,
    now: () => time,
    stepsAfter: () => [],
    isHeldElsewhere: () => false,
    load: () => undefined,
    leftOf: () => (isAway ? Promise.reject(new StoreError('unavailable', 'away')) : []),
    onToldLeft() {},
    nodes: { tell() {}, told() {} },
    onApplied() {},
    onError(error) {
      throw error
    },
  })
  expect(await delivery.catchUp(call)).toBe('away')
  expect([...delivery.undelivered]).toEqual([])
  isAway = false
  expect(await delivery.catchUp(call)).toBe('done')
})

test('[ORD3] of what is left all is told from the oldest on, and nothing that others have told meanwhile', async () => {
  const { call } = accepted(ringing())
  if (call.status !== 'accepted') throw new Error('unreachable')
  const committed: Step[] = [2, 3, 4, 5].map((version) => {
    const notice = { to: { place: 'caller' }, event: 'call.status', data: {} } as Notice
    return { call: { ...call, version }, event: { type: 'connected', at: time, by: null, notices: [notice] } }
  })
  const heard: (number | undefined)[] = []
  const said: number[] = []
  const sessions = {
    confirm() {},
    apply(id: string, { pushes = [] }: SessionStep) {
      if (id === call.callerPlace.sessionId) heard.push(...pushes.map(({ version }) => version))
      return []
    },
  } as unknown as Sessions
  const delivery = createDelivery({
    unjumped: (_, at) => at,
    sessions,
    now: () => time,
    stepsAfter: (_, version) => committed.filter((step) => step.call.version > version),
    isHeldElsewhere: () => false,
    leftOf: () => left,
    load: () => undefined,
    onToldLeft: (rows) => void toldRows.push(...rows.map(({ row }) => row)),
    nodes: { tell() {}, told: ({ version }) => void said.push(version) },
    onApplied() {},
    onError(error) {
      throw error
    },
  })
  const at = (version: number) => committed[version - 2] as Step
  leave(2, 4)
  expect(await delivery.catchUp(at(4).call)).toBe('done')
  expect([heard, toldRows, said]).toEqual([[2, 3, 4, 5], [20, 40], [5]])
  // It has told that itself.
  leave(5)
  expect(await delivery.catchUp(at(5).call)).toBe('done')
  expect(await delivery.apply(at(5))).toBe(true)
  expect(heard).toHaveLength(4)
  // Others say that they have told the next ones, or have removed what they told.
  const six: Step = { ...at(5), call: { ...at(5).call, version: 6 } }
  delivery.hear(callKey(call), 6)
  expect(await delivery.apply(six)).toBe(true)
  leave()
  expect(await delivery.catchUp({ ...call, version: 7 })).toBe('done')
  expect(heard).toHaveLength(4)
  // It does not know whether the previous step is done: no other row is left, so it is.
  const nine: Step = { ...at(5), call: { ...at(5).call, version: 9 } }
  leave(9)
  expect(await delivery.apply(nine)).toBe(true)
  expect([heard.splice(4), toldRows.splice(2)]).toEqual([[9], []])
  // A process that stood still looks at what is left, whatever it knew.
  const eight: Step = { ...at(5), call: { ...at(5).call, version: 8 } }
  time += 10_000
  expect(await delivery.apply(eight)).toBe(true)
  expect(heard).toHaveLength(4)
  leave(8)
  committed.push(eight)
  expect(await delivery.apply(eight)).toBe(true)
  expect([heard.at(-1), said.at(-1)]).toEqual([8, 8])
})

test('[PLACE2] a place that another device took: who came back before anybody could tell it so is told', async () => {
  const takenAt = 2_000_000
  const { sessions, told, apply, call } = setUp(takenAt + 500)
  const { call: answered } = accepted(call)
  const callee = participant('callee', 'doctor')
  if (answered.status !== 'accepted') throw new Error('unreachable')
  const laptop = { sessionId: 'laptop', participant: callee, deviceId: 'laptop', extended: false }
  await stepsOf(sessions).openDetached(laptop, takenAt - 500)
  // It has looked, and nothing was there.
  await sessions.collectFinals({ sessionId: 's', participant: callee, deviceId: null, extended: false })
  time = takenAt + 3_000
  await apply({
    call: { ...answered, version: 3, calleePlace: { ...answered.calleePlace, sessionId: 'laptop' } },
    event: {
      type: 'place_taken',
      at: takenAt,
      by: null,
      notices: [],
      moved: [{ side: 'callee', from: 'before', leftDevice: null }],
    },
  })
  expect(told).toEqual(['call.cancelled'])
})

for (const isThere of [false, true]) {
  test(`[WS4] how a call ended waits for who comes back, where the session that had the place is gone; where its node has it, it is told there: ${isThere}`, async () => {
    const { call: answered } = accepted(ringing())
    if (answered.status !== 'accepted') throw new Error('unreachable')
    const { call, event } = ended(answered)
    const heard: string[] = []
    const made: string[] = []
    let isFound = false
    const sessions = {
      confirm() {},
      findAt: () => {
        isFound = isThere
        return isThere
      },
      apply(id: string, { orOpen }: SessionStep) {
        if (orOpen !== undefined) made.push(id)
        if (id === answered.calleePlace.sessionId && !isFound && !made.includes(id)) return undefined
        heard.push(id)
        return []
      },
    } as unknown as Sessions
    const both = (['caller', 'callee'] as const).map(
      (place) => ({ to: { place }, event: 'call.ended', data: {} }) as Notice,
    )
    const delivery = deliveryOver(sessions, [{ call, event: { ...event, notices: both } }], true)
    leave(call.version)
    expect(await delivery.catchUp(call)).toBe('done')
    expect(made).toEqual(isThere ? [] : [answered.calleePlace.sessionId])
    expect(heard.toSorted()).toEqual(
      [answered.callerPlace, answered.calleePlace].map(({ sessionId }) => sessionId).toSorted(),
    )
    expect(toldRows).toEqual([call.version * 10])
    expect([...delivery.undelivered]).toEqual([])
  })
}
