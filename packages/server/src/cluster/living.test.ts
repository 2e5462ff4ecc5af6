import { expect, test } from 'bun:test'
import { StoreError } from '../ports/store-error.ts'
import { TestTime } from '../time/timers.fixture.ts'
import { createDeaths } from './deaths.ts'
import { createLiving } from './living.ts'

/** A node with a store that a test takes away: it is not connected, or does not answer. */
async function setUp() {
  const time = new TestTime()
  const store = { state: 'works' as 'works' | 'refuses' | 'is silent', asked: 0, saidAt: 0 }
  const errors: unknown[] = []
  const living = createLiving({
    node: 'one',
    post: {
      async beat() {
        store.asked++
        if (store.state === 'is silent') await time.timers.sleep(4_000)
        if (store.state !== 'works') throw new StoreError('unavailable', 'away')
        store.saidAt = time.now
        return { isNew: false, at: time.now, listed: [['one', time.now]] }
      },
    },
    deaths: createDeaths(time.timers),
    onSilent() {},
    onDoubted() {},
    onError: (error) => errors.push(error),
    timers: time.timers,
  })
  await living.start()
  return { time, store, errors, living }
}

test('[RING1] a node that was cut from the store says that it lives as soon as it is back', async () => {
  for (const backAfter of [50, 350, 650, 950]) {
    const { time, store } = await setUp()
    await time.pass(500)
    store.state = 'refuses'
    await time.pass(8_000 + backAfter)
    store.state = 'works'
    const backAt = time.now
    await time.pass(110)
    expect(store.saidAt).toBeGreaterThan(backAt)
  }
})

test('a node asks a store that is away no more than ten times a second, and reports it once a second', async () => {
  const { time, store, errors } = await setUp()
  store.state = 'refuses'
  await time.pass(10_000)
  expect(store.asked).toBeLessThan(120)
  expect(errors.length).toBeWithin(9, 12)
})

test('a store that does not answer is asked no more often, however long that lasts', async () => {
  const { time, store } = await setUp()
  store.state = 'is silent'
  await time.pass(60_000)
  const asked = store.asked
  await time.pass(60_000)
  // The beats that are due, and one more at a time.
  expect(store.asked - asked).toBeLessThan(60 + 60 / 4 + 2)
})

test('once the store answers, the beats come once a second again', async () => {
  const { time, store, living } = await setUp()
  store.state = 'refuses'
  await time.pass(3_000)
  store.state = 'works'
  await time.pass(1_000)
  const { asked } = store
  await time.pass(10_000)
  expect(store.asked - asked).toBeWithin(10, 12)
  store.state = 'refuses'
  await time.pass(2_000)
  living.stop()
  const { asked: last } = store
  await time.pass(2_000)
  expect(store.asked - last).toBeLessThan(2)
})
