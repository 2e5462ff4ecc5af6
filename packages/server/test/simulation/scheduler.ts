import { drainMicrotasks } from 'bun:jsc'
import type { Cancel, Timers } from '../../src/ports/clock.ts'
import type { Random } from '../fuzz/random.ts'

interface Event {
  readonly at: number
  /** Drawn: what is due at the same time comes in any order. */
  readonly lot: number
  readonly nth: number
  /** The process in which it happens. */
  readonly host: Host | undefined
  /** Undefined: it does not happen any more. */
  run: (() => void) | undefined
  /** Where it is in the heap; -1: nowhere any more. */
  place: number
}

/** Lets everything that promises have made due happen. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

/**
 * Virtual time. Every change in a simulated world is an event of it: one after another, in an order that a seed chooses.
 *
 *   const scheduler = new Scheduler(random)
 *   scheduler.after(5, () => …)
 *   await scheduler.run(60_000)
 */
export class Scheduler {
  /** In ms since the world began. */
  now = 0
  /** How many events there were. */
  steps = 0
  private readonly random: Random
  private readonly heap: Event[] = []
  private nth = 0

  constructor(random: Random) {
    this.random = random
  }

  /** `host`: the process in which it happens; undefined: in none of the world's. */
  after(ms: number, run: () => void, host?: Host): Cancel {
    const at = this.now + Math.max(0, ms)
    const event: Event = { at, lot: this.random.int(2 ** 20), nth: this.nth++, host, run, place: -1 }
    const { heap } = this
    heap.push(event)
    this.rise(event, heap.length - 1)
    return () => this.cancel(event)
  }

  /** It leaves the heap at once: most are time limits, and of those nearly none is ever due. */
  private cancel(event: Event): void {
    event.run = undefined
    if (event.place >= 0) this.remove(event.place)
  }

  /** Until `until` ms have passed since the beginning, or `isOver` says so. */
  async run(until: number, isOver: () => boolean = () => false): Promise<void> {
    do await settled()
    while (this.step(until, isOver))
  }

  /**
   * The same in one turn of the real event loop, which is many times faster: a turn for each event costs more than most events.
   * Nothing else happens in this process meanwhile, so the parts that live in this time wait for nothing real.
   * `setImmediate` is replaced until the end.
   */
  async runAtOnce(until: number, isOver: () => boolean): Promise<void> {
    await settled()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const real = globalThis.setImmediate
    real(() => {
      try {
        this.stepThrough(until, isOver, real)
        resolve()
      } catch (error) {
        reject(error)
      }
    })
    return promise
  }

  private stepThrough(until: number, isOver: () => boolean, real: typeof setImmediate): void {
    let isThrough = false
    const step = () => {
      isThrough = !this.step(until, isOver)
      due.push(step)
    }
    let due: (() => void)[] = [step]
    let turn: (() => void)[] = []
    globalThis.setImmediate = ((what: () => void) => void due.push(what)) as unknown as typeof setImmediate
    try {
      while (!isThrough) {
        ;[turn, due] = [due, turn]
        for (const what of turn) {
          what()
          if (isThrough) return
          drainMicrotasks()
        }
        turn.length = 0
      }
    } finally {
      globalThis.setImmediate = real
    }
  }

  /** The next event; false when there is none any more. */
  private step(until: number, isOver: () => boolean): boolean {
    if (isOver()) return false
    const next = this.heap[0]
    if (next === undefined || next.at > until) {
      this.now = Math.max(this.now, until)
      return false
    }
    this.remove(0)
    this.now = next.at
    this.steps++
    if (next.host === undefined) next.run?.()
    else next.host.take(next)
    return true
  }

  private remove(place: number): void {
    const { heap } = this
    ;(heap[place] as Event).place = -1
    const last = heap.pop() as Event
    if (place === heap.length) return
    if (place > 0 && isBefore(last, heap[(place - 1) >> 1] as Event)) this.rise(last, place)
    else this.sink(last, place)
  }

  private rise(event: Event, from: number): void {
    const { heap } = this
    let at = from
    while (at > 0) {
      const above = (at - 1) >> 1
      const parent = heap[above] as Event
      if (!isBefore(event, parent)) break
      heap[at] = parent
      parent.place = at
      at = above
    }
    heap[at] = event
    event.place = at
  }

  private sink(event: Event, from: number): void {
    const { heap } = this
    let at = from
    for (;;) {
      const left = 2 * at + 1
      if (left >= heap.length) break
      const right = left + 1
      const below = right < heap.length && isBefore(heap[right] as Event, heap[left] as Event) ? right : left
      const least = heap[below] as Event
      if (!isBefore(least, event)) break
      heap[at] = least
      least.place = at
      at = below
    }
    heap[at] = event
    event.place = at
  }
}

function isBefore(one: Event, other: Event): boolean {
  if (one.at !== other.at) return one.at < other.at
  return one.lot !== other.lot ? one.lot < other.lot : one.nth < other.nth
}

/**
 * The longest that the end of a turn may come after its beginning, in ms: everything that comes meanwhile belongs to the
 * same turn.
 */
const turnMs = 0.5

/** A process: it runs, stands still, or is dead. Work that is due while it stands still happens when it goes on. */
export class Host {
  readonly timers: Timers
  private readonly scheduler: Scheduler
  private readonly random: Random
  private isDead = false
  private standsStill = false
  /** What was due while it stood still, and what came since and has to wait for that. */
  private waiting: Event[] = []
  private isCatchingUp = false
  private lastTurn = 0
  private readonly mourners: (() => void)[] = []

  constructor(scheduler: Scheduler, random: Random) {
    this.scheduler = scheduler
    this.random = random
    this.timers = {
      monotonic: () => scheduler.now,
      after: (ms, what) => this.after(ms, what),
      every: (ms, what) => this.every(ms, what),
      turn: (what) => this.turn(what),
      sleep: (ms) => new Promise((resolve) => void this.after(ms, resolve)),
    }
  }

  get isAlive(): boolean {
    return !this.isDead
  }

  get isStopped(): boolean {
    return this.standsStill
  }

  /** kill -9: nothing of it happens any more. */
  kill(): void {
    if (this.isDead) return
    this.isDead = true
    this.waiting = []
    for (const tell of this.mourners.splice(0)) tell()
  }

  /** Calls when it is killed. */
  onDeath(tell: () => void): void {
    this.mourners.push(tell)
  }

  /** SIGSTOP. */
  stop(): void {
    if (!this.isDead) this.standsStill = true
  }

  /** SIGCONT: what was due meanwhile happens now, in the order in which it was due, and before anything else. */
  goOn(): void {
    this.standsStill = false
    if (!this.isCatchingUp) this.catchUp()
  }

  private catchUp(): void {
    this.isCatchingUp = this.waiting.length > 0
    if (!this.isCatchingUp) return
    this.scheduler.after(0, () => {
      if (!this.standsStill) this.waiting.shift()?.run?.()
      if (this.standsStill) this.isCatchingUp = false
      else this.catchUp()
    })
  }

  /** Something happens in this process after `ms` milliseconds. */
  after(ms: number, what: () => void): Cancel {
    return this.scheduler.after(ms, what, this)
  }

  /** Something is due in this process. */
  take(event: Event): void {
    if (this.isDead) return
    if (this.standsStill || this.isCatchingUp) this.waiting.push(event)
    else event.run?.()
  }

  private every(ms: number, what: () => void): Cancel {
    let cancel: Cancel
    const again = () => {
      cancel = this.after(ms, () => {
        again()
        what()
      })
    }
    again()
    return () => cancel()
  }

  /** In order: one turn is over before the next one. */
  private turn(what: () => void): void {
    const at = Math.max(this.lastTurn, this.scheduler.now + (this.random.int(1_000) / 1_000) * turnMs)
    this.lastTurn = at + 1e-6
    this.after(at - this.scheduler.now, what)
  }
}
