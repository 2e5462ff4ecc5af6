/** Requests of one sender of which this is remembered: more than a client may have under way [ORD1]. A multiple of 32. */
const remembered = 1_024
const words = remembered / 32

/**
 * Which requests of one sending session were taken, exactly [EXT4]: 11 may have been taken and 10 refused, and 10 comes
 * again. A window of bits behind the highest one; what is older than that counts as taken.
 */
export class Taken {
  private bits = new Uint32Array(words)
  private highest = 0
  /** As it was written last, until another request is taken. */
  private text: string | undefined

  /** Takes note of a request; false where it was taken before. */
  take(n: number): boolean {
    if (this.has(n)) return false
    this.text = undefined
    if (n - this.highest >= remembered) this.bits.fill(0)
    else for (let next = this.highest + 1; next <= n; next++) this.clear(next)
    this.highest = Math.max(this.highest, n)
    this.bits[wordOf(n)]! |= bitOf(n)
    return true
  }

  has(n: number): boolean {
    if (n > this.highest) return false
    if (n <= this.highest - remembered) return true
    return (this.bits[wordOf(n)]! & bitOf(n)) !== 0
  }

  /** Whether a later one was taken, and this one was not: it was refused. */
  isLate(n: number): boolean {
    return n < this.highest && !this.has(n)
  }

  /** The requests that another session has taken count as taken here, too. */
  join(other: Taken): void {
    for (let n = Math.max(1, other.highest - remembered + 1); n <= other.highest; n++) if (other.has(n)) this.take(n)
  }

  /** The same, but for these requests. */
  without(requests: Iterable<number>): Taken {
    const taken = Taken.read(this.write())
    for (const n of requests) if (n > taken.highest - remembered && n <= taken.highest) taken.clear(n)
    return taken
  }

  /** All that is remembered, as text. */
  write(): string {
    this.text ??= `${this.highest} ${new Uint8Array(this.bits.buffer).toBase64()}`
    return this.text
  }

  static read(text: string): Taken {
    const [highest = '', bits = ''] = text.split(' ')
    const taken = new Taken()
    taken.highest = Number(highest)
    taken.bits = new Uint32Array(Uint8Array.fromBase64(bits).buffer)
    return taken
  }

  private clear(n: number): void {
    this.bits[wordOf(n)]! &= ~bitOf(n)
  }
}

const wordOf = (n: number) => (n >>> 5) % words
const bitOf = (n: number) => 1 << (n & 31)
