import { expect, test } from 'bun:test'
import { fewSockets } from './balance.ts'
import { type Candidate, createRebalance } from './rebalance.ts'

/** So many sockets that the share of a node is half as many. */
const sockets = 200
const share = sockets / 2
const settledMs = 60_000

interface Socket extends Candidate {
  isOpen: boolean
}

function socket(n: number, more: Partial<Candidate> & { extended?: boolean; expiresAt?: number } = {}): Socket {
  const { extended = true, expiresAt = 1, ...rest } = more
  const session = { sessionId: `s${n}`, extended, expiresAt } as Candidate['session']
  return { session, isOpen: true, isBusy: false, openedAt: 0, ...rest }
}

/** A node beside an empty one, at a time at which every socket is old enough. */
function start(connections: readonly Socket[], perSecond = 1_000) {
  const open = new Set(connections)
  const inCall = new Set<string>()
  const said: string[] = []
  let [now, others] = [settledMs, [0]]
  const rebalance = createRebalance<Socket>({
    perSecond,
    connections: () => open,
    loads: () => others,
    sessions: { isIdle: (sessionId) => !inCall.has(sessionId) },
    clock: { now: () => 0, monotonic: () => now },
    journal: { rebalancing: (what) => void said.push(what) },
    part(closed) {
      closed.isOpen = false
      open.delete(closed)
    },
  })
  return {
    open,
    inCall,
    said,
    /** Ticks for this time in ms. Clients whose socket was closed reach the other node. */
    run(ms: number) {
      for (const end = now + ms; now < end; now += 500) {
        rebalance.look()
        others = [connections.length - open.size]
      }
    },
  }
}

const many = (count: number, more?: Parameters<typeof socket>[1]) =>
  Array.from({ length: count }, (_, n) => socket(n, more))

test('[BAL1] the oldest sockets go first, so many a second, until the node is within its share', () => {
  const connections = many(sockets)
  const node = start(connections, 4)
  node.run(1_000)
  expect(node.open.size).toBe(sockets - 4)
  expect(connections.slice(0, 4).every(({ isOpen }) => !isOpen)).toBe(true)
  node.run(1_000)
  expect(node.open.size).toBe(sockets - 8)
  node.run(600_000)
  expect(node.open.size).toBeLessThanOrEqual(share * 1.1)
  expect(node.open.size).toBeGreaterThanOrEqual(share)
  expect(node.said).toEqual(['begins'])
})

test('[BAL1] a socket stays that is new, busy, or of a base client, a call or a token that is over', () => {
  const staying = [
    ...many(40, { openedAt: 1 }),
    ...many(40, { isBusy: true }),
    ...many(40, { extended: false }),
    ...many(40, { expiresAt: 0 }),
  ]
  const talking = Array.from({ length: 40 }, (_, n) => socket(1_000 + n))
  const node = start([...staying, ...talking])
  for (const { session } of talking) node.inCall.add(session.sessionId)
  node.run(1)
  expect(node.open.size).toBe(sockets)
  expect(node.said).toEqual([])
  // The call is over; the new ones are a minute old.
  node.inCall.clear()
  node.run(600_000)
  expect(node.open.size).toBe(120)
  expect([...node.open].map(({ openedAt }) => openedAt)).not.toContain(1)
  expect([...talking, ...staying.slice(0, 40)].every(({ isOpen }) => !isOpen)).toBe(true)
})

test('[BAL1] a node with few sockets closes none', () => {
  const node = start(many(fewSockets - 1))
  node.run(600_000)
  expect(node.open.size).toBe(fewSockets - 1)
})
