import { overdue } from './patience.ts'
import { type Closed, type HandshakeAnswer, RawWebSocket } from './raw-websocket.ts'

/** An envelope as it came, nothing taken away. */
export interface Received {
  readonly event: string
  readonly request_id?: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever came and compare it.
  readonly data: any
  // biome-ignore lint/suspicious/noExplicitAny: the same.
  readonly error?: any
  readonly success?: boolean
}

export interface ClientOptions {
  /** `http://127.0.0.1:PORT` of the service (or of a proxy before it). */
  readonly url: string
  readonly token?: string
  /** How the token is sent. Default: the subprotocol list. */
  readonly by?: 'subprotocol' | 'header'
  /** Request headers as they go out; replaces what `token` and `by` would say. */
  readonly headers?: readonly string[]
  readonly path?: string
  /** False: pings are left without an answer, as by a phone that lost its network. */
  readonly answersPings?: boolean
  /** Of several nodes: resolves when what they have told each other so far has arrived. */
  readonly passedOn?: (() => Promise<void>) | undefined
}

/** How long a test waits for something that should come. A bound for failures, never a pace. */
const patienceMs = 30_000

/**
 * A WebSocket client that hides nothing: every text is kept in order, pings are seen, and the socket can die in every
 * way that sockets die.
 */
export class Client {
  /** Everything that came, in order, read or not. */
  readonly all: Received[] = []
  /** The same, as they were written. */
  readonly texts: string[] = []
  /** The service's pings so far. */
  pings = 0
  readonly status: Promise<HandshakeAnswer>
  readonly closed: Promise<Closed>

  private readonly socket: RawWebSocket
  private readonly passedOn: ClientOptions['passedOn']
  private unread: Received[] = []
  /** What became of its socket, for failures. */
  private end = 'open'
  private waiters: { matches: (message: Received) => boolean; resolve: (message: Received) => void }[] = []
  private pingWaiters: (() => void)[] = []

  constructor(options: ClientOptions) {
    const { promise, resolve } = Promise.withResolvers<Closed>()
    this.closed = promise.then((closed) => {
      this.end = `closed with ${closed.code} ${closed.reason}`
      return closed
    })
    this.passedOn = options.passedOn
    this.socket = new RawWebSocket({
      url: options.url,
      target: options.path ?? '/v1/ws',
      headers: options.headers ?? [tokenHeader(options.token ?? '', options.by)],
      answersPings: options.answersPings ?? true,
      onText: (text) => this.onText(text),
      onPing: () => {
        this.pings++
        for (const heard of this.pingWaiters.splice(0)) heard()
      },
      onClosed: resolve,
    })
    this.status = this.socket.answer
  }

  set answersPings(answers: boolean) {
    this.socket.answersPings = answers
  }

  private onText(text: string): void {
    const message = JSON.parse(text) as Received
    this.texts.push(text)
    this.all.push(message)
    const index = this.waiters.findIndex(({ matches }) => matches(message))
    if (index < 0) this.unread.push(message)
    else this.waiters.splice(index, 1)[0]!.resolve(message)
  }

  /** Sends bytes as they are. */
  raw(bytes: Uint8Array): void {
    this.socket.raw(bytes)
  }

  /** Sends one text frame. */
  text(text: string): void {
    this.socket.send(text)
  }

  /** Sends an envelope. */
  send(event: string, data?: object, requestId?: string): void {
    this.text(JSON.stringify({ event, request_id: requestId, data }))
  }

  /** The next unread message with this event (and the other conditions), waiting for it if need be. */
  next(event: string, matches: (message: Received) => boolean = () => true): Promise<Received> {
    const fits = (message: Received) => message.event === event && matches(message)
    const index = this.unread.findIndex(fits)
    if (index >= 0) return Promise.resolve(this.unread.splice(index, 1)[0]!)
    return this.patiently(
      `${event} (came instead: ${this.unread.map((message) => message.event).join(', ')})`,
      (resolve) => {
        this.waiters.push({ matches: fits, resolve })
      },
    )
  }

  /** The error of a request. */
  async error(requestId: string): Promise<Received['error']> {
    return (await this.next('call.error', (message) => message.request_id === requestId)).error
  }

  /**
   * Everything that the service had to say so far: an unknown event is answered after all that was decided before it
   * [ORD1]. Messages that another client's request caused are there if that client's own `settle` was through before.
   */
  async settle(): Promise<void> {
    if (this.passedOn !== undefined) await this.passedOn()
    const requestId = `settle-${crypto.randomUUID()}`
    this.send('test.settle', {}, requestId)
    await this.error(requestId)
  }

  /** The events that came so far, without the answers to `settle`. */
  events(): string[] {
    return this.all.filter(({ request_id: id }) => !id?.startsWith('settle-')).map(({ event }) => event)
  }

  nextPing(): Promise<void> {
    return this.patiently('a ping', (resolve) => this.pingWaiters.push(resolve as () => void))
  }

  /** Closes with a close frame, as a browser does when its page goes [PLACE5]. */
  close(code: number | null = 1000): Promise<Closed> {
    this.socket.close(code)
    return this.closed
  }

  /** The connection is gone without a word. */
  async die(): Promise<void> {
    this.socket.reset()
    await this.closed
  }

  /** Stops reading; what the service sends piles up. */
  pause(): void {
    this.socket.pause()
  }
  resume(): void {
    this.socket.resume()
  }

  private patiently<T>(what: string, start: (resolve: (value: T) => void) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      const refuse = () => reject(new Error(`waited ${patienceMs} ms for ${what}; ${this.end}`))
      const cancel = overdue(patienceMs, refuse)
      start((value) => {
        cancel()
        resolve(value)
      })
    })
  }
}

/** The header line that carries a session token. */
export function tokenHeader(token: string, by: ClientOptions['by'] = 'subprotocol'): string {
  return by === 'header' ? `Authorization: Bearer ${token}` : `Sec-WebSocket-Protocol: jwt, ${token}`
}
