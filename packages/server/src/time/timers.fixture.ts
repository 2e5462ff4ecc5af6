import type { Timers } from '../ports/clock.ts'

/** Time that passes when a test says so. */
export class TestTime {
  now = 0
  private due: { at: number; what: () => void }[] = []

  readonly timers: Timers = {
    monotonic: () => this.now,
    after: (ms, what) => this.add(ms, what),
    every: (ms, what) => {
      let cancel = () => {}
      const again = () => {
        cancel = this.add(ms, () => {
          again()
          what()
        })
      }
      again()
      return () => cancel()
    },
    turn: (what) => void this.add(0, what),
    sleep: (ms) => new Promise((resolve) => void this.add(ms, resolve)),
  }

  private add(ms: number, what: () => void): () => void {
    const each = { at: this.now + ms, what }
    this.due.push(each)
    return () => {
      this.due = this.due.filter((other) => other !== each)
    }
  }

  /** This process stands still, and what was due meanwhile is done afterwards. */
  standStill(ms: number): void {
    this.now += ms
    for (const each of this.due) each.at = Math.max(each.at, this.now)
  }

  async pass(ms: number): Promise<void> {
    const end = this.now + ms
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve))
      const next = this.due.toSorted((one, other) => one.at - other.at)[0]
      if (next === undefined || next.at > end) break
      this.due = this.due.filter((other) => other !== next)
      this.now = next.at
      next.what()
    }
    this.now = end
  }
}
