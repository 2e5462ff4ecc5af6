import { beforeEach, expect, test } from 'bun:test'
import { StoreError } from '../ports/store-error.ts'
import { TestTime } from '../time/timers.fixture.ts'
import type { Ephemerals, Holding } from './ephemerals.port.ts'
import { createFallen, type Fallen } from './fallen.ts'

/** A store in which a test says who has a sign. */
class TestStore implements Ephemerals {
  origin = 'first'
  isAway = false
  looks = 0
  readonly held = new Set<string>()
  holding: Holding | undefined

  hold(node: string, holding: Holding): void {
    this.holding = holding
    this.held.add(node)
    holding.onHeld()
  }

  async look(nodes: readonly string[]) {
    this.looks++
    if (this.isAway) throw new StoreError('unavailable', 'away')
    return { origin: this.origin, held: new Set(nodes.filter((node) => this.held.has(node))) }
  }

  async close() {}
}

let time: TestTime
let redis: TestStore
let postgres: TestStore
let fallen: Fallen
let fell: string[]
let doubts: boolean[]

beforeEach(async () => {
  time = new TestTime()
  redis = new TestStore()
  postgres = new TestStore()
  fell = []
  doubts = []
  fallen = createFallen({
    node: 'me',
    stores: [redis, postgres],
    others: () => ['me', 'other', 'third'],
    onFallen: (node) => void fell.push(node),
    onDoubted: (isOver) => void doubts.push(isOver),
    onError: (error) => {
      throw error
    },
    timers: time.timers,
  })
  for (const store of [redis, postgres]) for (const node of ['other', 'third']) store.held.add(node)
  fallen.start()
  await time.pass(10_000)
})

const die = (node: string) => [redis, postgres].forEach((store) => void store.held.delete(node))

test('[PLACE4] a node whose signs are gone from both stores has fallen: after 150 ms, and once', async () => {
  die('other')
  fallen.suspect('other')
  await time.pass(149)
  expect(fell).toEqual([])
  await time.pass(2)
  expect(fell).toEqual(['other'])
  fallen.suspect('other')
  await time.pass(5_000)
  expect(fell).toEqual(['other'])
})

test('nobody looks at every moment without a reason, and a reason lasts a second', async () => {
  die('other')
  await time.pass(10_000)
  expect(fell).toEqual([])
  const { looks } = redis
  fallen.suspect('third')
  await time.pass(5_000)
  expect(fell).toEqual([])
  expect(redis.looks - looks).toBeLessThan(25)
})

test('a node that dies some moments after it was suspected has fallen', async () => {
  fallen.suspect('other')
  await time.pass(400)
  die('other')
  await time.pass(250)
  expect(fell).toEqual(['other'])
})

test('a node that has a sign in one store has not fallen', async () => {
  for (const [one, other] of [
    [redis, postgres],
    [postgres, redis],
  ] as const) {
    one.held.delete('other')
    fallen.suspect('other')
    await time.pass(2_500)
    one.held.add('other')
    other.held.add('other')
  }
  expect(fell).toEqual([])
})

test('a node that takes its signs again within 150 ms has not fallen', async () => {
  for (let i = 0; i < 5; i++) {
    die('other')
    fallen.suspect('other')
    await time.pass(140)
    redis.held.add('other')
    await time.pass(60)
  }
  expect(fell).toEqual([])
})

test('a node that was never seen with both signs has not fallen', async () => {
  fallen.suspect('stranger')
  redis.held.add('late')
  await time.pass(2_500)
  redis.held.delete('late')
  fallen.suspect('late')
  await time.pass(2_500)
  expect(fell).toEqual([])
})

const unsure: Record<string, () => void> = {
  'is away': () => {
    postgres.isAway = true
  },
  'restarted or has another master': () => {
    redis.origin = 'second'
  },
  'does not show the sign of this node': () => void redis.held.delete('me'),
  'lost the connection of this node': () => postgres.holding?.onLost(),
  'took the sign of this node again just now': () => {
    postgres.holding?.onLost()
    postgres.holding?.onHeld()
  },
}
for (const [what, happen] of Object.entries(unsure)) {
  test(`nobody has fallen when a store ${what}`, async () => {
    happen()
    die('other')
    fallen.suspect('other')
    await time.pass(4_000)
    expect(fell).toEqual([])
  })
}

test('nobody has fallen within 5 s after a store restarted, or lost the sign of this node, though signs were seen again', async () => {
  redis.origin = 'second'
  await time.pass(4_500)
  die('other')
  fallen.suspect('other')
  await time.pass(1_500)
  for (const store of [redis, postgres]) store.held.add('other')
  await time.pass(10_000)
  postgres.holding?.onLost()
  postgres.holding?.onHeld()
  await time.pass(3_500)
  die('other')
  fallen.suspect('other')
  await time.pass(1_400)
  expect(fell).toEqual([])
})

test('5 s after a store restarted, nodes that were seen there again can fall', async () => {
  redis.origin = 'second'
  await time.pass(7_500)
  die('other')
  fallen.suspect('other')
  await time.pass(200)
  expect(fell).toEqual(['other'])
})

test('nobody has fallen within 5 s after this node stood still: the others may have stood still with it', async () => {
  time.standStill(60_000)
  await time.pass(100)
  die('other')
  fallen.suspect('other')
  await time.pass(4_000)
  expect(fell).toEqual([])
  for (const store of [redis, postgres]) store.held.add('other')
  await time.pass(2_500)
  die('other')
  fallen.suspect('other')
  await time.pass(200)
  expect(fell).toEqual(['other'])
})

test('a node that was found fallen and has its signs again can fall again', async () => {
  die('other')
  fallen.suspect('other')
  await time.pass(200)
  for (const store of [redis, postgres]) store.held.add('other')
  await time.pass(2_500)
  die('other')
  fallen.suspect('other')
  await time.pass(200)
  expect(fell).toEqual(['other', 'other'])
})

test('a node that lost a sign doubts itself until it has both again', () => {
  redis.holding?.onLost()
  postgres.holding?.onLost()
  redis.holding?.onHeld()
  postgres.holding?.onHeld()
  expect(doubts).toEqual([false, false, false, true])
  fallen.stop()
  redis.holding?.onLost()
  expect(doubts).toHaveLength(4)
})
