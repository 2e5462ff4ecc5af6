// Rounds A B C D, A B C D: the drift of the machine hits all systems alike.
import { sameDistance } from './core-distance.ts'
import type { Bench } from './measurement.ts'
import { percent } from './report.ts'
import { median } from './statistics.ts'

export interface Round<Key extends string, Value> {
  values: Record<Key, Value>
  /** Nanoseconds between the cores before and after; NaN where nothing is pinned. */
  distance: [number, number]
}

export interface Rounds<Key extends string, Value> {
  rounds: Round<Key, Value>[]
  /** Rounds during which the host moved a core, measured again. */
  repeated: number
}

/** Measures every key once per round. A round with the cores moved in its middle compares nothing and is repeated. */
export async function alternate<Key extends string, Value>(
  bench: Pick<Bench, 'distance'>,
  count: number,
  keys: readonly Key[],
  measure: (key: Key, round: number) => Promise<Value>,
): Promise<Rounds<Key, Value>> {
  const rounds: Round<Key, Value>[] = []
  let repeated = 0
  while (rounds.length < count) {
    const before = await distance(bench)
    const values = {} as Record<Key, Value>
    for (const key of keys) values[key] = await measure(key, rounds.length + repeated)
    const after = await distance(bench)
    const moved = !Number.isNaN(before) && !sameDistance(before, after)
    if (moved && repeated < count) repeated++
    else rounds.push({ values, distance: [before, after] })
  }
  return { rounds, repeated }
}

function distance(bench: Pick<Bench, 'distance'>): Promise<number> {
  return bench.distance === null ? Promise.resolve(Number.NaN) : bench.distance.measure()
}

/** One figure of one system, round by round. */
export function series<Key extends string, Value>(
  { rounds }: Rounds<Key, Value>,
  key: Key,
  figure: (value: Value) => number,
): number[] {
  return rounds.map((round) => figure(round.values[key]))
}

/** What a reader must know of the machine to judge the rounds. */
export function roundNotes<Key extends string, Value>({ rounds, repeated }: Rounds<Key, Value>): string[] {
  const all = rounds.flatMap((round) => round.distance).filter((nanoseconds) => !Number.isNaN(nanoseconds))
  if (all.length === 0) return []
  const range = `${Math.round(Math.min(...all))} to ${Math.round(Math.max(...all))} ns`
  const again = repeated > 0 ? `; ${repeated} rounds were repeated because the cores moved in between` : ''
  return [`A cache line went between the two cores and back in ${range}${again}.`]
}

/** Whether somebody else was using the server's core; the shares are those while Ringwire was measured. */
export function disturbance(othersShares: readonly number[]): string {
  const known = othersShares.filter((share) => !Number.isNaN(share))
  if (known.length === 0) return 'What others used of the cores is not known.'
  const typical = median(known)
  return `Others used ${percent(typical)} of the server's core${typical > 0.05 ? ': the figures are disturbed' : ''}.`
}
