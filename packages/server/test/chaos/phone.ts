import { type Asked, ExtendedSession, queryOf } from '@ringwire/testkit/extended-session'
import type { Timers } from '../../src/ports/clock.ts'
import type { Random } from '../fuzz/random.ts'
import type { Entry, Frame, FrameData, Trace } from './recording.ts'
import { inFull, inShort } from './relay-text.ts'

/** One socket of a phone. */
export interface Line {
  send(text: string): void
  /** The network is gone: nothing of it is said to anybody. */
  reset(): void
}

/** What a line tells its phone, once it is there. */
export interface LineEvents {
  onText(text: string): void
  onClosed(code: number): void
}

export interface PhoneOptions {
  readonly userId: string
  /** Connects to some node, and says to which: `query` says how. Tells nothing before it returns. */
  readonly dial: (query: string, events: LineEvents) => { readonly node: number; readonly line: Line }
  readonly random: Random
  readonly timers: Pick<Timers, 'after'>
  /** What its client understands, as it says it when it connects [EXT6]. */
  readonly can?: string
  /** Now, in ms since the recording's start. */
  readonly at: () => number
  readonly onPush: (frame: Frame) => void
  /** The session begins anew, or its log was lost: `active_calls` of this frame is what is known. */
  readonly onFresh: (frame: Frame) => void
}

interface Request extends Asked {
  readonly frame: Frame
  readonly text: string
  /** When it went out last; undefined: it waits for a socket. */
  sentAt: number | undefined
  /** undefined: the session is over, and nobody knows. */
  readonly resolve: (reply: Frame | undefined) => void
}

const firstBackoffMs = 20
const longestBackoffMs = 400
/** How long a phone waits for `auth.ok` before it tries another node. */
const helloPatienceMs = 2_500

/**
 * An extended session's client that does what the rules say and no more [EXT4, RES1]: whenever its socket is gone, or
 * silent for too long, it connects to some node, resumes, and sends again what has no reply. All that passes is recorded.
 */
export class Phone {
  private readonly entries: Entry[] = []
  private readonly options: PhoneOptions
  /** How long it believes in a socket that does not answer: people differ. */
  private readonly patienceMs: number
  private socket: Line | undefined
  private sockets = 0
  private openedAt = 0
  private ready = false
  private leaving = false
  private backoffMs = firstBackoffMs
  private readonly session = new ExtendedSession<Request>()
  private whenReady: (() => void)[] = []

  constructor(options: PhoneOptions) {
    this.options = options
    this.patienceMs = 2_000 + options.random.int(8_000)
  }

  get userId(): string {
    return this.options.userId
  }

  /** '' where it has none yet. */
  get sessionId(): string {
    return this.session.id
  }

  get trace(): Trace {
    return { user: this.options.userId, entries: this.entries }
  }

  connect(): void {
    const { at, dial, can } = this.options
    const socket = this.sockets++
    this.ready = false
    this.openedAt = at()
    const query = queryOf(this.session.point)
    const { node, line } = dial(can === undefined ? query : `${query}&can=${can}`, {
      onText: (text) => {
        // What arrives on a socket that was given up was not seen.
        if (line === this.socket) this.take(socket, inShort(JSON.parse(text) as Frame))
      },
      onClosed: (code) => {
        this.entries.push({ kind: 'close', at: at(), socket, code })
        if (line === this.socket) this.comeBack()
      },
    })
    this.entries.push({ kind: 'open', at: at(), socket, node })
    this.socket = line
  }

  private comeBack(awayMs = 0): void {
    this.ready = false
    this.socket = undefined
    if (this.leaving) return
    const { random, timers } = this.options
    timers.after(awayMs + random.int(this.backoffMs) + 1, () => {
      if (this.socket === undefined && !this.leaving) this.connect()
    })
    this.backoffMs = Math.min(longestBackoffMs, this.backoffMs * 2)
  }

  /** Looks at the clock: a socket that is silent for too long is given up. */
  tick(): void {
    if (this.socket === undefined) return
    const now = this.options.at()
    const oldest = this.session.oldest(({ sentAt }) => sentAt !== undefined)
    const waitsForHello = !this.ready && now - this.openedAt > helloPatienceMs
    const waitsForReply = this.ready && oldest?.sentAt !== undefined && now - oldest.sentAt > this.patienceMs
    if (waitsForHello || waitsForReply) this.lose()
  }

  /** The network is gone: nothing of it is said to anybody. It is back after `awayMs` at the earliest. */
  lose(awayMs?: number): void {
    const lost = this.socket
    if (lost === undefined) return
    this.comeBack(awayMs)
    lost.reset()
  }

  private take(socket: number, frame: Frame): void {
    this.entries.push({ kind: 'in', at: this.options.at(), socket, frame })
    if (frame.event === 'auth.ok') this.onHello(frame)
    else if (frame.request_id !== undefined) this.onReply(frame, frame.request_id)
    else if (frame.event === 'session.reset') this.onReset(frame)
    else {
      if (frame.seq !== undefined) this.session.seq = frame.seq
      this.options.onPush(frame)
    }
  }

  private onHello(frame: Frame): void {
    const { session_id = '', epoch = '', recovered = false, handled = 0 } = frame.data ?? {}
    this.backoffMs = firstBackoffMs
    this.ready = true
    const { again, lost } = this.session.open({ session_id, epoch, recovered, handled })
    for (const { resolve } of lost) resolve(undefined)
    for (const request of again) this.transmit(request)
    if (!recovered) this.options.onFresh(frame)
    for (const resolve of this.whenReady.splice(0)) resolve()
  }

  private onReset(frame: Frame): void {
    const { session_id = '', epoch = '' } = frame.data ?? {}
    this.session.reset({ session_id, epoch }, frame.seq ?? 0)
    this.options.onFresh(frame)
  }

  private onReply(frame: Frame, requestId: string): void {
    this.session.reply(requestId)?.resolve(frame)
  }

  /** Asks, over however many sockets it takes; undefined where the session was lost before a reply came. */
  request(event: string, data: FrameData): Promise<Frame | undefined> {
    const { promise, resolve } = Promise.withResolvers<Frame | undefined>()
    const request = this.session.ask((n) => {
      const requestId = `${this.sockets}.${n}`
      const frame: Frame = { event, request_id: requestId, n, data }
      return { n, requestId, frame, text: JSON.stringify(inFull(frame)), sentAt: undefined, resolve }
    })
    if (this.ready) this.transmit(request)
    return promise
  }

  private transmit(request: Request): void {
    const at = this.options.at()
    request.sentAt = at
    this.entries.push({ kind: 'out', at, socket: this.sockets - 1, frame: request.frame })
    this.socket?.send(request.text)
  }

  /** Waits until it is in. */
  async online(): Promise<void> {
    if (!this.ready) await new Promise<void>((resolve) => this.whenReady.push(resolve))
  }

  /** Everything that the service has to say about the requests so far: nobody knows this event [ENV3, ORD1]. */
  async settle(): Promise<void> {
    while ((await this.request('test.settle', {})) === undefined) await this.online()
  }

  /** Goes for good, without a word. */
  leave(): void {
    this.leaving = true
    this.ready = false
    this.socket?.reset()
  }
}
