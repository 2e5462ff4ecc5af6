import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import type { Participant } from '../call/call.ts'
import { openSink } from '../ports/sessions.fixture.ts'
import type { Sink } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import { createMemorySessions } from '../stores/memory/sessions.ts'
import { createPresence } from './presence.ts'

beforeEach(() => void jest.useFakeTimers())
afterEach(() => void jest.useRealTimers())

/** A round, and everything that it does. */
async function pass(rounds: number): Promise<void> {
  for (let i = 0; i < rounds; i++) {
    jest.advanceTimersByTime(1_000)
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
}

function setUp() {
  let time = 0
  const errors: unknown[] = []
  /** Why the store does not say who of these is there, or takes nothing for these sessions. */
  const away = new StoreError('unavailable', 'away')
  const failing = new Set<string>()
  const calling = new Set<string>()
  /** How many people each read of the calls had. */
  const reads: number[] = []
  const onRead: { next?: () => void } = {}
  /** The sessions that got a push. */
  const appended: string[] = []
  const sessions = createMemorySessions({ windowMs: 1_000, resumeWindowMs: 1_000 })
  const presence = createPresence({
    sessions: {
      ...sessions,
      seen: (one) => (failing.has(one.userId) ? Promise.reject(away) : sessions.seen(one)),
      append(id, push) {
        if (failing.has(id)) return Promise.reject(away)
        appended.push(id)
        return sessions.append(id, push)
      },
    },
    calls: {
      async inCall(some) {
        reads.push(some.length)
        onRead.next?.()
        await new Promise((resolve) => setImmediate(resolve))
        if (failing.has('calls')) throw away
        return some.map(({ userId }) => calling.has(userId))
      },
    },
    now: () => time,
    isOpen: () => true,
    onError: (error) => errors.push(error),
  })
  const told: boolean[] = []
  const toldCalls: (boolean | undefined)[] = []
  const sink = () =>
    openSink({
      send(text) {
        for (const { online, in_call } of JSON.parse(text).data.participants) {
          told.push(online)
          toldCalls.push(in_call)
        }
      },
    })
  const ben = { product: 'shop', role: 'agent', userId: 'ben' }
  const identityOf = (sessionId: string, participant: Participant, extended: boolean) => ({
    ...{ sessionId, participant, deviceId: null, extended },
  })
  const come = async (sessionId: string, userId: string, extended = false, role = ben.role) => {
    const own = sink()
    await sessions.open(identityOf(sessionId, { ...ben, userId, role }, extended), own, time)
    await sessions.ready(sessionId)
    return own
  }
  const go = (sessionId: string, own: Sink) => sessions.detach(sessionId, own, true, time)
  const rounds = async (count: number) => {
    for (let i = 0; i < count; i++) {
      time += 1_000
      await pass(1)
    }
  }
  const as = (sessionId: string, userId = sessionId) => ({ sessionId, participant: { ...ben, userId } })
  return {
    presence,
    told,
    toldCalls,
    ben,
    come,
    go,
    rounds,
    as,
    failing,
    away,
    errors,
    calling,
    reads,
    onRead,
    appended,
  }
}

test('[PRES1] who comes back within 5 s was never offline, and who does not is after them', async () => {
  const { presence, told, ben, come, go, rounds, as, errors } = setUp()
  await come('watcher', 'ann', true)
  const first = await come('one', 'ben')
  presence.start()
  expect(await presence.watch(as('watcher', 'ann'), [ben])).toEqual({
    ok: true,
    participants: [{ role: 'agent', user_id: 'ben', online: true, in_call: false }],
  })
  await go('one', first)
  await rounds(4)
  const second = await come('two', 'ben')
  await rounds(3)
  expect(told).toEqual([])
  await go('two', second)
  await rounds(5)
  expect(told).toEqual([])
  await rounds(1)
  expect(told).toEqual([false])
  await come('three', 'ben')
  await rounds(1)
  expect(told).toEqual([false, true])
  expect(errors).toEqual([])
  presence.stop()
})

test('[PRES1] over one watch a second, or 2,000 people that nobody looked at yet, it is refused for a second', async () => {
  const { presence, come, rounds, as } = setUp()
  presence.start()
  const people = (from: number) =>
    Array.from({ length: 200 }, (_, i) => ({ product: 'shop', role: 'agent', userId: `a${from + i}` }))
  const refused = { ok: false, error: { code: 'RATE_LIMITED', limit: 'messages', retry_after_ms: 1_000 } }
  for (let i = 0; i < 10; i++) {
    await come(`s${i}`, `watcher${i}`, true)
    expect(await presence.watch(as(`s${i}`), people(i * 200))).toMatchObject({ ok: true })
  }
  await come('more', 'more', true)
  expect(await presence.watch(as('more'), people(2_000))).toMatchObject(refused)
  expect(await presence.watch(as('s0'), people(0))).toMatchObject(refused)
  await rounds(1)
  expect(await presence.watch(as('more'), people(2_000))).toMatchObject({ ok: true })
  expect(await presence.watch(as('s0'), people(0))).toMatchObject({ ok: true })
  presence.stop()
})

test('[PRES1] what changed while the store failed in the middle of a round is told, of everybody and to everybody', async () => {
  const { presence, told, ben, come, rounds, as, failing, away, errors } = setUp()
  for (const id of ['one', 'two']) await come(id, id, true)
  presence.start()
  const eva = { ...ben, userId: 'eva' }
  for (const id of ['one', 'two']) await presence.watch(as(id), [ben, eva])
  await come('b', 'ben')
  await come('e', 'eva')
  // The state of ben is known, that of eva is not, and one of the two watchers cannot get a push.
  for (const name of ['eva', 'one']) failing.add(name)
  await rounds(2)
  expect(told).toEqual([true])
  failing.delete('one')
  await rounds(2)
  expect(told).toEqual([true, true])
  failing.delete('eva')
  await rounds(2)
  expect(told).toEqual([true, true, true, true])
  expect(errors).toEqual([away])
  presence.stop()
})

test('[PRES1] an empty list does not end the second that a session has to wait', async () => {
  const { presence, ben, come, rounds, as } = setUp()
  await come('watcher', 'ann', true)
  presence.start()
  expect(await presence.watch(as('watcher'), [])).toEqual({ ok: true, participants: [] })
  expect(await presence.watch(as('watcher'), [ben])).toMatchObject({ ok: false, error: { code: 'RATE_LIMITED' } })
  await rounds(1)
  expect(await presence.watch(as('watcher'), [ben])).toMatchObject({ ok: true })
  presence.stop()
})

test('[PRES1] one participant has 400 of the people that nobody looked at yet, on all of its sessions', async () => {
  const { presence, ben, come, rounds, as } = setUp()
  presence.start()
  const people = (from: number) => Array.from({ length: 200 }, (_, i) => ({ ...ben, userId: `a${from + i}` }))
  for (let i = 0; i < 3; i++) await come(`s${i}`, 'ann', true)
  await come('other', 'eva', true)
  for (let i = 0; i < 2; i++)
    expect(await presence.watch(as(`s${i}`, 'ann'), people(i * 200))).toMatchObject({ ok: true })
  expect(await presence.watch(as('s2', 'ann'), people(400))).toMatchObject({
    ok: false,
    error: { code: 'RATE_LIMITED' },
  })
  // A person who is looked at already counts for nobody.
  expect(await presence.watch(as('s2', 'ann'), people(0))).toMatchObject({ ok: true })
  expect(await presence.watch(as('other', 'eva'), people(400))).toMatchObject({ ok: true })
  await rounds(1)
  expect(await presence.watch(as('s2', 'ann'), people(600))).toMatchObject({ ok: true })
  presence.stop()
})

test('[PRES1] who may watch fewer roles by now hears of no others any more', async () => {
  const { presence, told, ben, come, rounds, as } = setUp()
  await come('watcher', 'ann', true)
  presence.start()
  const guest = { ...ben, role: 'guest', userId: 'guest' }
  await presence.watch(as('watcher', 'ann'), [ben, guest])
  presence.restrict(as('watcher', 'ann'), ['guest'])
  await come('b', 'ben')
  await rounds(1)
  expect(told).toEqual([])
  await come('g', 'guest', false, 'guest')
  await rounds(1)
  expect(told).toEqual([true])
  presence.stop()
})

test('[PRES1] who is in a call is told at the next look, also of somebody who is away', async () => {
  const { presence, told, toldCalls, ben, come, rounds, as, calling } = setUp()
  await come('watcher', 'ann', true)
  presence.start()
  calling.add('ben')
  expect(await presence.watch(as('watcher', 'ann'), [ben])).toEqual({
    ok: true,
    participants: [{ role: 'agent', user_id: 'ben', online: false, in_call: true }],
  })
  calling.delete('ben')
  await rounds(3)
  expect([told, toldCalls]).toEqual([[false], [false]])
  await come('one', 'ben')
  calling.add('ben')
  await rounds(3)
  expect([told, toldCalls]).toEqual([
    [false, true],
    [false, true],
  ])
  presence.stop()
})

test('[PRES1] where the calls cannot be read who is there is told all the same, and who is in a call when they can', async () => {
  const { presence, told, toldCalls, ben, come, rounds, as, calling, failing, away, errors } = setUp()
  await come('watcher', 'ann', true)
  presence.start()
  failing.add('calls')
  calling.add('ben')
  expect(await presence.watch(as('watcher', 'ann'), [ben])).toEqual({
    ok: true,
    participants: [{ role: 'agent', user_id: 'ben', online: false }],
  })
  await come('one', 'ben')
  await rounds(2)
  expect([told, toldCalls]).toEqual([[true], [undefined]])
  failing.delete('calls')
  await rounds(2)
  expect([told, toldCalls]).toEqual([
    [true, true],
    [undefined, true],
  ])
  expect(errors).toEqual([away])
  presence.stop()
})

test('[PRES1] who is in a call is read once a round, and those who ask at once share a read', async () => {
  const { presence, ben, come, rounds, as, reads } = setUp()
  presence.start()
  const people = (from: number) => Array.from({ length: 200 }, (_, i) => ({ ...ben, userId: `a${from + i}` }))
  const asking = [0, 1, 2, 3, 4].map(async (i) => {
    await come(`s${i}`, `watcher${i}`, true)
    return presence.watch(as(`s${i}`, `watcher${i}`), people(i * 200))
  })
  for (const watched of await Promise.all(asking)) expect(watched).toMatchObject({ ok: true })
  expect(reads.length).toBeLessThanOrEqual(2)
  expect(reads.reduce((sum, count) => sum + count)).toBe(1_000)
  reads.length = 0
  await rounds(3)
  expect(reads).toEqual([500, 500, 500])
  presence.stop()
})

test('[PRES1] who has another socket hears of nobody until it asks, and may ask at once', async () => {
  const { presence, told, ben, come, rounds, as } = setUp()
  await come('watcher', 'ann', true)
  presence.start()
  await presence.watch(as('watcher', 'ann'), [ben])
  presence.end('watcher')
  const eva = { ...ben, userId: 'eva' }
  expect(await presence.watch(as('watcher', 'ann'), [eva])).toMatchObject({ ok: true })
  await come('b', 'ben')
  await rounds(2)
  expect(told).toEqual([])
  await come('e', 'eva')
  await rounds(1)
  expect(told).toEqual([true])
  presence.stop()
})

test('[PRES1] a session that went on elsewhere while others were looked at is told nothing more from here', async () => {
  const { presence, ben, come, go, rounds, as, onRead, appended, errors } = setUp()
  const own = await come('watcher', 'ann', true)
  await come('stays', 'eva', true)
  presence.start()
  for (const [id, name] of [
    ['watcher', 'ann'],
    ['stays', 'eva'],
  ] as const)
    await presence.watch(as(id, name), [ben])
  await come('b', 'ben')
  onRead.next = () => void go('watcher', own)
  await rounds(1)
  expect(appended).toEqual(['stays'])
  expect(errors).toEqual([])
  presence.stop()
})
