import type { CloseCode } from '@ringwire/protocol/close-codes'
import { messageLimits } from '@ringwire/protocol/envelope'
import { errorBody } from '@ringwire/protocol/errors'
import { fitsBytes } from '@ringwire/protocol/text'
import type { MessageRate } from '../config.ts'
import type { Sink } from '../ports.ts'
import type { Dispatch, DispatchResult, SignalingSession } from './dispatch.ts'
import { type Clearance, RateGate } from './rate-gate.ts'

/** The socket under a connection: what of Bun's `ServerWebSocket` is used here. */
export interface Socket {
  send(text: string): number
  ping(data: Uint8Array): number
  cork<T>(send: () => T): T
  /** Says so at once by the close event; Bun lets go of the connection a few seconds later, whatever the client does. */
  close(code: number, reason: string): void
  getBufferedAmount(): number
}

export interface ConnectionOptions {
  readonly socket: Socket
  readonly session: SignalingSession
  readonly dispatch: Dispatch
  readonly timing: ConnectionTiming
  readonly messageRate: MessageRate | null
  /** Monotonic, ms. */
  readonly now: () => number
  /** Asks for a `flush` at the end of this turn of the event loop. */
  readonly requestFlush: (connection: Connection) => void
  /** The client has received every call push up to `seq` [PLACE5]. */
  readonly onProven: (seq: number) => void
}

/** Milliseconds [WS6, PLACE4]. */
export interface ConnectionTiming {
  readonly pingIntervalMs: number
  readonly pongTimeoutMs: number
  readonly probeTimeoutMs: number
}

/** Unsent bytes at which a reader counts as too slow [WS7]. */
const maxUnsentBytes = 1024 * 1024
/** Requests of one session that wait for an earlier one [ORD1]. */
const maxWaiting = 512
/** Call pushes are followed by a ping at most this often [PLACE5]. */
const proofIntervalMs = 1_000
/** After a timer that may have been late: time to read what came while the process was away, in ms. */
const readingMs = 100
const maxMalformed = 10
/** Stands for bytes that are no text: no envelope either [ENV1]. */
const unreadable = '\0'

interface OutstandingPing {
  readonly counter: number
  readonly seq: number
  readonly sentAt: number
}

/**
 * One client on one socket: messages in one after another [ORD1], texts out once a turn of the event loop, signs of
 * life [WS6]. It decides nothing about calls.
 */
export class Connection implements Sink {
  readonly session: SignalingSession
  private readonly options: ConnectionOptions
  private readonly gate: RateGate | undefined
  private outbox: string[] = []
  private inbox: string[] | undefined
  private busy = false
  private malformed = 0
  private state: 'open' | 'closing' | 'closed' = 'open'
  private pingCounter = 0
  private pings: OutstandingPing[] = []
  private lastPingAt: number
  private pushedSeq = 0
  private provenSeq = 0
  private probing: { promise: Promise<boolean>; settle: (alive: boolean) => void } | undefined

  constructor(options: ConnectionOptions) {
    this.options = options
    this.session = options.session
    this.lastPingAt = options.now()
    if (options.messageRate !== null) this.gate = new RateGate(options.messageRate, options.now())
  }

  /** Whether the service, not the client, closed it. */
  get closedByService(): boolean {
    return this.state === 'closing'
  }

  /** Requests wait until this is done: what a client must hear first comes first [ORD3]. */
  begin(first: Promise<void>): void {
    this.busy = true
    first.finally(() => this.next()).catch(() => this.close(1011, 'internal error'))
  }

  receive(message: string | Uint8Array): void {
    if (this.state !== 'open') return
    if (!fits(message)) {
      this.close(1009, 'message too big')
      return
    }
    const text = typeof message === 'string' ? message : decode(message)
    const clearance = this.gate?.pass(this.options.now())
    if (clearance !== undefined && !clearance.ok) this.refuse(text ?? unreadable, clearance)
    else if (this.busy) this.wait(text ?? unreadable)
    else this.handle(text ?? unreadable)
  }

  private refuse(text: string, clearance: Exclude<Clearance, { ok: true }>): void {
    const error = errorBody('RATE_LIMITED', { retry_after_ms: clearance.retryAfterMs })
    if (clearance.tooLong) this.close(4429, 'too many messages')
    else this.send(this.options.dispatch.refuse(text, error))
  }

  private wait(text: string): void {
    this.inbox ??= []
    if (this.inbox.length >= maxWaiting) this.close(4429, 'too many requests at once')
    else this.inbox.push(text)
  }

  private handle(text: string): void {
    const result = this.options.dispatch.handle(this.session, text)
    if (!(result instanceof Promise)) {
      this.finish(result)
      return
    }
    this.busy = true
    result
      .then((done) => this.finish(done))
      .finally(() => this.next())
      .catch(() => this.close(1011, 'internal error'))
  }

  private finish({ reply, malformed }: DispatchResult): void {
    if (reply !== undefined) this.send(reply)
    this.malformed = malformed ? this.malformed + 1 : 0
    if (this.malformed >= maxMalformed) this.close(4400, 'malformed messages')
  }

  /** Goes on with what waited. What a client sent before it closed still takes effect. */
  private next(): void {
    this.busy = false
    while (!this.busy) {
      const text = this.inbox?.shift()
      if (text === undefined) return
      this.handle(text)
    }
  }

  send(text: string): void {
    if (this.state !== 'open') return
    if (this.outbox.length === 0) this.options.requestFlush(this)
    this.outbox.push(text)
  }

  pushed(seq: number): void {
    this.pushedSeq = seq
  }

  /** Writes everything that this turn of the event loop had for the client, in one go. */
  flush(now: number): void {
    this.write()
    if (this.state === 'open' && this.needsProof(now)) this.ping(now)
  }

  private write(): void {
    const texts = this.outbox
    if (this.state !== 'open' || texts.length === 0) return
    this.outbox = []
    const { socket } = this.options
    if (texts.length === 1) socket.send(texts[0]!)
    else socket.cork(() => texts.forEach((text) => void socket.send(text)))
    if (socket.getBufferedAmount() > maxUnsentBytes) this.close(4008, 'reads too slowly')
  }

  private needsProof(now: number): boolean {
    return this.pushedSeq > this.provenSeq && now - this.lastPingAt >= proofIntervalMs
  }

  /** The process was away for `ms`: what it did not read in that time is no sign of a dead client. */
  allow(ms: number): void {
    this.pings = this.pings.map((ping) => ({ ...ping, sentAt: ping.sentAt + ms }))
  }

  /** Looks after the signs of life; called about twice a second. */
  tick(now: number): void {
    if (this.state !== 'open') return
    const oldest = this.pings[0]
    if (oldest !== undefined && now - oldest.sentAt >= this.options.timing.pongTimeoutMs) this.close(4408, 'no pong')
    else if (now - this.lastPingAt >= this.options.timing.pingIntervalMs) this.ping(now)
    else if (this.needsProof(now) && this.pings.at(-1)?.seq !== this.pushedSeq) this.ping(now)
  }

  /** Pings; what the ping would prove has to be on its way before it. */
  private ping(now: number): void {
    this.write()
    if (this.state !== 'open') return
    this.pingCounter++
    this.lastPingAt = now
    this.pings.push({ counter: this.pingCounter, seq: this.pushedSeq, sentAt: now })
    const payload = new Uint8Array(4)
    new DataView(payload.buffer).setUint32(0, this.pingCounter)
    this.options.socket.ping(payload)
  }

  /** Only the answer to a ping of ours proves anything; a pong that nobody asked for is ignored. */
  pong(data: Uint8Array): void {
    if (data.byteLength !== 4) return
    const counter = new DataView(data.buffer, data.byteOffset, 4).getUint32(0)
    const answered = this.pings.find((ping) => ping.counter === counter)
    if (answered === undefined) return
    this.pings = this.pings.filter((ping) => ping.counter > counter)
    if (answered.seq > this.provenSeq) {
      this.provenSeq = answered.seq
      this.options.onProven(answered.seq)
    }
    this.probing?.settle(true)
  }

  probe(): Promise<boolean> {
    if (this.state !== 'open') return Promise.resolve(false)
    if (this.probing !== undefined) return this.probing.promise
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const { probeTimeoutMs } = this.options.timing
    const expire = () => this.close(4408, 'no pong')
    let timer = setTimeout(() => {
      timer = setTimeout(expire, readingMs)
    }, probeTimeoutMs)
    const settle = (alive: boolean) => {
      clearTimeout(timer)
      this.probing = undefined
      resolve(alive)
    }
    this.probing = { promise, settle }
    // A pong to a ping of before the question proves nothing about now.
    this.pings = []
    this.ping(this.options.now())
    return promise
  }

  close(code: CloseCode, reason: string): void {
    if (this.state !== 'open') return
    this.write()
    if (this.state !== 'open') return
    this.state = 'closing'
    this.options.socket.close(code, reason)
    this.probing?.settle(false)
  }

  /** The socket is gone. */
  closed(): void {
    this.state = 'closed'
    this.outbox = []
    this.probing?.settle(false)
  }
}

function fits(message: string | Uint8Array): boolean {
  const { messageBytes } = messageLimits
  return typeof message === 'string' ? fitsBytes(message, messageBytes) : message.byteLength <= messageBytes
}

/** A binary frame with UTF-8 text is read as text [ENV1]; undefined for anything else. */
function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
