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
  /** Rounds in which the cores moved or others used the server's core, measured again. */
  repeated: number
}

/** Above this share of the server's core for somebody else a value is not the server's own. */
const disturbedShare = 0.1

/**
 * Measures every key once per round. A round in whose middle the cores moved, or others used the server's core, compares
 * nothing: it is repeated, at most half as often as good ones are needed, so that a run ends in time on any machine.
 */
export async function alternate<Key extends string, Value>(
  bench: Pick<Bench, 'distance'>,
  count: number,
  keys: readonly Key[],
  measure: (key: Key, round: number) => Promise<Value>,
  othersShares: (value: Value) => number[] = () => [],
): Promise<Rounds<Key, Value>> {
  const rounds: Round<Key, Value>[] = []
  let repeated = 0
  while (rounds.length < count) {
    const before = await distance(bench)
    const values = {} as Record<Key, Value>
    for (const key of keys) values[key] = await measure(key, rounds.length + repeated)
    const after = await distance(bench)
    const moved = bench.distance !== null && !sameDistance(before, after)
    const disturbed = keys.some((key) => othersShares(values[key]).some((share) => share > disturbedShare))
    if ((moved || disturbed) && repeated < Math.floor(count / 2)) repeated++
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
  const again =
    repeated > 0 ? `; ${repeated} rounds were repeated because the cores moved or others used the server's core` : ''
  return [`A cache line went between the two cores and back in ${range}${again}.`]
}

/** Whether others used the cores in more than a quarter of the rounds that count. */
export function isNoisy<Key extends string, Value>(
  { rounds }: Rounds<Key, Value>,
  othersShares: (value: Value) => number[],
): boolean {
  const disturbed = rounds.filter(({ values }) =>
    Object.values<Value>(values).some((value) => othersShares(value).some((share) => share > disturbedShare)),
  )
  return disturbed.length * 4 > rounds.length
}

/** Whether somebody else was using the server's core in the rounds that count. */
export function disturbance<Key extends string, Value>(
  { rounds }: Rounds<Key, Value>,
  othersShares: (value: Value) => number[],
): string {
  const known = rounds
    .flatMap((round) => Object.values<Value>(round.values).flatMap(othersShares))
    .filter((share) => !Number.isNaN(share))
  if (known.length === 0) return 'What others used of the cores is not known.'
  const [typical, most] = [median(known), Math.max(...known)]
  const verdict = most > disturbedShare ? ': some figures are disturbed' : ''
  return `Others used ${percent(typical)} of the server's core, at most ${percent(most)}${verdict}.`
}
