import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createBalance, fewSockets, restMs } from './balance.ts'

interface Client {
  arrivedAt: number
  moves: number
}

/** Which node a client gets that connects again: `from` is the one that closed it. */
type Balancer = (counts: readonly number[], from: number, random: () => number) => number

const indexOf = (counts: readonly number[], wanted: number) => counts.indexOf(wanted)

/** Load balancers with which nodes come to hold as many sockets as each other. */
const spreading = {
  'the fewest connections': () => (counts) => indexOf(counts, Math.min(...counts)),
  'round robin': () => {
    let turn = 0
    return (counts) => turn++ % counts.length
  },
  random: () => (counts, _, random) => Math.floor(random() * counts.length),
} satisfies Record<string, () => Balancer>

/** Those that spread badly: no close helps. */
const stubborn = {
  'sticks to a node': () => (_, from) => from,
  'the most connections': () => (counts) => indexOf(counts, Math.max(...counts)),
  'leaves out the first node': () => (counts) => 1 + indexOf(counts.slice(1), Math.min(...counts.slice(1))),
  'two nodes out of all, at random': () => (counts, _, random) => counts.length - 1 - Math.floor(random() * 2),
} satisfies Record<string, () => Balancer>

const settledMs = 60_000

/** Nodes that serve together: each hears of the others two seconds late, and a client is away for a second. */
function simulate(sizes: readonly number[], perSecond: number, balancer: Balancer, random: () => number) {
  const nodes = sizes.map((size) => ({
    clients: Array.from({ length: size }, (): Client => ({ arrivedAt: -settledMs, moves: 0 })),
    balance: createBalance(perSecond),
  }))
  const all = nodes.flatMap(({ clients }) => clients)
  const counts = () => nodes.map(({ clients }) => clients.length)
  const heard = [counts(), counts(), counts()]
  let air: { client: Client; from: number }[] = []
  let closes = 0
  let last = 0

  function second(now: number): void {
    const late = heard.shift() as number[]
    const leaving = nodes.flatMap(({ clients, balance }, from) => {
      const others = late.filter((_, i) => i !== from)
      const surplus = balance.surplus({ own: clients.length, others, now })
      const settled = clients.findIndex(({ arrivedAt }) => now - arrivedAt < settledMs)
      const gone = clients.splice(0, Math.min(surplus, settled < 0 ? clients.length : settled))
      balance.closed(gone.length)
      return gone.map((client) => ({ client, from }))
    })
    for (const { client, from } of air) {
      nodes[balancer(counts(), from, random)]?.clients.push(Object.assign(client, { arrivedAt: now }))
    }
    air = leaving
    closes += leaving.length
    if (leaving.length > 0) last = now
    for (const { client } of leaving) client.moves++
    heard.push(counts())
  }

  let now = 0
  return {
    run(seconds: number) {
      for (const end = now + seconds * 1000; now < end; now += 1000) second(now)
      return { counts: counts(), closes, lastCloseAt: last, moves: Math.max(0, ...all.map(({ moves }) => moves)) }
    },
  }
}

/** Reproducible from its seed, 0 to 1 (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const cases = fc.record({
  sizes: fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 2, maxLength: 6 }),
  perSecond: fc.constantFrom(1, 10, 100, 1_000),
  seed: fc.integer(),
})
const runs = { numRuns: 25 }
const surplusOf = (sizes: readonly number[]) => {
  const share = sizes.reduce((sum, size) => sum + size, 0) / sizes.length
  return sizes.reduce((sum, size) => sum + Math.max(0, size - share), 0)
}

describe('[BAL1] nodes that send clients to each other', () => {
  for (const [name, create] of Object.entries(spreading)) {
    test(`${name}: each comes within its share, and then nobody moves any more`, () => {
      fc.assert(
        fc.property(cases, ({ sizes, perSecond, seed }) => {
          const nodes = simulate(sizes, perSecond, create(), randomFrom(seed))
          const { counts, closes, lastCloseAt, moves } = nodes.run(6_000)
          const share = counts.reduce((sum, count) => sum + count, 0) / counts.length
          const most = Math.max(fewSockets - 1, share * 1.1)
          expect(Math.max(...counts)).toBeLessThanOrEqual(most)
          // If one node of all has room, only one close of as many fills it.
          expect(closes).toBeLessThanOrEqual(2 * sizes.length * (surplusOf(sizes) + 10))
          expect(moves).toBeLessThanOrEqual(12)
          expect(lastCloseAt).toBeLessThan(5_000_000)
        }),
        runs,
      )
    }, 240_000)
  }

  for (const [name, create] of Object.entries(stubborn)) {
    test(`${name}: clients are closed for nothing only now and then`, () => {
      fc.assert(
        fc.property(cases, ({ sizes, perSecond, seed }) => {
          const nodes = simulate(sizes, perSecond, create(), randomFrom(seed))
          const hours = 3
          const { moves } = nodes.run(hours * 3_600)
          // One trial after each rest of ten minutes, in which a client is closed once.
          expect(moves).toBeLessThanOrEqual((hours * (3_600_000 / restMs) + 1) * sizes.length)
        }),
        runs,
      )
    }, 240_000)
  }

  test('a node that is within its share, or has few sockets, or is the only one, closes none', () => {
    const surplus = (own: number, others: readonly number[]) => createBalance(1000).surplus({ own, others, now: 0 })
    expect(surplus(110, [95, 95])).toBe(0)
    expect(surplus(111, [95, 94])).toBe(2)
    expect(surplus(fewSockets - 1, [0, 0])).toBe(0)
    expect(surplus(fewSockets, [0, 0])).toBe(2)
    expect(surplus(5_000, [])).toBe(0)
    expect(surplus(100, [100, 5_000])).toBe(0)
  })

  test('it closes as many a second as it may at most, and less the nearer it is', () => {
    const surplus = (own: number, perSecond: number) =>
      createBalance(perSecond).surplus({ own, others: [0, 0], now: 0 })
    expect(surplus(30_000, 5)).toBe(5)
    expect(surplus(30_000, 1_000)).toBe(1_000)
    expect(surplus(300, 1_000)).toBe(20)
  })

  test('it rests if a hundred closes fill no other node, and then tries again', () => {
    const balance = createBalance(10)
    const at = (now: number) => {
      const count = balance.surplus({ own: 1_000, others: [0, 0], now })
      balance.closed(count)
      return count
    }
    let now = 0
    for (; at(now) > 0; now += 1_000);
    expect(now).toBe(10_000)
    expect(balance.isResting(now)).toBe(true)
    expect(at(now + restMs - 1)).toBe(0)
    expect(balance.isResting(now + restMs)).toBe(false)
    expect(at(now + restMs)).toBe(10)
  })

  /** A node that closes sockets each second, whose clients go to the others by turns; `sizes` is what each node has. */
  function closing(sizes: number[]) {
    const balance = createBalance(100)
    let now = 0
    let turn = 0
    return {
      balance,
      /** A second in which nobody is old enough to be closed. */
      look() {
        balance.surplus({ own: sizes[0] ?? 0, others: sizes.slice(1), now })
        now += 1_000
      },
      /** A second that closes as many as it should; answers how many. */
      close(): number {
        const count = balance.surplus({ own: sizes[0] ?? 0, others: sizes.slice(1), now })
        balance.closed(count)
        for (let i = 0; i < count; i++) {
          const to = 1 + (turn++ % (sizes.length - 1))
          sizes[0] = (sizes[0] ?? 0) - 1
          sizes[to] = (sizes[to] ?? 0) + 1
        }
        now += 1_000
        return count
      },
    }
  }

  test('clients that connected before the first close, while it could close none yet, are no failure of it', () => {
    const sizes = [0, 0, 0]
    const { balance, look, close } = closing(sizes)
    for (; (sizes[0] as number) < 99; (sizes[0] as number) += 3) look()
    while (close() > 0);
    expect(balance.isResting(100_000)).toBe(false)
    expect(Math.max(...sizes)).toBeLessThan(37)
  })

  test('clients that connect while it closes others are no failure of it', () => {
    const sizes = [400, 0, 0]
    const { balance, close } = closing(sizes)
    for (let i = 0; i < 60; i++) {
      close()
      sizes[0] = (sizes[0] ?? 0) + 20
    }
    expect(balance.isResting(60_000)).toBe(false)
  })

  test('a node that starts while it closes is no failure of it', () => {
    const sizes = [300, 0]
    const { balance, close } = closing(sizes)
    for (let i = 0; i < 8; i++) close()
    sizes.push(0)
    while (close() > 0);
    expect(balance.isResting(100_000)).toBe(false)
    expect(sizes[0]).toBeLessThanOrEqual(110)
  })
})
