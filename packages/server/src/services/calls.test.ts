import { describe, expect, test } from 'bun:test'
import { accepted, ended, ringing } from '../../test/contracts/calls.ts'
import { somebody } from '../../test/contracts/session-parts.ts'
import { answered, connectPeer, eventsOf, openDomains, type Peer } from '../../test/support/domain.ts'
import { type Call, callKey, type LiveCall, refOf } from '../call/call.ts'
import { StoreError } from '../ports/store-error.ts'
import { type CallsOptions, createCalls } from './calls.ts'

const away = () => Promise.reject(new StoreError('unavailable', 'away'))

/** Calls over a store and a delivery that are as a test says; the time is its own. */
function setUp() {
  const state = {
    now: 1_000_000,
    /** What the store has; it is away where there is nothing. */
    stored: undefined as ReadonlyMap<string, Call> | undefined,
    canTell: true,
    loads: 0,
    told: [] as Call[],
    tried: [] as Call[],
    owed: new Set<string>(),
  }
  const delivery = {
    async catchUp(call: Call) {
      state.tried.push(call)
      if (state.canTell) state.told.push(call)
      if (state.canTell) state.owed.delete(callKey(call))
      return state.canTell ? 'done' : 'away'
    },
    owed: state.owed,
    forgive: (key: string) => void state.owed.delete(key),
  }
  const options = {
    store: {
      transition: () => Promise.reject(new StoreError('unknown', 'the connection was lost')),
      async load(ref: Pick<Call, 'product' | 'callUuid'>) {
        state.loads++
        return state.stored === undefined ? away() : state.stored.get(callKey(ref))
      },
      // What is over for longer is not among them.
      async *overPages() {},
    },
    sessions: { heldHere: () => undefined },
    nodes: { self: 'one', isDead: () => false, others: () => [], tell() {} },
    delivery,
    uptime: { outages: () => [], doubt() {} },
    clock: { now: () => state.now, monotonic: () => state.now },
    onCommitted() {},
    durations: { callerLostMs: 20_000, peerLostMs: 120_000, maxDurationMs: 3_600_000 },
  }
  return { state, calls: createCalls(options as unknown as CallsOptions) }
}

const storeOf = (...calls: readonly Call[]) => new Map(calls.map((call) => [callKey(call), call]))

function callThatEnded(): { before: LiveCall; over: Call } {
  const before = accepted(ringing()).call as LiveCall
  return { before, over: ended(before).call }
}

/** A commit whose outcome nobody knows. */
async function loseSight(calls: ReturnType<typeof createCalls>, call: Call): Promise<void> {
  const lost = await calls.run(refOf(callKey(call)), { type: 'time' }).catch((error: StoreError) => error.kind)
  expect(lost).toBe('unknown')
}

test('[EXT3] a commit that took effect seconds after the database was back is told, however long that was away', async () => {
  const { state, calls } = setUp()
  const { before, over } = callThatEnded()
  await loseSight(calls, before)
  for (let sweep = 0; sweep < 200; sweep++) {
    expect(await calls.reconcile().catch((error: StoreError) => error.kind)).toBe('unavailable')
    state.now += 500
  }
  state.stored = storeOf(before)
  for (let sweep = 0; sweep < 10; sweep++) {
    await calls.reconcile()
    state.now += 500
  }
  expect(state.told.at(-1)).toEqual(before)
  state.stored = storeOf(over)
  await calls.reconcile()
  expect(state.told.at(-1)).toEqual(over)
})

test('[EXT3] it is not looked for for ever', async () => {
  const { state, calls } = setUp()
  const { before } = callThatEnded()
  state.stored = storeOf(before)
  await loseSight(calls, before)
  await calls.reconcile()
  state.now += 7_000
  await calls.reconcile()
  expect(state.loads).toBe(2)
  state.now += 500
  await calls.reconcile()
  expect(state.loads).toBe(2)
})

test('[EXT3] of many calls that are owed none is forgotten, and a few are tried while nothing can be told', async () => {
  const { state, calls } = setUp()
  const over = Array.from({ length: 120 }, () => callThatEnded().over)
  for (const call of over) state.owed.add(callKey(call))
  expect(await calls.reconcile().catch((error: StoreError) => error.kind)).toBe('unavailable')
  state.stored = storeOf(...over)
  state.canTell = false
  await calls.reconcile()
  expect(state.tried).toHaveLength(50)
  expect(state.owed.size).toBe(120)
  state.canTell = true
  await calls.reconcile()
  expect(new Set(state.told)).toEqual(new Set(over))
  expect(state.owed.size).toBe(0)
})

describe('a holder that goes while another session asks for its place', () => {
  const openDomain = openDomains()

  /** An answered call, and what is done at the next load of it. */
  async function setUpCall() {
    const atLoad: (() => Promise<void>)[] = []
    const domain = await openDomain({
      store: (real) => ({
        async load(ref) {
          await atLoad.shift()?.()
          return real.load(ref)
        },
      }),
    })
    const caller = await connectPeer(domain, { ...somebody(), role: 'customer' })
    const holder = await connectPeer(domain, somebody())
    const call = await answered(domain, caller, holder)
    /** The close of its socket is observed. */
    async function loseHolder(): Promise<void> {
      await domain.sessions.detach(holder.id, holder.socket, false, Date.now())
      await domain.calls.run(call, { type: 'lose', sessionId: holder.id, node: holder.actor.node })
    }
    const end = ({ actor }: Peer) => domain.calls.verb(actor, 'end', call.callUuid, null)
    const connect = (deviceId: string) => connectPeer(domain, holder.actor.participant, deviceId)
    return { domain, caller, holder, call, atLoad, loseHolder, end, connect }
  }

  test('[PLACE2] its place is taken by its device at once, and not by another one', async () => {
    for (const device of ['phone', 'tablet']) {
      const { caller, atLoad, loseHolder, end, connect } = await setUpCall()
      const other = await connect(device)
      // After it was refused, and before anybody looks why.
      atLoad.push(loseHolder)
      const ends = device === 'phone'
      expect(await end(other)).toMatchObject(
        ends
          ? { ok: true, value: { status: 'ended', endReason: 'hangup' } }
          : { ok: false, error: { code: 'CALL_NOT_PARTICIPANT' } },
      )
      expect(atLoad).toEqual([])
      expect(eventsOf(caller)).toEqual(['call.accepted', 'call.peer_away', ...(ends ? ['call.ended'] : [])])
    }
  })

  test('[PLACE2] [PLACE4] its place is taken where somebody else has noted the loss while it was pinged', async () => {
    const { domain, caller, holder, call, loseHolder, end, connect } = await setUpCall()
    const phone = await connect('phone')
    let seen: Call | undefined
    holder.socket.probe = async () => {
      await loseHolder()
      seen = await domain.store.load(call)
      return false
    }
    expect(await end(phone)).toMatchObject({ ok: true, value: { status: 'ended', endReason: 'hangup' } })
    expect(seen).toMatchObject({ status: 'accepted', calleePlace: { state: 'vacant', sessionId: holder.id } })
    expect(eventsOf(caller)).toEqual(['call.accepted', 'call.peer_away', 'call.ended'])
  })
})
