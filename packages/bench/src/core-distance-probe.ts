// One end of the measurement in core-distance.ts: `echo` adds one to what `ask` has written.
import type { ProbeCommand, ProbeReply } from './core-distance.ts'

const BATCHES = 8
const ROUND_TRIPS = 2000
const SPINS_PER_LOOK = 20_000
/** On a machine with no time for one of the two the other must not turn for ever. */
const PATIENCE_MS = 500
/** Words of the shared memory: the ball, and the number of the last measurement that is over. */
const BALL = 0
const OVER = 1

function echo(shared: Int32Array, measurement: number): void {
  const deadline = performance.now() + PATIENCE_MS
  do {
    for (let i = 0; i < SPINS_PER_LOOK; i++) {
      const value = Atomics.load(shared, BALL)
      if ((value & 1) === 1) Atomics.store(shared, BALL, value + 1)
    }
  } while (Atomics.load(shared, OVER) !== measurement && performance.now() < deadline)
}

/** The best of some batches: whatever else ran on these cores only adds. NaN when nobody answered. */
function ask(shared: Int32Array): number {
  let best = Number.NaN
  for (let batch = 0; batch < BATCHES; batch++) {
    const start = Bun.nanoseconds()
    for (let i = 0; i < ROUND_TRIPS; i++) {
      if (!throwAndCatch(shared)) return best
    }
    const each = (Bun.nanoseconds() - start) / ROUND_TRIPS
    if (!(each > best)) best = each
  }
  return best
}

function throwAndCatch(shared: Int32Array): boolean {
  const thrown = Atomics.load(shared, BALL) | 1
  Atomics.store(shared, BALL, thrown)
  for (let i = 0; i < SPINS_PER_LOOK; i++) {
    if (Atomics.load(shared, BALL) === thrown + 1) return true
  }
  const deadline = performance.now() + PATIENCE_MS
  while (performance.now() < deadline) {
    if (Atomics.load(shared, BALL) === thrown + 1) return true
  }
  return false
}

function serve(role: string, path: string): void {
  const shared = new Int32Array(Bun.mmap(path, { shared: true }).buffer)
  process.on('message', ({ measurement }: ProbeCommand) => {
    if (role === 'echo') {
      echo(shared, measurement)
      return
    }
    const reply: ProbeReply = { nanoseconds: ask(shared) }
    Atomics.store(shared, OVER, measurement)
    process.send?.(reply)
  })
  process.on('disconnect', () => process.exit(0))
}

serve(process.argv[2] ?? '', process.argv[3] ?? '')
