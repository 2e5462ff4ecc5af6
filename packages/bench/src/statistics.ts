// The arithmetic of the report.

export interface Spread {
  median: number
  min: number
  max: number
}

export function median(values: readonly number[]): number {
  if (values.length === 0) throw new Error('The median of nothing')
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

export function spread(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) }
}

/** One ratio per round: both values of a round were measured within seconds of each other. */
export function ratios(numerators: readonly number[], denominators: readonly number[]): number[] {
  if (numerators.length !== denominators.length) throw new Error('A round is missing a value')
  return numerators.map((numerator, round) => {
    const denominator = denominators[round]!
    if (!(denominator > 0)) throw new Error(`Round ${round + 1} has nothing to compare with`)
    return numerator / denominator
  })
}

/** The smallest value that `share` of all do not exceed (nearest rank). */
export function percentile(values: readonly number[], share: number): number {
  if (values.length === 0) throw new Error('The percentile of nothing')
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(1, Math.ceil(sorted.length * share)) - 1]!
}

/** A longer latency counts as this one. In microseconds. */
export const LONGEST_US = 500_000
const USUAL_US = 4096

/** Latencies by the microsecond; what is longer than half a second counts as that. */
export class LatencyHistogram {
  #counts: Uint32Array

  constructor(counts: readonly number[] = []) {
    this.#counts = new Uint32Array(Math.max(USUAL_US, counts.length))
    this.#counts.set(counts)
  }

  record(nanoseconds: number): void {
    const us = Math.min(LONGEST_US, Math.floor(nanoseconds / 1000))
    if (us >= this.#counts.length) this.#growTo(us + 1)
    this.#counts[us]!++
  }

  #growTo(length: number): void {
    const counts = new Uint32Array(Math.max(length, Math.min(LONGEST_US + 1, 2 * this.#counts.length)))
    counts.set(this.#counts)
    this.#counts = counts
  }

  clear(): void {
    this.#counts.fill(0)
  }

  add(counts: readonly number[]): void {
    if (counts.length > this.#counts.length) this.#growTo(counts.length)
    for (const [us, count] of counts.entries()) this.#counts[us]! += count
  }

  /** Without the empty tail, so that it is cheap to send to another process. */
  counts(): number[] {
    let end = this.#counts.length
    while (end > 0 && this.#counts[end - 1] === 0) end--
    return Array.from(this.#counts.subarray(0, end))
  }

  /** The smallest latency in microseconds that `share` of all records do not exceed (nearest rank). */
  percentile(share: number): number {
    let total = 0
    for (const count of this.#counts) total += count
    if (total === 0) throw new Error('The percentile of nothing')
    const rank = Math.max(1, Math.ceil(total * share))
    let seen = 0
    for (const [us, count] of this.#counts.entries()) {
      seen += count
      if (seen >= rank) return us
    }
    return LONGEST_US
  }
}
