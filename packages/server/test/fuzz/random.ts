/** Random numbers that a seed repeats (mulberry32). */
export class Random {
  private state: number

  constructor(seed: number) {
    this.state = seed | 0
  }

  private next(): number {
    // A whole number of 32 bits with a sign is the one that the engine computes with at once.
    this.state = (this.state + 0x6d2b79f5) | 0
    let t = this.state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return (t ^ (t >>> 14)) >>> 0
  }

  /** 0 to n − 1. */
  int(n: number): number {
    return this.next() % n
  }

  chance(probability: number): boolean {
    return this.next() < probability * 2 ** 32
  }

  pick<T>(items: readonly T[]): T {
    return items[this.int(items.length)] as T
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.int(256)))
  }

  /** A generator of its own for a part of the work, so that parts at once do not disturb each other. */
  fork(): Random {
    return new Random(this.next())
  }
}
