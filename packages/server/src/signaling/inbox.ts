import type { Call } from '../call/call.ts'
import type { UnderWay, Waiter } from '../calls/request.ts'
import type { MaybePromise } from '../ports/maybe.ts'
import { aboutCall } from './about.ts'
import type { DispatchResult, Refusal } from './dispatch.ts'

/** The most that may wait on one socket [ORD1]; bytes are counted in UTF-16 code units. */
export const inboxLimits = { messages: 512, bytes: 256 * 1024 } as const
/** The most that may be on its way to other nodes from one socket before the next message waits; bytes in UTF-16 code units. */
export const underWayLimits = { messages: 64, bytes: 128 * 1024 } as const

/** Whose messages these are. */
export interface InboxOwner {
  /** Its client numbers its requests itself [EXT4]. */
  readonly isNumbered: boolean
  /** Does what a message asks for, and never rejects; the next one's turn is when it is done. */
  handle(message: Message): MaybePromise<void>
  /**
   * The subjects of a message: messages that share none of them may overtake one that waits for a sign of life.
   * Undefined: it overtakes nothing, and nothing overtakes it.
   */
  aboutOf(message: Message): readonly string[] | undefined
  /** The call that a message hangs up. */
  hangUpOf(message: Message): string | undefined
  /**
   * Of a client that numbers its requests: does what a message asks for before its turn, in which it is only answered. False:
   * nothing was done, because it can't be, or is about the same as `outside`. Never rejects.
   */
  doEarly(message: Message, outside: Message): MaybePromise<boolean>
  /** Makes room for `bytes` among the messages of the participant. False: there is none. */
  hold(bytes: number): boolean
  release(bytes: number): void
  /** Too much waits. */
  onFull(): void
  /** Something waits, and is not read before `resume`. */
  onPaused(): void
  /** Nothing is under way, and nothing waits. */
  onIdle(): void
}

const isEarly = (message: Message) => message.isEarly

/** A message that waits for an answer from outside, and how to hang it up. */
interface Outside {
  readonly callUuid: string | undefined
  readonly abort: AbortController
}

/** A message that waits for its turn, or has it. One over the rate is refused in its turn, too. */
export class Message implements Waiter {
  readonly text: string
  readonly refusal: Refusal | undefined
  /** Its place in the order in which they came. */
  readonly place: number
  about: readonly string[] | undefined
  /** Its bytes are counted as waiting. */
  isHeld = false
  isUnderWay = false
  /** Its request was done before its turn [HOOK5]. */
  isEarly = false
  /** Then: how it is answered. */
  result: DispatchResult | undefined
  /** See `Waiter`; as it was when its turn came. */
  ahead: UnderWay | undefined
  /** As a relay that is on its way. */
  n: number | undefined
  private readonly inbox: Inbox

  constructor(inbox: Inbox, place: number, text: string, refusal: Refusal | undefined) {
    this.inbox = inbox
    this.place = place
    this.text = text
    this.refusal = refusal
  }

  waitsFor(call: Call): void {
    this.inbox.stepAside(this, aboutCall(call))
  }

  waitsOutside(callUuid: string | undefined): AbortSignal {
    return this.inbox.waitOutside(this, callUuid)
  }

  nextNumber(): number | undefined {
    return this.inbox.nextNumber()
  }

  isUnderWayAs(n: number): void {
    this.n = n
  }
}

/**
 * The messages of one socket take effect one after another [ORD1]. One that waits for a sign of life steps aside, and
 * so does what comes later and is about the same; the others go on [PLACE4]. A relay that is on its way to another node
 * leaves its turn to the next message, which knows of it. One that waits for somebody outside steps aside, too. In an extended
 * session it cannot, because its answers are in order: there, what comes meanwhile is done early, and answered in its turn [HOOK5].
 */
export class Inbox {
  private readonly owner: InboxOwner
  /** Messages that have no turn yet. */
  private queue: Message[] | undefined
  /** Those that wait for a sign of life, and those that wait for these. */
  private aside: Message[] | undefined
  /** Whose turn it is: a message, or what comes before all of them. */
  private current: object | undefined
  /** The last relay that is on its way, after all the others. */
  private ahead: UnderWay | undefined
  /** Those that wait for somebody outside. */
  private outside: Map<Message, Outside> | undefined
  /** Early requests take their turn, too; undefined when the last one of them is done. */
  private early: Promise<boolean> | undefined
  private underWayMessages = 0
  private underWayBytes = 0
  private isPaused = false
  private isDropped = false
  private taken = 0
  private numbered = 0
  private bytes = 0

  constructor(owner: InboxOwner) {
    this.owner = owner
  }

  get isBusy(): boolean {
    return this.current !== undefined || this.aside !== undefined || this.ahead !== undefined
  }

  /** Messages wait until this is done, well or not. */
  begin(first: Promise<void>): void {
    this.current = first
    const done = () => this.done(first)
    first.then(done, done)
  }

  take(text: string, refusal: Refusal | undefined): void {
    const message = new Message(this, this.taken++, text, refusal)
    if (this.outside !== undefined) this.passOutside(message, this.outside)
    if (this.current === undefined && this.queue === undefined && !this.isPaused) this.run(message)
    else if (this.hold(message)) {
      this.queue ??= []
      this.queue.push(message)
      if (this.isPaused) this.owner.onPaused()
    } else this.owner.onFull()
  }

  /** Nobody's turn comes before `resume`. */
  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
    this.next()
  }

  /** A message that has no turn yet never gets one. */
  drop(): void {
    const parked = this.aside?.filter((message) => !message.isUnderWay) ?? []
    // A request that was done early has taken effect, and has to be known.
    const [early, rest] = [this.queue?.filter(isEarly), this.queue?.filter((message) => !message.isEarly) ?? []]
    for (const message of [...parked, ...rest]) this.release(message)
    this.setRest(this.aside?.filter((message) => message.isUnderWay))
    this.queue = early === undefined || early.length === 0 ? undefined : early
    this.isDropped = true
  }

  nextNumber(): number | undefined {
    return this.owner.isNumbered ? undefined : ++this.numbered
  }

  /** It waits for something that others need not wait for, but for what is about the same, or about `more`. */
  stepAside(message: Message, more: readonly string[]): void {
    const about = message.about ?? this.owner.aboutOf(message)
    if (about === undefined) return
    message.about = [...about, ...more]
    if (this.current !== message) return
    this.current = undefined
    this.setAside(message, true)
    // The message that waits goes on first: it has just come as far as this.
    queueMicrotask(() => this.next())
  }

  waitOutside(message: Message, callUuid: string | undefined): AbortSignal {
    const abort = new AbortController()
    this.outside ??= new Map()
    this.outside.set(message, { callUuid, abort })
    this.stepAside(message, [])
    for (const later of this.queue ?? []) this.passOutside(later, this.outside)
    return abort.signal
  }

  /** Its client is gone for good: nobody waits any more for what comes from outside. */
  giveUp(): void {
    for (const { abort } of this.outside?.values() ?? []) abort.abort()
  }

  private passOutside(message: Message, outside: ReadonlyMap<Message, Outside>): void {
    const hungUp = message.refusal === undefined ? this.owner.hangUpOf(message) : undefined
    for (const { callUuid, abort } of outside.values()) if (callUuid !== undefined && callUuid === hungUp) abort.abort()
    const [first] = outside.keys()
    if (!this.owner.isNumbered || first === undefined) return
    // After one that was not done the next ones wait: they may be about what it asks for.
    const before = this.isPaused || message.refusal !== undefined ? false : (this.early ?? true)
    const doIt = async (isDone: boolean) => {
      message.isEarly = isDone
      if (isDone) message.isEarly = await this.owner.doEarly(message, first)
      return message.isEarly
    }
    this.early = before instanceof Promise ? before.then(doIt) : doIt(before)
  }

  /** The answer from outside is there. A request that was done early is over before anything has its turn. */
  private comeIn(message: Message): void {
    if (this.outside?.delete(message) !== true || this.outside.size > 0) return
    this.outside = undefined
    if (this.early === undefined) return
    this.begin(this.early.then(() => {}))
    this.early = undefined
  }

  private setAside(message: Message, isUnderWay: boolean): void {
    const hasRoom = message.isHeld || this.hold(message)
    if (!hasRoom) this.owner.onFull()
    if (!hasRoom && !isUnderWay) return
    message.isUnderWay = isUnderWay
    this.aside ??= []
    this.aside.push(message)
  }

  private run(message: Message): void {
    if (this.isDropped && !message.isEarly) {
      this.release(message)
      return
    }
    if (this.isBlocked(message, this.aside)) {
      this.setAside(message, false)
      return
    }
    this.release(message)
    this.current = message
    message.ahead = this.ahead
    const done = this.owner.handle(message)
    if (!(done instanceof Promise)) this.current = undefined
    else if (message.n !== undefined && this.mayFollow()) this.goOn(message, message.n, done)
    else void done.then(() => this.done(message))
  }

  private mayFollow(): boolean {
    return this.underWayMessages < underWayLimits.messages && this.underWayBytes < underWayLimits.bytes
  }

  /** The next one has its turn, though this one is not answered yet. */
  private goOn(message: Message, n: number, answered: Promise<void>): void {
    const { length } = message.text
    this.underWayMessages++
    this.underWayBytes += length
    const done = answered.then(() => {
      this.underWayMessages--
      this.underWayBytes -= length
      if (this.ahead !== mine) return
      this.ahead = undefined
      this.next()
    })
    const mine: UnderWay = { n, done }
    this.ahead = mine
    this.current = undefined
  }

  /** Whether one of those came before it and is about the same; later ones wait for it, not it for them. */
  private isBlocked(message: Message, others: readonly Message[] | undefined): boolean {
    if (others === undefined) return false
    message.about ??= this.owner.aboutOf(message)
    const { about } = message
    return others.some(
      (it) => it.place < message.place && (about === undefined || it.about?.some((subject) => about.includes(subject))),
    )
  }

  private done(turn: object): void {
    if (this.current === turn) this.current = undefined
    else if (turn instanceof Message) this.comeBack(turn)
    if (turn instanceof Message) this.comeIn(turn)
    this.next()
  }

  /** Messages that waited only for this one have their turn before later ones. */
  private comeBack(done: Message): void {
    this.release(done)
    const waited = (this.aside ?? []).filter((it) => it !== done)
    const aside = waited.filter((it) => it.isUnderWay)
    const free: Message[] = []
    for (const message of waited) {
      if (message.isUnderWay) continue
      if (this.isBlocked(message, aside)) aside.push(message)
      else free.push(message)
    }
    this.setRest(aside)
    // Others that came back may wait there already: each has its place.
    if (free.length > 0) this.queue = [...free, ...(this.queue ?? [])].sort((a, b) => a.place - b.place)
  }

  private setRest(aside: Message[] | undefined): void {
    this.aside = aside === undefined || aside.length === 0 ? undefined : aside
  }

  private next(): void {
    while (this.current === undefined && this.queue !== undefined) {
      if (this.isPaused) {
        this.owner.onPaused()
        return
      }
      const message = this.queue.shift()
      if (this.queue.length === 0) this.queue = undefined
      if (message !== undefined) this.run(message)
    }
    if (!this.isBusy) this.owner.onIdle()
  }

  private hold(message: Message): boolean {
    const { length } = message.text
    const waiting = (this.queue?.length ?? 0) + (this.aside?.length ?? 0)
    if (waiting >= inboxLimits.messages || this.bytes + length > inboxLimits.bytes || !this.owner.hold(length))
      return false
    this.bytes += length
    message.isHeld = true
    return true
  }

  private release(message: Message): void {
    if (!message.isHeld) return
    message.isHeld = false
    this.bytes -= message.text.length
    this.owner.release(message.text.length)
  }
}
