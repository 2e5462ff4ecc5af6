// Over 350 lines: its functions share what one socket is still owed, and each of them is short.
import type { CloseCode } from '@ringwire/protocol/close-codes'
import type { Timers } from '../ports/clock.ts'
import type { Upstream } from '../ports/sessions.ts'
import { dropReplies, markVolatile } from './replies.ts'

/** The socket under a connection: what of Bun's `ServerWebSocket` is used here. */
export interface Socket {
  /** How many bytes were sent; 0 or less where some wait, or were dropped. */
  send(text: string): number
  /** The same. */
  ping(data: Uint8Array): number
  cork<T>(send: () => T): T
  /** Says so at once by the close event; Bun lets go of the connection a few seconds later, whatever the client does. */
  close(code: number, reason: string): void
  getBufferedAmount(): number
}

/** Milliseconds [WS6, PLACE4]. */
export interface ConnectionTiming {
  readonly pingIntervalMs: number
  readonly pongTimeoutMs: number
  readonly probeTimeoutMs: number
}

/** Whose texts these are. */
export interface OutletOwner {
  readonly isOpen: boolean
  /** Its pushes have numbers: a client that goes on elsewhere names the last one that it has [RES1]. */
  readonly isNumbered: boolean
  /** Its replies are proven as its pushes are [EXT2]. */
  readonly upstream: Upstream
  /** Asks for a `flush` at the end of this turn of the event loop. */
  onUnwritten(): void
  /** The client has received every push up to `seq` [PLACE5]. */
  onProven(seq: number): void
  /** The client has not answered a ping for 2 s; told again and again, until it does [PING1]. */
  onSilent(): void
  close(code: CloseCode, reason: string, cause?: string): void
  /** How much more waits in its socket than before, in bytes; less than 0 where it was sent [WS7]. */
  onUnsent(bytes: number): void
}

/** Unsent bytes at which a reader counts as too slow [WS7]. */
export const maxUnsentBytes = 1024 * 1024
/** Call pushes are followed by a ping at most this often, or after `proofPushes` of them [PLACE5]. In ms. */
const proofIntervalMs = 1_000
/** Unproven pushes stay in a log. If there are many, each collection of garbage stops all relays for milliseconds. */
const proofPushes = 32
/** Without a pong for this long, a socket at which a call rings is unsure [PING1]. In ms. */
const silentMs = 2_000
/** After a timer that may have been late: time to read what came while the process was away, in ms. */
const readingMs = 100
/** Why the missing sign of life was expected of a client [LOG2]. */
const keepAlive = 'no pong to a keep-alive'
const unprovenPush = 'no pong after a push'
const probed = 'no answer to a probe'

interface OutstandingPing {
  readonly counter: number
  /** Its pong proves every push, and every reply, up to here. */
  readonly seq: number
  readonly replied: number
  readonly sentAt: number
  /** What the log says when its pong does not come [LOG2]. */
  readonly cause: string
}

/**
 * What one socket is sent: texts, once a turn of the event loop, and the pings whose pongs prove that they arrived. Lists are
 * made when first needed: most sockets are idle.
 */
export class Outlet {
  private readonly owner: OutletOwner
  private readonly socket: Socket
  private readonly timing: ConnectionTiming
  private readonly timers: Pick<Timers, 'after'>
  private texts: string[] | undefined
  /** The texts among them that say that a relay is in the receiver's log [EXT3]. */
  private acks: string[] | undefined
  /** Texts that wait until they are saved, and up to which push and which reply they go. */
  private sealed: string[] | undefined
  private sealedAcks: string[] | undefined
  private sealedSeq = 0
  /** How much that is, in UTF-16 code units. */
  private sealedLength = 0
  /** Whether there is more than relays among what was pushed, and among what is sealed; how many of the texts are relays. */
  private hasEvent = false
  private relays = 0
  private hasSealedEvent = false
  private sealedReply = 0
  private unsent = 0
  /** Something may wait in the socket: it was found so, or something was written since. An idle one is not asked each time. */
  private mayWait = true
  private pingCounter = 0
  private pings: OutstandingPing[] | undefined
  private lastPingAt: number
  private pushedSeq = 0
  /** The last push that a ping follows at once. */
  private urgentSeq = 0
  private written = 0
  private writtenReply = 0
  private provenSeq = 0
  /** The last push before the last ping. */
  private pingedSeq = 0
  private probing: { promise: Promise<boolean>; settle: (alive: boolean) => void } | undefined

  constructor(
    owner: OutletOwner,
    socket: Socket,
    timing: ConnectionTiming,
    timers: Pick<Timers, 'after'>,
    now: number,
  ) {
    this.owner = owner
    this.socket = socket
    this.timing = timing
    this.timers = timers
    this.lastPingAt = now
  }

  send(text: string): void {
    if (this.texts === undefined) {
      this.texts = [text]
      this.owner.onUnwritten()
    } else this.texts.push(text)
  }

  /** The same of what is true once it is saved. */
  sendAck(text: string): void {
    this.acks ??= []
    this.acks.push(text)
    this.send(text)
  }

  pushed(seq: number, isEvent = false, isUrgent = false): void {
    if (isEvent) this.hasEvent = true
    else this.relays++
    this.pushedSeq = seq
    if (isUrgent) this.urgentSeq = seq
  }

  /** Up to which push everything was written. */
  get writtenSeq(): number {
    return this.written
  }

  /** The texts until now are written with the next flush; later ones are not. */
  seal(): void {
    if (this.texts !== undefined) {
      if (this.sealed === undefined) this.sealed = this.texts
      // It may have to seal twice before a save is through.
      else this.sealed.push(...this.texts)
      for (const text of this.texts) this.sealedLength += text.length
      this.texts = undefined
      this.relays = 0
      this.hasSealedEvent ||= this.hasEvent
      this.hasEvent = false
    }
    if (this.acks !== undefined) {
      if (this.sealedAcks === undefined) this.sealedAcks = this.acks
      else this.sealedAcks.push(...this.acks)
      this.acks = undefined
    }
    this.sealedSeq = this.pushedSeq
    this.sealedReply = this.owner.upstream.handled
  }

  /**
   * Writes what was sealed, in one go; not `isSaved`: what it says of relays may not survive this node, and what else is
   * pushed, with what follows, has to wait. Answers whether it waits.
   */
  flush(now: number, isSaved = true): boolean {
    if (this.sealedAcks !== undefined) {
      if (!isSaved) this.sealed = markVolatile(this.sealedAcks, this.sealed, this.owner.upstream)
      this.sealedAcks = undefined
    }
    if (!isSaved && this.hasSealedEvent && this.owner.isNumbered && this.owner.isOpen) {
      if (this.sealedLength <= maxUnsentBytes) return true
      // It comes back for what its session has.
      this.owner.close(1013, 'try again later', 'what it has to be told cannot be saved')
    }
    const { upstream } = this.owner
    upstream.final = Math.max(upstream.final, this.sealedReply)
    this.write(now)
    return false
  }

  /**
   * Writes what its peers sent before that is saved, where nothing else is owed and nobody counts it: a base client comes
   * back with a new session, and gets its unproven messages again [PLACE5]. Answers whether it did.
   */
  writeAhead(now: number): boolean {
    if (this.owner.isNumbered || this.sealed !== undefined || this.relays < (this.texts?.length ?? 0)) return false
    this.seal()
    this.write(now)
    return true
  }

  /** Writes all that there is, before the socket is closed. */
  writeAll(): void {
    this.seal()
    this.write()
  }

  /** With the time: a ping goes along where one is due, in one write. */
  private write(now?: number): void {
    const { sealed } = this
    if (!this.owner.isOpen) return
    this.hasSealedEvent = false
    this.written = this.sealedSeq
    this.writtenReply = this.sealedReply
    const pings = now !== undefined && this.needsProof(now)
    if (sealed === undefined && !pings) return
    this.sealed = undefined
    this.sealedLength = 0
    if (this.sendAll(sealed ?? [], pings ? now : undefined)) this.counted(0)
    else this.checkUnsent()
  }

  /** In one go, with a ping at that time. Answers whether it is known that nothing waits. */
  private sendAll(texts: readonly string[], pingAt: number | undefined): boolean {
    const [first = ''] = texts
    if (texts.length === 1 && pingAt === undefined) return this.socket.send(first) > 0
    this.socket.cork(() => {
      for (const text of texts) this.socket.send(text)
      if (pingAt !== undefined) this.ping(pingAt, unprovenPush)
    })
    return false
  }

  /** Answers to pings of the client wait there, too: they are nobody's writes [WS7]. */
  private checkUnsent(): void {
    if (this.measure() > maxUnsentBytes) this.owner.close(4008, 'reads too slowly')
  }

  /** The bytes that wait in the socket now. */
  measure(): number {
    const bytes = this.socket.getBufferedAmount()
    this.counted(bytes)
    return bytes
  }

  private counted(bytes: number): void {
    this.mayWait = bytes > 0
    if (bytes === this.unsent) return
    this.owner.onUnsent(bytes - this.unsent)
    this.unsent = bytes
  }

  private needsProof(now: number): boolean {
    const isOwed = this.written > this.provenSeq || this.owner.upstream.replies.length > 0
    if (!isOwed) return false
    const isUrgent = this.urgentSeq > this.pingedSeq && this.written >= this.urgentSeq
    return isUrgent || now - this.lastPingAt >= proofIntervalMs || this.written - this.pingedSeq >= proofPushes
  }

  /** A ping of the client was answered, and the answer may wait. */
  answered(): void {
    this.mayWait = true
  }

  /** The process was away for `ms`: what it did not read in that time is no sign of a dead client. */
  allow(ms: number): void {
    this.pings = this.pings?.map((ping) => ({ ...ping, sentAt: ping.sentAt + ms }))
  }

  /** Looks after the signs of life. */
  tick(now: number): void {
    if (this.mayWait) this.checkUnsent()
    const oldest = this.pings?.[0]
    if (oldest !== undefined && now - oldest.sentAt >= this.timing.pongTimeoutMs)
      this.owner.close(4408, 'no pong', oldest.cause)
    else if (oldest !== undefined && now - oldest.sentAt >= silentMs) this.owner.onSilent()
    if (!this.owner.isOpen) return
    if (now - this.lastPingAt >= this.timing.pingIntervalMs) this.ping(now, keepAlive)
    else if (this.needsProof(now) && !this.isProofUnderWay()) this.ping(now, unprovenPush)
  }

  private isProofUnderWay(): boolean {
    const last = this.pings?.at(-1)
    return last !== undefined && last.seq === this.written && last.replied === this.writtenReply
  }

  /** Pings; that proves what was written before it. */
  private ping(now: number, cause: string): void {
    if (!this.owner.isOpen) return
    this.pingCounter++
    this.lastPingAt = now
    this.pingedSeq = this.written
    const proves = { seq: this.written, replied: this.writtenReply }
    this.pings ??= []
    this.pings.push({ counter: this.pingCounter, ...proves, sentAt: now, cause })
    const payload = new Uint8Array(4)
    new DataView(payload.buffer).setUint32(0, this.pingCounter)
    if (this.socket.ping(payload) <= 0) this.mayWait = true
  }

  /** False for a pong that answers no ping of ours: that proves nothing. */
  pong(data: Uint8Array): boolean {
    const answered = this.answeredBy(data)
    if (answered === undefined) return false
    const { counter } = answered
    const later = this.pings?.filter((ping) => ping.counter > counter)
    this.pings = later?.length === 0 ? undefined : later
    if (answered.seq > this.provenSeq) {
      this.provenSeq = answered.seq
      this.owner.onProven(answered.seq)
    }
    dropReplies(this.owner.upstream, answered.replied)
    this.settleProbe(true)
    return true
  }

  private answeredBy(data: Uint8Array): OutstandingPing | undefined {
    if (data.byteLength !== 4) return undefined
    const counter = new DataView(data.buffer, data.byteOffset, 4).getUint32(0)
    return this.pings?.find((ping) => ping.counter === counter)
  }

  /** The answer to the last probe, if it is still open. */
  get probe(): Promise<boolean> | undefined {
    return this.probing?.promise
  }

  /** Asks the client for a sign of life at once; false after the time for that, when the socket is closed [PLACE4]. */
  startProbe(now: number): Promise<boolean> {
    if (this.probing !== undefined) return this.probing.promise
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const expire = () => this.owner.close(4408, 'no pong', probed)
    let cancel = this.timers.after(this.timing.probeTimeoutMs, () => {
      cancel = this.timers.after(readingMs, expire)
    })
    const settle = (alive: boolean) => {
      cancel()
      this.probing = undefined
      resolve(alive)
    }
    this.probing = { promise, settle }
    // A pong to an earlier ping proves nothing about now.
    this.pings = undefined
    this.ping(now, probed)
    return promise
  }

  settleProbe(alive: boolean): void {
    this.probing?.settle(alive)
  }

  /** The socket is gone: what was not written never is. Its answers about relays may have to be repeated [EXT4]. */
  close(): void {
    this.texts = undefined
    this.sealed = undefined
    this.counted(0)
    this.settleProbe(false)
  }
}
