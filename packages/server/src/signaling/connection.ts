// Over 350 lines: its functions share the state of one socket, and each of them is short.
import type { CloseCode } from '@ringwire/protocol/close-codes'
import { participantKey } from '../call/call.ts'
import type { Timers } from '../ports/clock.ts'
import type { MaybePromise } from '../ports/maybe.ts'
import type { Sink, Upstream } from '../ports/sessions.ts'
import { encodeError } from './answer.ts'
import type { Backlog } from './backlog.ts'
import type { Dispatch, DispatchResult, Refusal, SignalingSession } from './dispatch.ts'
import { textOfFrame } from './frame-text.ts'
import { Inbox, type InboxOwner, type Message } from './inbox.ts'
import { type ConnectionTiming, Outlet, type OutletOwner, type Socket } from './outlet.ts'
import { RateGate, rateLimited } from './rate-gate.ts'
import { rememberReply } from './replies.ts'
import type { Senders } from './senders.ts'
import { renewedBy } from './welcome.ts'

/** What all connections of a process have in common. */
export interface ConnectionContext {
  readonly dispatch: Dispatch
  /** The messages of the participant that wait on all its sockets. */
  readonly backlog: Backlog
  readonly timing: ConnectionTiming
  /** The counts of the messages of all sockets; undefined: none. */
  readonly senders: Senders | undefined
  readonly timers: Timers
  /** Asks for a `flush` at the end of this turn of the event loop. */
  readonly requestFlush: (connection: Connection) => void
  /** Whether another node finds everything that clients have got. */
  readonly isSaved: () => boolean
  /** Whether the session is another socket's by now, wherever that is. */
  readonly hasMoved: (connection: Connection) => MaybePromise<boolean>
  /** The client of this session has received every call push up to `seq` [PLACE5]. */
  readonly onProven: (sessionId: string, seq: number) => void
  /** The client has left a ping without an answer for 2 s, or has answered one since [PING1]. */
  readonly onSilent: (session: SignalingSession) => void
  readonly onHeard: (session: SignalingSession) => void
  /** A call, by its key, rings there: the push was written, or, later, the client has received it [TRACE1]. */
  readonly onRung: (session: SignalingSession, call: string, isProven: boolean) => void
  /** How much more waits in its socket than before, in bytes; less than 0 where it was sent [WS7]. */
  readonly onUnsent: (bytes: number) => void
  /** It is closed, and not by its client [LOG2]. */
  readonly onClosing: (connection: Connection, code: CloseCode, cause: string) => void
}

export const maxMalformed = 10

/**
 * One client on one socket: messages in one after another [ORD1], texts out once a turn of the event loop, signs of
 * life [WS6]. It decides nothing about calls.
 */
export class Connection implements Sink, InboxOwner, OutletOwner {
  session: SignalingSession
  readonly openedAt: number
  private readonly socket: Socket
  private readonly context: ConnectionContext
  /** Made when its client sends something: hardly any socket of those that wait for a call ever does. */
  private gate: RateGate | undefined
  /** Made for the first message: see `gate`. */
  private inbox: Inbox | undefined
  private readonly outlet: Outlet
  upstream: Upstream = { handled: 0, final: 0, replies: [], dropped: 0 }
  private whenIdle: PromiseWithResolvers<void> | undefined
  /** After a stall it probes the other end. */
  private asking = false
  /** Its client was gone before what it had sent was read. */
  private gone = false
  private malformed = 0
  /** Rings that it got, and is not proven to have received. */
  private rings: { readonly seq: number; readonly call: string }[] | undefined
  private isSilent = false
  /** Why the service closed it; undefined if its client or the network did. */
  cause: string | undefined
  private state: 'open' | 'closing' | 'closed' = 'open'
  /** How it closes when what came so far is done. */
  private parting: { code: CloseCode; reason: string; cause: string } | undefined

  constructor(socket: Socket, session: SignalingSession, context: ConnectionContext) {
    this.socket = socket
    this.session = session
    this.context = context
    this.openedAt = context.timers.monotonic()
    this.outlet = new Outlet(this, socket, context.timing, context.timers, this.openedAt)
  }

  get isClosed(): boolean {
    return !this.isOpen
  }

  get isBusy(): boolean {
    return this.inbox?.isBusy === true || this.asking
  }

  get isNumbered(): boolean {
    return this.session.extended
  }

  get isOpen(): boolean {
    return this.state === 'open'
  }

  /** Whether the service, not the client, closed it. */
  get closedByService(): boolean {
    return this.state === 'closing'
  }

  /** Requests wait until this is done: what a client must hear first comes first [ORD3]. */
  begin(first: Promise<void>): void {
    this.madeInbox().begin(first)
    first.catch(() => this.close(1011, 'internal error'))
  }

  receive(message: string | Uint8Array, now = this.context.timers.monotonic()): void {
    if (this.state !== 'open' || this.parting !== undefined) return
    const clearance = this.gateAt(now)?.message(message, now)
    if (clearance === undefined || clearance.kind === 'passes') this.take(message, undefined)
    else if (clearance.kind === 'refused') {
      this.take(message, { error: rateLimited(clearance.retryAfterMs), mayBeUnlimited: clearance.mayBeUnlimited })
    } else if (clearance.kind === 'closes' || this.session.extended) {
      // An extended session comes back and sends again what took no effect: its numbers have no gap [EXT4].
      this.close(4429, 'too many messages')
    } else if (clearance.isTold) this.send(encodeError(rateLimited(clearance.retryAfterMs), undefined))
  }

  private gateAt(now: number): RateGate | undefined {
    const { senders } = this.context
    if (senders !== undefined) this.gate ??= new RateGate(senders.rate, senders.join(this.participant, now), now)
    return this.gate
  }

  private take(message: string | Uint8Array, refusal: Refusal | undefined): void {
    const text = textOfFrame(message)
    if (text === undefined) this.close(1009, 'message too big')
    else this.madeInbox().take(text, refusal)
  }

  private madeInbox(): Inbox {
    this.inbox ??= new Inbox(this)
    return this.inbox
  }

  handle(message: Message): MaybePromise<void> {
    const { dispatch } = this.context
    const { text, refusal, ahead, result: early } = message
    if (early !== undefined) {
      this.finish(early)
      return early.handedOn
    }
    // A message that is on its way takes effect, or is answered, before this one.
    const handled = Math.max(this.upstream.handled, ahead?.n ?? 0)
    const result = this.gone
      ? dispatch.handleLast(this.session, text, handled)
      : dispatch.handle(this.session, text, handled, refusal, message)
    if (!(result instanceof Promise) && ahead === undefined) return this.finish(result)
    return Promise.resolve(result)
      .then(async (done) => {
        await ahead?.done
        this.finish(done)
        return done.handedOn
      })
      .catch(() => this.close(1011, 'internal error'))
  }

  /** In an extended session all take effect in the order of their numbers: `handled` names the last one [EXT4]. */
  aboutOf({ text }: Message): readonly string[] | undefined {
    return this.session.extended ? undefined : this.context.dispatch.aboutOf(text)
  }

  hangUpOf({ text }: Message): string | undefined {
    return this.context.dispatch.hangUpOf(text)
  }

  async doEarly(message: Message, outside: Message): Promise<boolean> {
    const { dispatch } = this.context
    const [about, taken] = [dispatch.aboutOf(message.text), dispatch.aboutOf(outside.text)]
    if (!this.isOpen || about?.some((subject) => taken?.includes(subject))) return false
    message.result = await dispatch.handleEarly(this.session, message.text, this.upstream.handled)
    return message.result !== undefined
  }

  hold(bytes: number): boolean {
    return this.context.backlog.add(this.participant, bytes)
  }

  release(bytes: number): void {
    this.context.backlog.remove(this.participant, bytes)
  }

  onFull(): void {
    this.close(4429, 'too many requests at once')
  }

  onIdle(): void {
    if (this.parting !== undefined) this.close(this.parting.code, this.parting.reason, this.parting.cause)
    this.whenIdle?.resolve()
    this.whenIdle = undefined
  }

  private get participant(): string {
    return participantKey(this.session.participant)
  }

  private finish({ reply, malformed, n, refreshed, isOfLog }: DispatchResult): void {
    if (refreshed !== undefined) this.session = renewedBy(refreshed, this.session)
    if (n !== undefined && this.session.extended) rememberReply(this.upstream, n, reply)
    // Also if nobody is there to read it: a client that comes back hears whether it is saved.
    if (reply !== undefined) this.outlet[isOfLog ? 'sendAck' : 'send'](reply)
    this.malformed = malformed ? this.malformed + 1 : 0
    if (this.malformed >= maxMalformed) this.close(4400, 'malformed messages')
  }

  /** Goes on as this session, with what its client has asked for on other sockets [RES1]. */
  adopt(session: SignalingSession, upstream: Upstream): void {
    this.session = session
    this.upstream = upstream
  }

  /**
   * The process stood still. Messages that are read from now on may come from a client that is gone, or that is served
   * elsewhere: an old accept must not answer for somebody who is not there [ORD1].
   */
  doubt(): void {
    this.madeInbox().pause()
  }

  /** Waiting messages are read when the session is still this socket's, and the client gave a sign of life. */
  onPaused(): void {
    if (this.asking) return
    this.asking = true
    // Before the end of the socket is seen to: its own end is not a move.
    const moved = this.context.hasMoved(this)
    // The pong of a probe that began before may be among what waits.
    Promise.all([moved, Promise.resolve(this.outlet.probe).then(() => this.probe())])
      .then(([hasMoved, isAlive]) => this.readOn(hasMoved, isAlive))
      .catch(() => this.close(1011, 'internal error'))
  }

  private readOn(hasMoved: boolean, isAlive: boolean): void {
    this.asking = false
    this.gone = !isAlive
    if (hasMoved) {
      this.inbox?.drop()
      this.close(4409, 'replaced by a newer connection')
    }
    this.inbox?.resume()
  }

  /** Closes when what came so far is done and replied to; what comes from now on is not read any more. */
  part(code: CloseCode, reason: string, cause = reason): void {
    if (this.isBusy) this.parting ??= { code, reason, cause }
    else this.close(code, reason, cause)
  }

  async retire(): Promise<void> {
    this.close(4409, 'replaced by a newer connection')
    // The client sends again what it has no reply to; here it must not take effect a second time [EXT4].
    this.inbox?.drop()
    if (this.inbox?.isBusy !== true) return
    this.whenIdle ??= Promise.withResolvers()
    await this.whenIdle.promise
  }

  send(text: string): void {
    if (this.state === 'open') this.outlet.send(text)
  }

  pushed(seq: number, rings?: string, isEvent = false, isUrgent = false): void {
    this.outlet.pushed(seq, isEvent, isUrgent)
    if (rings === undefined) return
    this.rings ??= []
    this.rings.push({ seq, call: rings })
    this.context.onRung(this.session, rings, false)
  }

  get writtenSeq(): number {
    return this.outlet.writtenSeq
  }

  onUnwritten(): void {
    this.context.requestFlush(this)
  }

  /** The texts that the client is owed until now are written with the next flush, once they are saved. */
  seal(): void {
    this.outlet.seal()
  }

  /** Writes what was sealed, in one go, but for what has to be saved first: answers whether that is so. */
  flush(now: number, isSaved = true): boolean {
    return this.outlet.flush(now, isSaved)
  }

  /** Writes what need not wait for a save, if that is all that there is: answers whether it was. */
  writeAhead(now: number): boolean {
    return this.outlet.writeAhead(now)
  }

  /** The process was away for `ms`: what it did not read in that time is no sign of a dead client. */
  allow(ms: number): void {
    this.outlet.allow(ms)
  }

  /** Looks after the signs of life; called about twice a second. */
  tick(now: number): void {
    if (this.state === 'open') this.outlet.tick(now)
  }

  /** A ping of the client; it was answered already. */
  pinged(): void {
    if (this.state !== 'open') return
    this.outlet.answered()
    const now = this.context.timers.monotonic()
    if (this.gateAt(now)?.control(now) === false) this.close(4429, 'too many pings')
  }

  /** Only the answer to a ping of ours proves anything; a pong that nobody asked for counts as a ping [WS7]. */
  pong(data: Uint8Array): void {
    if (!this.outlet.pong(data)) {
      this.pinged()
      return
    }
    if (!this.isSilent) return
    this.isSilent = false
    this.context.onHeard(this.session)
  }

  onSilent(): void {
    this.isSilent = true
    this.context.onSilent(this.session)
  }

  onProven(seq: number): void {
    this.context.onProven(this.session.sessionId, seq)
    if (this.rings === undefined) return
    const arrived = this.rings.filter((ring) => ring.seq <= seq)
    const rest = this.rings.filter((ring) => ring.seq > seq)
    this.rings = rest.length === 0 ? undefined : rest
    for (const { call } of arrived) this.context.onRung(this.session, call, true)
  }

  probe(): Promise<boolean> {
    return this.state === 'open' ? this.outlet.startProbe(this.context.timers.monotonic()) : Promise.resolve(false)
  }

  onUnsent(bytes: number): void {
    this.context.onUnsent(bytes)
  }

  /** What waits in its socket, in bytes. */
  unsent(): number {
    return this.isOpen ? this.outlet.measure() : 0
  }

  close(code: CloseCode, reason: string, cause = reason): void {
    if (this.state !== 'open') return
    // An extended client that gets a push that another node does not find would miss the one with the same number there.
    if (!this.session.extended || this.context.isSaved()) this.outlet.writeAll()
    // Who reads too slowly was closed just now.
    if (!this.isOpen) return
    this.state = 'closing'
    this.cause = cause
    this.context.onClosing(this, code, cause)
    this.socket.close(code, reason)
    this.outlet.settleProbe(false)
  }

  /** The socket is gone. */
  closed(): void {
    this.state = 'closed'
    // The call of an extended session goes on with its next socket.
    if (!this.session.extended) this.inbox?.giveUp()
    if (this.gate !== undefined) this.context.senders?.leave(this.gate.sender, this.context.timers.monotonic())
    this.outlet.close()
  }
}
