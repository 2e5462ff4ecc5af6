import type { Cancel } from '../../src/ports/clock.ts'
import { StoreError } from '../../src/ports/store-error.ts'
import type { Random } from '../fuzz/random.ts'
import type { Host, Scheduler } from './scheduler.ts'

/** What messages come to, or pass: it works, stands still, or is away. */
export class Part {
  private state: 'works' | 'stands still' | 'is away' = 'works'
  /** What came while it stood still. */
  private readonly held: (() => void)[] = []

  get isUp(): boolean {
    return this.state !== 'is away'
  }

  get works(): boolean {
    return this.state === 'works'
  }

  /** Something comes to it. A part that is away loses it. */
  take(work: () => void): void {
    if (this.state === 'works') work()
    else if (this.state === 'stands still') this.held.push(work)
  }

  /** SIGSTOP, or a network in which nothing arrives. */
  stop(): void {
    if (this.state === 'works') this.state = 'stands still'
  }

  /** It loses everything that it had not read. */
  end(): void {
    this.state = 'is away'
    this.held.length = 0
  }

  /** It is there again, or goes on: what came while it stood still comes now. */
  goOn(): void {
    this.state = 'works'
    for (const work of this.held.splice(0)) work()
  }
}

/** A store, which has a wall clock. */
export class Server extends Part {
  /** By how much its clock has jumped, in ms. */
  protected jumpedMs = 0

  /** Its clock is put forward by `ms`, or back. */
  jump(ms: number): void {
    this.jumpedMs += ms
  }
}

/** How things are between a node and a store. */
export class Link extends Part {
  /** Of so many commands in a thousand the connection loses its answer, and those that follow, until it breaks. */
  lossPerMille = 0
  /** The longest that one way takes, in ms. */
  latencyMs: number

  constructor(latencyMs: number) {
    super()
    this.latencyMs = latencyMs
  }
}

/** A connection of a node to a store: in order, at its own pace, and at times nowhere. */
export interface Way {
  readonly link: Link
  /**
   * `work` is what the store does, at once. Rejects with a `StoreError`, after `limitMs` at the latest: after `unknown` it may
   * have been done, or is done later.
   */
  send<T>(work: () => T, limitMs?: number): Promise<T>
  /** Whether commands can be sent. */
  isUp(): boolean
  /** The connection breaks: what is under way has no answer, and was done or not. */
  cut(): void
  /** Called when it breaks. */
  onCut: () => void
}

/** Nobody waits longer for a store, in ms. */
const deadlineMs = 4_000
/** The shortest that one way takes, in ms. */
const shortestMs = 0.05
/** The longest that a connection lasts which brings no answers any more, in ms. */
const silentMs = 6_000

/** A command that has no answer yet. */
interface Pending<T = never> {
  /** It does not get there any more. */
  isStopped: boolean
  readonly resolve: (result: T) => void
  readonly reject: (error: unknown) => void
  /** Its time limit does not matter any more. */
  cancel: Cancel
}

export function createWay(scheduler: Scheduler, host: Host, random: Random, link: Link, store: Part): Way {
  let lastThere = 0
  let lastBack = 0
  let isSilent = false
  /** In the order in which they were sent. */
  const pending = new Set<Pending>()
  const draw = () => shortestMs + (random.int(1_000) / 1_000) * link.latencyMs

  const isUp = () => link.isUp && store.isUp

  /** Those that were sent last do not get there. */
  function cut(): void {
    const all = [...pending]
    for (const each of all.slice(random.int(all.length + 1))) each.isStopped = true
    for (const each of all) fail(each, 'the connection to the store was lost')
    isSilent = false
    way.onCut()
  }

  function fail(command: Pending, why: string): void {
    end(command)
    command.reject(new StoreError('unknown', why))
  }

  function end(command: Pending): void {
    command.cancel()
    pending.delete(command)
  }

  function arrive(command: Pending, give: () => void): void {
    if (isSilent || !pending.has(command)) return
    end(command)
    give()
  }

  /** `give` hands the node a message. */
  function answer(command: Pending, give: () => void): void {
    lastBack = Math.max(lastBack, scheduler.now + draw()) + 1e-6
    host.after(lastBack - scheduler.now, () => {
      if (link.works) arrive(command, give)
      // The node may be dead, or stand still, by then.
      else link.take(() => void host.after(0, () => arrive(command, give)))
    })
  }

  const way: Way = {
    link,
    onCut() {},
    isUp,
    send<T>(work: () => T, limitMs = deadlineMs): Promise<T> {
      if (!isUp()) return Promise.reject(new StoreError('unavailable', 'the store is not connected'))
      const { promise, resolve, reject } = Promise.withResolvers<T>()
      const command: Pending<T> = { isStopped: false, resolve, reject, cancel: never }
      command.cancel = host.after(limitMs, () => fail(command, 'the store did not answer in time'))
      pending.add(command)
      if (random.int(1_000) < link.lossPerMille && !isSilent) {
        isSilent = true
        host.after(random.int(silentMs), cut)
      }
      lastThere = Math.max(lastThere, scheduler.now + draw()) + 1e-6
      const done = () => !command.isStopped && answer(command, carryOut(work, resolve, reject))
      // Also where the node is dead by then.
      scheduler.after(lastThere - scheduler.now, () => {
        if (link.works && store.works) done()
        else link.take(() => store.take(done))
      })
      return promise
    },
    cut,
  }
  return way
}

const never = () => {}

/** Does what a store does at once. Answers what to do with its answer. */
function carryOut<T>(work: () => T, resolve: (result: T) => void, reject: (error: unknown) => void): () => void {
  try {
    const result = work()
    return () => resolve(result)
  } catch (error) {
    return () => reject(error)
  }
}
