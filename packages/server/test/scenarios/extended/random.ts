/** Random numbers that a seed gives again. */
export interface Random {
  /** From 0 to 1, without 1. */
  next(): number
  /** A whole number of `from` to `to`, both included. */
  between(from: number, to: number): number
  pick<T>(from: readonly T[]): T
}

/** mulberry32: small, and good enough to choose where to cut. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    next,
    between: (from, to) => from + Math.floor(next() * (to - from + 1)),
    pick: (from) => from[Math.floor(next() * from.length)]!,
  }
}
