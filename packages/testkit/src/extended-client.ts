import { tokenHeader } from './client.ts'
import { type Asked, ExtendedSession, queryOf } from './extended-session.ts'
import type { ExtendedMessage, ResumePoint, Trace, TraceEntry } from './extended-trace.ts'
import { overdue } from './patience.ts'
import { type Closed, RawWebSocket } from './raw-websocket.ts'

export interface ExtendedClientOptions {
  readonly userId: string
  readonly url: string
  readonly token: string
  /** What it understands beside, with commas [EXT6]. */
  readonly can?: string | undefined
  /** Comes back by itself whenever its socket is gone. */
  readonly persistent?: boolean
  /** The address to which it comes back, as a load balancer sends it; without it, to the same node. */
  readonly nextUrl?: () => string
  /** Gets every message as it comes; without it they wait for `next`. */
  readonly listener?: (message: ExtendedMessage) => void
  /** Of several nodes: resolves when what they have told each other so far has arrived. */
  readonly passedOn?: (() => Promise<void>) | undefined
}

/** A request that has no reply yet, as it goes over the wire every time. */
interface Request extends Asked {
  readonly text: string
}

/** How long a test waits for something that should come. A bound for failures, never a pace. */
const patienceMs = 30_000
const firstBackoffMs = 5
const longestBackoffMs = 200
const tryAgainMs = 1_000

/**
 * An extended session's client that does what the rules say and no more: it numbers its requests, keeps those without
 * a reply, resumes, and sends again what did not take effect [EXT4, RES1]. It hides nothing and drops nothing twice:
 * every frame is in the trace as it came.
 */
export class ExtendedClient {
  token: string
  url: string
  can: string | undefined
  /** What `auth.ok` said last. */
  hello: ExtendedMessage | undefined
  /** Requests of sessions that could not be resumed: nobody knows what became of them. */
  readonly unknown: string[] = []
  readonly entries: TraceEntry[] = []
  private readonly options: ExtendedClientOptions
  private readonly session = new ExtendedSession<Request>()
  private pending = new Map<string, (reply: ExtendedMessage) => void>()
  private unread: ExtendedMessage[] = []
  private waiters: { matches: (message: ExtendedMessage) => boolean; resolve: (message: ExtendedMessage) => void }[] =
    []
  private socket: RawWebSocket | undefined
  private sockets = 0
  /** The socket is open and `auth.ok` was seen: requests may go. */
  private ready = false
  private leaving = false
  private backoffMs = firstBackoffMs
  private onGone: Promise<Closed> = Promise.resolve({ code: 1006, reason: '' })

  constructor(options: ExtendedClientOptions) {
    this.options = options
    this.token = options.token
    this.url = options.url
    this.can = options.can
  }

  get trace(): Trace {
    return { userId: this.options.userId, entries: this.entries }
  }

  /** Everything that came, in order, on whichever socket. */
  get all(): ExtendedMessage[] {
    return this.entries.flatMap((entry) => (entry.kind === 'in' ? [entry.message] : []))
  }

  /** The pushes: what has a seq. */
  get pushes(): ExtendedMessage[] {
    return this.all.filter(({ seq }) => seq !== undefined)
  }

  /** The events of the pushes so far. */
  events(): string[] {
    return this.pushes.map(({ event }) => event)
  }

  /** Its position now, as a resume would say it. */
  get point(): ResumePoint | undefined {
    return this.session.point
  }

  /** Of the last push that it saw. */
  get seq(): number {
    return this.session.seq
  }

  /** How the socket that it has, or had last, closed. */
  get closed(): Promise<Closed> {
    return this.onGone
  }

  /** Connects, and resumes where there is something to resume; answers `auth.ok`. */
  async connect(point: ResumePoint | undefined = this.point): Promise<ExtendedMessage> {
    const hello = this.next('auth.ok')
    this.open(point)
    return hello
  }

  /** The same, again and again while the service has too much to do and says so [CLOSE 1013]. */
  async comeBack(): Promise<ExtendedMessage> {
    const hello = this.next('auth.ok')
    for (;;) {
      this.open(this.point)
      const closed = await Promise.race([hello.then(() => undefined), this.onGone])
      if (closed?.code !== 1013) return hello
      await Bun.sleep(tryAgainMs * (0.5 + Math.random()))
    }
  }

  private open(point: ResumePoint | undefined): void {
    const socket = this.sockets++
    this.entries.push({ kind: 'opened', socket, resume: point })
    this.ready = false
    if (typeof point?.seq === 'number') this.session.seq = point.seq
    const { promise, resolve } = Promise.withResolvers<Closed>()
    this.onGone = promise
    const raw = new RawWebSocket({
      url: this.url,
      target: `/v1/ws?${queryOf(point)}${this.can === undefined ? '' : `&can=${this.can}`}`,
      headers: [tokenHeader(this.token)],
      onText: (text, read) => this.onMessage({ socket, read, message: JSON.parse(text) as ExtendedMessage }, raw),
      onClosed: (closed) => {
        this.entries.push({ kind: 'closed', socket, ...closed })
        resolve(closed)
        this.onClosed(raw)
      },
    })
    this.socket = raw
    raw.answer.then(({ status }) => status === 101 || raw.reset())
  }

  private onClosed(raw: RawWebSocket): void {
    if (raw !== this.socket) return
    this.ready = false
    if (this.options.persistent !== true || this.leaving) return
    setTimeout(() => {
      if (raw !== this.socket || this.leaving) return
      this.url = this.options.nextUrl?.() ?? this.url
      this.open(this.point)
    }, this.backoffMs)
    this.backoffMs = Math.min(longestBackoffMs, this.backoffMs * 2)
  }

  private onMessage(came: { socket: number; read: number; message: ExtendedMessage }, raw: RawWebSocket): void {
    const { message } = came
    this.entries.push({ kind: 'in', ...came })
    if (raw === this.socket) this.take(message)
    // Its pong says that the reply arrived, on whichever socket: it is not sent again [EXT4].
    else if (message.seq === undefined && message.request_id !== undefined) this.onReply(message.request_id, message)
    const index = this.waiters.findIndex(({ matches }) => matches(message))
    if (index < 0) this.options.listener === undefined ? this.unread.push(message) : this.options.listener(message)
    else this.waiters.splice(index, 1)[0]!.resolve(message)
  }

  private take(message: ExtendedMessage): void {
    if (message.event === 'auth.ok') this.onHello(message)
    else if (message.event === 'session.reset') this.session.reset(message.data, message.seq ?? 0)
    else if (message.seq !== undefined) this.session.seq = message.seq
    else if (message.request_id !== undefined) this.onReply(message.request_id, message)
  }

  private onHello(hello: ExtendedMessage): void {
    this.hello = hello
    this.backoffMs = firstBackoffMs
    const { again, lost } = this.session.open(hello.data)
    this.unknown.push(...lost.map(({ text }) => text))
    if (lost.length > 0) this.pending.clear()
    this.ready = true
    if (again.length === 0) return
    this.entries.push({ kind: 'again', socket: this.sockets - 1, requests: again.length })
    this.socket?.send(...again.map(({ text }) => text))
  }

  private onReply(requestId: string, message: ExtendedMessage): void {
    if (this.session.reply(requestId) === undefined) return
    this.pending.get(requestId)?.(message)
    this.pending.delete(requestId)
  }

  /** Asks for something and answers the reply, over however many sockets it takes. */
  request(event: string, data: object = {}, requestId: string = crypto.randomUUID()): Promise<ExtendedMessage> {
    return this.patiently(`the reply to ${event}`, (resolve) => {
      this.pending.set(requestId, resolve)
      this.ask(event, data, requestId)
    })
  }

  /** Asks for something without wanting to hear of it. */
  send(event: string, data: object = {}): void {
    this.ask(event, data, undefined)
  }

  private ask(event: string, data: object, requestId: string | undefined): void {
    const { n, text } = this.session.ask((n) => {
      return { n, requestId, text: JSON.stringify({ event, request_id: requestId, n, data }) }
    })
    this.entries.push({ kind: 'asked', n, requestId, event, data })
    if (this.ready) this.socket?.send(text)
  }

  /** Sends texts as they are, past all bookkeeping. */
  raw(...texts: readonly string[]): void {
    this.socket?.send(...texts)
  }

  /** The next unread message with this event (and the other conditions), waiting for it if need be. */
  next(event: string, matches: (message: ExtendedMessage) => boolean = () => true): Promise<ExtendedMessage> {
    const fits = (message: ExtendedMessage) => message.event === event && matches(message)
    const index = this.unread.findIndex(fits)
    if (index >= 0) return Promise.resolve(this.unread.splice(index, 1)[0]!)
    return this.patiently(event, (resolve) => {
      this.waiters.push({ matches: fits, resolve })
    })
  }

  /** Everything that the service had to say so far: an unknown event is answered after all that came before it [ORD1]. */
  async settle(): Promise<void> {
    if (this.options.passedOn !== undefined) await this.options.passedOn()
    await this.request('test.settle', {}, `settle-${crypto.randomUUID()}`)
  }

  /** Its network is gone; nothing of it is said to anybody. */
  async die(): Promise<void> {
    this.ready = false
    this.socket?.reset()
    await this.onGone
  }

  /** Closes with a close frame [RES1]. */
  async leave(code = 1000): Promise<Closed> {
    this.leaving = true
    this.socket?.close(code)
    return this.onGone
  }

  /** Comes back on another socket while it still has one, and leaves the old one to the service [RES1]. */
  supersede(): void {
    this.open(this.point)
  }

  /** Gives up on its socket, whatever becomes of it, and comes back on another one. */
  abandon(): void {
    const old = this.socket
    this.supersede()
    old?.reset()
  }

  /** Comes back by itself no longer. */
  stop(): void {
    this.leaving = true
    this.socket?.reset()
  }

  /** The port of its socket. */
  get localPort(): number {
    return this.socket?.localPort ?? 0
  }

  /** Stops reading; what the service sends piles up. */
  pause(): void {
    this.socket?.pause()
  }
  resumeReading(): void {
    this.socket?.resume()
  }

  set answersPings(answers: boolean) {
    if (this.socket !== undefined) this.socket.answersPings = answers
  }

  /** What became of its socket, for failures. */
  private lastOf(): string {
    const last = this.entries.findLast(({ kind }) => kind !== 'in')
    return last?.kind === 'closed' ? `closed with ${last.code} ${last.reason}` : `${last?.kind}`
  }

  private patiently<T>(what: string, start: (resolve: (value: T) => void) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      const ms = this.options.persistent === true ? 3 * patienceMs : patienceMs
      const refuse = () =>
        reject(
          new Error(
            `${this.options.userId} waited ${ms} ms for ${what}; unread: ${this.unread.map(summaryOf)}; ${this.lastOf()}`,
          ),
        )
      const cancel = overdue(ms, refuse)
      start((value) => {
        cancel()
        resolve(value)
      })
    })
  }
}

/** What a failure says of a message: nothing of what peers say to each other. */
function summaryOf({ event, data }: ExtendedMessage): string {
  const { reason, ended_at } = data ?? {}
  return reason === undefined ? event : `${event} (${reason}, ${ended_at})`
}
