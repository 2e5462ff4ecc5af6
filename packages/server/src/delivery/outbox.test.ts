import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { type Call, callKey, type LiveCall } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { answered, connectPeer, eventsOf, invited, openDomains } from '../calls/domain.fixture.ts'
import { accepted, created, ended, ringing } from '../ports/call-store.fixture.ts'
import { ownMs } from '../ports/outbox.ts'
import { somebody } from '../ports/sessions.fixture.ts'
import { StoreError } from '../ports/store-error.ts'
import { leftIn, openHarness, type SqliteHarness, unhurried } from '../stores/sqlite/open.fixture.ts'
import { createHeldWriter } from '../stores/sqlite/write-worker.fixture.ts'
import type { CaughtUp } from './catching-up.ts'
import { createOutbox, type Outbox } from './outbox.ts'

const away = () => Promise.reject(new StoreError('unavailable', 'away'))

describe('over a store, and a delivery that is as a test says', () => {
  let harness: SqliteHarness
  let outbox: Outbox
  let now: number
  let canRemove: boolean
  let removed: number[]
  let told: string[]
  let seenTo: string[]
  let errors: unknown[]
  let answer: (call: Call) => CaughtUp | Promise<CaughtUp>
  beforeEach(async () => {
    now = 0
    canRemove = true
    removed = []
    told = []
    seenTo = []
    errors = []
    answer = () => 'done'
    harness = await openHarness({ ...unhurried, monotonic: () => now })
    const store = harness.stores().outbox
    outbox = createOutbox({
      store: {
        ...store,
        remove(rows) {
          if (!canRemove) return away()
          removed.push(rows.length)
          return store.remove(rows)
        },
      },
      load: (ref) => harness.store().load(ref),
      catchUp: async (call) => {
        told.push(callKey(call))
        return answer(call)
      },
      stepsAfter: (ref, version) => harness.store().stepsAfter(ref, version),
      onLeft: ({ call, event }) => seenTo.push(`${callKey(call)} ${event.type}`),
      toldMs: 120_000,
      now: () => 1_000_000 + now,
      onError: (error) => errors.push(error),
    })
  })
  afterEach(() => harness.close())

  async function commit(step: Step): Promise<Step> {
    await harness.store().transition(step.call, () => ({ steps: [step] }))
    return step
  }
  const commitMany = (count: number) => Promise.all(Array.from({ length: count }, () => commit(created(ringing()))))
  const left = () => leftIn(harness.database)
  async function sweepFor(ms: number): Promise<void> {
    for (const end = now + ms; now <= end; now += 500) await outbox.sweep()
  }

  test('what was told goes in batches, and is told by nobody else', async () => {
    const steps = await commitMany(1_200)
    steps.forEach(outbox.told)
    await sweepFor(ownMs)
    expect(removed).toEqual([500, 500, 200])
    expect([left(), told]).toEqual([0, []])
  })

  test('what nobody told for two seconds is told, then it goes', async () => {
    const [one, other] = (await commitMany(2)) as [Step, Step]
    outbox.told(one)
    await sweepFor(ownMs - 500)
    expect([left(), told]).toEqual([1, []])
    await sweepFor(500)
    expect([left(), told]).toEqual([0, [callKey(other.call)]])
  })

  test('[PUSH2] what goes with a step that was left is seen to after it was told, while its ring would not be over', async () => {
    const first = await commit(created(ringing()))
    const second = await commit(accepted(first.call as ReturnType<typeof ringing>))
    outbox.told(first)
    answer = () => 'away'
    await sweepFor(ownMs)
    expect(seenTo).toEqual([])
    answer = () => 'done'
    await sweepFor(1_000)
    expect(seenTo).toEqual([`${callKey(second.call)} accepted`])
    await commit(created(ringing(undefined, undefined, { ringExpiresAt: 1_000_000 + now + ownMs })))
    await sweepFor(ownMs + 500)
    expect([left(), seenTo.length]).toEqual([0, 1])
  })

  test('[PUSH2] so is what is told before anybody claims it, and what is told by a claim is seen to once', async () => {
    const leftOf = (step: Step) => harness.stores().outbox.leftOf(step.call)
    const first = await commit(created(ringing()))
    outbox.toldLeft(await leftOf(first), [first])
    await outbox.sweep()
    expect([left(), seenTo]).toEqual([0, [`${callKey(first.call)} invited`]])
    const second = await commit(created(ringing()))
    const rows = await leftOf(second)
    answer = () => {
      outbox.toldLeft(rows, [second])
      return 'done'
    }
    await sweepFor(ownMs)
    expect([left(), seenTo.slice(1)]).toEqual([0, [`${callKey(second.call)} invited`]])
    const late = await commit(created(ringing(undefined, undefined, { ringExpiresAt: 1_000_000 + now })))
    outbox.toldLeft(await leftOf(late), [late])
    expect(seenTo.length).toBe(2)
  })

  test('steps of one call are told together', async () => {
    const first = await commit(created(ringing()))
    const second = await commit(accepted(first.call as ReturnType<typeof ringing>))
    await commit(ended(second.call as LiveCall))
    await sweepFor(ownMs)
    expect([left(), told]).toEqual([0, [callKey(first.call)]])
  })

  test('while nobody can be told a few are tried, and none is forgotten', async () => {
    answer = () => 'away'
    const steps = await commitMany(120)
    now += ownMs
    await outbox.sweep()
    expect([told.length, left()]).toEqual([50, 120])
    await sweepFor(60_000)
    expect(left()).toBe(120)
    expect(outbox.oldestMs()).toBe(now)
    answer = () => 'done'
    now += 500
    told = []
    await outbox.sweep()
    expect(outbox.oldestMs()).toBe(0)
    expect([new Set(told), left()]).toEqual([new Set(steps.map(({ call }) => callKey(call))), 0])
  })

  test('a session that is not found, and may be in a moment, keeps nobody else waiting, and is told then', async () => {
    const steps = await commitMany(60)
    const waiting = new Set(steps.slice(0, 55).map(({ call }) => callKey(call)))
    answer = (call) => (waiting.has(callKey(call)) ? 'later' : 'done')
    now += ownMs
    await outbox.sweep()
    expect([told.length, left()]).toEqual([60, 55])
    answer = () => 'done'
    now += 500
    await outbox.sweep()
    expect(left()).toBe(0)
  })

  test('a bug that one call meets is said once, and the others are told', async () => {
    const steps = await commitMany(3)
    answer = (call) => {
      if (callKey(call) === callKey((steps[0] as Step).call)) throw new TypeError('a bug')
      return 'done'
    }
    await sweepFor(ownMs + 2_000)
    expect([told.length, left(), errors.map(String)]).toEqual([3, 0, ['TypeError: a bug']])
  })

  test('nobody is told of a call that is over for long, or is not stored any more', async () => {
    const first = await commit(created(ringing()))
    await commit(ended(first.call as LiveCall, 1_000_000))
    const kept = await commit(created(ringing()))
    await commit(ended(kept.call as LiveCall, 1_060_000))
    now = 125_000
    await outbox.sweep()
    expect([left(), told]).toEqual([0, [callKey(kept.call)]])
  })

  test('a database that is away is asked again; what was told meanwhile goes later', async () => {
    const steps = await commitMany(3)
    steps.forEach(outbox.told)
    canRemove = false
    expect(await outbox.sweep().catch((error: StoreError) => error.kind)).toBe('unavailable')
    await outbox.flush()
    canRemove = true
    const more = await commitMany(600)
    // This many at once do not wait for the sweep.
    more.forEach(outbox.told)
    await until('nothing is left', () => left() === 0)
    expect(errors).toEqual([])
    await outbox.flush()
    expect(told).toEqual([])
  })
})

describe('over the calls and their sessions', () => {
  const openDomain = openDomains()
  const peers = async (domain: Awaited<ReturnType<typeof openDomain>>) =>
    [await connectPeer(domain, { ...somebody(), role: 'customer' }), await connectPeer(domain, somebody())] as const

  test('a call leaves nothing behind', async () => {
    const domain = await openDomain()
    const [caller, callee] = await peers(domain)
    const call = await answered(domain, caller, callee)
    await domain.calls.verb(caller.actor, 'end', call.callUuid, null)
    expect(domain.left()).toBe(3)
    await domain.outbox.sweep()
    expect(domain.left()).toBe(0)
  })

  test('[EXT3] a commit whose answer was lost is told by its row', async () => {
    let isLost = false
    const domain = await openDomain({
      store: (real) => ({
        async transition(ref, decide) {
          const decision = await real.transition(ref, decide)
          // The step that its process knows of is another one.
          if (isLost) throw new StoreError('unknown', 'the connection was lost')
          return decision
        },
      }),
    })
    const [caller, callee] = await peers(domain)
    const callUuid = await invited(domain, caller, callee)
    isLost = true
    await domain.calls.verb(callee.actor, 'accept', callUuid, null).catch(() => {})
    isLost = false
    await domain.outbox.sweep()
    expect(eventsOf(caller)).toEqual([])
    domain.pass(ownMs)
    await domain.outbox.sweep()
    expect(eventsOf(caller)).toEqual(['call.accepted'])
    expect(domain.left()).toBe(0)
  })

  test('[EXT3] a sweep that runs between a commit and the news of it leaves the step to be told', async () => {
    const writer = createHeldWriter()
    let passed = 0
    const clock = { now: () => Date.now() + passed, monotonic: () => performance.now() + passed }
    const domain = await openDomain({ startWorker: writer.startWorker, clock })
    const [caller, callee] = await peers(domain)
    const callUuid = await invited(domain, caller, callee)
    await domain.outbox.sweep()
    // The step is committed, and the process stands still before it hears of that.
    writer.hold()
    const accepting = domain.calls.verb(callee.actor, 'accept', callUuid, null)
    await until('the step is committed', () => domain.left() > 0)
    passed += 5_700
    domain.pass(5_700)
    // When the process goes on, its timers run first.
    const sweeping = domain.outbox.sweep()
    await new Promise(setImmediate)
    const left = domain.left()
    writer.release()
    await Promise.all([accepting, sweeping])
    expect([eventsOf(caller), left]).toEqual([['call.accepted'], 1])
    domain.pass(ownMs)
    await domain.outbox.sweep()
    expect([eventsOf(caller), domain.left()]).toEqual([['call.accepted'], 0])
  })

  test('[EXT3] what was committed while the sessions could not be reached is told once they can', async () => {
    let isAway = false
    const domain = await openDomain({ isAway: () => isAway })
    const [caller, callee] = await peers(domain)
    const call = await answered(domain, caller, callee)
    isAway = true
    await domain.calls.verb(callee.actor, 'end', call.callUuid, null)
    domain.pass(ownMs)
    await domain.outbox.sweep()
    expect([eventsOf(caller), domain.left()]).toEqual([['call.accepted'], 1])
    isAway = false
    domain.pass(500)
    await domain.outbox.sweep()
    expect([eventsOf(caller), domain.left()]).toEqual([['call.accepted', 'call.ended'], 0])
    expect([...domain.delivery.undelivered]).toEqual([])
  })
})
