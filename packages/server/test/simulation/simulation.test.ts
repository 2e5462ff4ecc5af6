import { expect, test } from 'bun:test'
import { defaultWorld } from './options.ts'
import { live, type WorldOptions } from './world.ts'

/** A short look at what a world of three nodes comes to; every seed is lived twice. */
for (const seed of [1, 2, 4]) {
  test(`three nodes and their people while things break, seed ${seed}: nothing is lost, and the same seed is the same world`, async () => {
    const options = { ...defaultWorld, seed, seconds: 20 }
    const { recording, verdict, steps } = await live(options)
    expect(verdict.violations).toEqual([])
    // It was a world that shows something.
    expect(verdict.counts.calls.ended ?? 0).toBeGreaterThan(5)
    expect(verdict.counts.relays.arrived).toBeGreaterThan(50)
    expect(recording.header.faults.length).toBeGreaterThan(2)
    const again = await live(options)
    expect(again.steps).toBe(steps)
    expect(JSON.stringify(again.recording)).toBe(JSON.stringify(recording))
  }, 120_000)
}

test('people at a desk connect calls, and call groups that ring in turn: nothing is lost, and the world repeats', async () => {
  const options = { ...defaultWorld, seed: 1, users: 6, seconds: 20, people: 'desk' } as const
  const { recording, verdict, steps } = await live(options)
  expect(verdict.violations).toEqual([])
  // It was a world that shows something.
  const connected = recording.calls.filter(({ transferred_to }) => transferred_to !== undefined)
  expect(connected.length).toBeGreaterThan(2)
  expect(recording.events.filter(({ type }) => type === 'turn').length).toBeGreaterThan(5)
  expect((await live(options)).steps).toBe(steps)
}, 120_000)

test('clocks of the stores jump: the world repeats, and the checker has what happened on one clock', async () => {
  const options = { ...defaultWorld, seed: 3, seconds: 20, mix: 'clocks' } as const
  const { recording, steps } = await live(options)
  const jumps = recording.header.faults.filter(({ kind }) => kind.startsWith('clock of'))
  expect(jumps.length).toBeGreaterThan(2)
  const { startedAt } = recording.header
  const lastAt = Math.max(...recording.traces.flatMap(({ entries }) => entries.map(({ at }) => at)))
  for (const { at } of recording.events) expect(at).toBeWithin(startedAt, startedAt + lastAt + 1)
  expect((await live(options)).steps).toBe(steps)
}, 120_000)

const plain = { people: 'plain' } as const

/** Small worlds in which something was wrong once. */
const mended: readonly (readonly [what: string, world: WorldOptions])[] = [
  [
    'a call rings at a session of which a replica that took over knows nothing',
    { ...plain, seed: 6, nodes: 3, users: 5, seconds: 4, mix: 'usual' },
  ],
  [
    'a phone that resumes has its place back from a socket that it gave up',
    { ...plain, seed: 1115, nodes: 3, users: 6, seconds: 6, without: [4, 3], mix: 'usual' },
  ],
  [
    'a node loses Redis while it asks for the holder of a place, whose client is back at this node',
    { ...plain, seed: 60722, nodes: 3, users: 6, seconds: 47, mix: 'usual' },
  ],
  [
    'a log is full of what somebody with several phones sent',
    { ...plain, seed: 61365, nodes: 3, users: 6, seconds: 6, mix: 'usual' },
  ],
  [
    'the clock of the database jumps, and rings begin before and after all nodes have seen that',
    { seed: 95000, nodes: 3, users: 4, seconds: 60, mix: 'clocks' },
  ],
  [
    'Redis was emptied, and a node that owned a session earlier writes it first',
    { ...plain, seed: 80081, nodes: 3, users: 6, seconds: 28, without: [5] },
  ],
  [
    'Redis forgot who took a session over, and an earlier owner acknowledged relays to it',
    {
      ...{ seed: 500481, nodes: 3, users: 4, seconds: 19 },
      without: [
        ...[37, 36, 35, 34, 33, 32, 31, 30, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 17, 16, 15, 14, 13, 12],
        ...[10, 8, 6, 3],
      ],
    },
  ],
  [
    'a late socket of a phone takes the place for a moment, and the phone resumes its session later',
    { seed: 350665, nodes: 3, users: 4, seconds: 6, without: [4, 3] },
  ],
  [
    'a phone asks for the end of a call, and then hears that the call is handed over to it',
    { seed: 350752, nodes: 3, users: 4, seconds: 2 },
  ],
  [
    'a call rings at a group moments after the node of a member is back from an outage, and is answered at once',
    { seed: 510158, nodes: 3, users: 4, seconds: 60 },
  ],
  [
    'Redis comes back with older data while the owner of a session stands still, and names an owner that is dead',
    { seed: 500483, nodes: 3, users: 4, seconds: 60 },
  ],
  [
    'a phone has the places of two calls in a session that it never saw, and both pass on to its own',
    {
      ...{ seed: 500462, nodes: 3, users: 4, seconds: 41 },
      without: [49, 45, 44, 38, 34, 33, 31, 29, 21, 20, 18, 15, 14, 12, 11, 8, 6],
    },
  ],
]
for (const [what, world] of mended) {
  test(`${what}: seed ${world.seed}`, async () => {
    const { recording, verdict } = await live(world)
    expect([...verdict.violations, ...recording.header.stuck]).toEqual([])
  }, 120_000)
}
