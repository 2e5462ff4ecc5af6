import { connect, type Socket } from 'node:net'
import { encodeFrame, FrameReader, opcodes } from './frames.ts'

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
}

export interface Closed {
  /** 1006 where no close frame came. */
  readonly code: number
  readonly reason: string
}

/** How long a test waits for something that should come. A bound for failures, never a pace. */
const patienceMs = 10_000

/**
 * A WebSocket client that hides nothing: every text is kept in order, pings are seen, and the socket can die in every
 * way that sockets die.
 */
export class Client {
  /** Everything that came, in order, read or not. */
  readonly all: Received[] = []
  /** The service's pings so far. */
  pings = 0
  answersPings: boolean
  readonly status: Promise<{ status: number; headers: Map<string, string>; body: () => string }>
  readonly closed: Promise<Closed>

  private readonly socket: Socket
  private readonly reader = new FrameReader()
  private unread: Received[] = []
  private waiters: { matches: (message: Received) => boolean; resolve: (message: Received) => void }[] = []
  private pingWaiters: (() => void)[] = []
  private head: Buffer | undefined = Buffer.alloc(0)
  private rest = ''
  private closeFrame: Closed | undefined
  private settleStatus!: (status: Awaited<Client['status']>) => void

  constructor(options: ClientOptions) {
    this.answersPings = options.answersPings ?? true
    const { hostname, port } = new URL(options.url)
    this.status = new Promise((resolve) => {
      this.settleStatus = resolve
    })
    this.socket = connect(Number(port), hostname)
    this.closed = new Promise((resolve) => {
      this.socket.on('close', () => resolve(this.closeFrame ?? { code: 1006, reason: '' }))
    })
    this.socket.on('error', () => {})
    this.socket.on('data', (bytes) => this.onBytes(bytes as Buffer))
    this.socket.write(handshake(options))
  }

  private onBytes(bytes: Buffer): void {
    if (this.head === undefined) {
      this.rest += bytes.toString('latin1')
      this.onFrames(bytes)
      return
    }
    this.head = Buffer.concat([this.head, bytes])
    const end = this.head.indexOf('\r\n\r\n')
    if (end < 0) return
    const [line = '', ...lines] = this.head.subarray(0, end).toString('latin1').split('\r\n')
    const headers = new Map<string, string>(
      lines.map(
        (text) => [text.slice(0, text.indexOf(':')).toLowerCase(), text.slice(text.indexOf(':') + 1).trim()] as const,
      ),
    )
    const after = this.head.subarray(end + 4)
    this.head = undefined
    this.rest = after.toString('latin1')
    this.settleStatus({ status: Number(line.split(' ')[1]), headers, body: () => this.rest })
    this.onFrames(after)
  }

  private onFrames(bytes: Buffer): void {
    for (const { opcode, payload } of this.reader.push(bytes)) {
      if (opcode === opcodes.text) this.onText(payload.toString())
      else if (opcode === opcodes.ping) this.onPing(payload)
      else if (opcode === opcodes.close) this.onClose(payload)
    }
  }

  private onText(text: string): void {
    const message = JSON.parse(text) as Received
    this.all.push(message)
    const index = this.waiters.findIndex(({ matches }) => matches(message))
    if (index < 0) this.unread.push(message)
    else this.waiters.splice(index, 1)[0]!.resolve(message)
  }

  private onPing(payload: Buffer): void {
    this.pings++
    if (this.answersPings) this.raw(encodeFrame(opcodes.pong, payload))
    for (const resolve of this.pingWaiters.splice(0)) resolve()
  }

  private onClose(payload: Buffer): void {
    const code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005
    this.closeFrame = { code, reason: payload.subarray(2).toString('utf8') }
    if (this.answersPings) this.socket.end(encodeFrame(opcodes.close, payload.subarray(0, 2)))
  }

  /** Sends bytes as they are. */
  raw(bytes: Uint8Array): void {
    if (!this.socket.destroyed) this.socket.write(bytes)
  }

  /** Sends one text frame. */
  text(text: string): void {
    this.raw(encodeFrame(opcodes.text, text))
  }

  /** Sends an envelope. */
  send(event: string, data?: object, requestId?: string): void {
    this.text(JSON.stringify({ event, request_id: requestId, data }))
  }

  /** The next unread message with this event (and whatever else is asked of it), waiting for it if need be. */
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
   * [ORD1]. What comes of another client's request is there once that client's own `settle` is through.
   */
  async settle(): Promise<void> {
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
  close(code = 1000): Promise<Closed> {
    const payload = Buffer.alloc(2)
    payload.writeUInt16BE(code)
    this.raw(encodeFrame(opcodes.close, payload))
    return this.closed
  }

  /** The connection is gone without a word. */
  async die(): Promise<void> {
    this.socket.resetAndDestroy()
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
      const timer = setTimeout(() => reject(new Error(`waited ${patienceMs} ms for ${what}`)), patienceMs)
      start((value) => {
        clearTimeout(timer)
        resolve(value)
      })
    })
  }
}

function handshake(options: ClientOptions): string {
  const { host } = new URL(options.url)
  const token = options.token ?? ''
  const auth = options.by === 'header' ? [`Authorization: Bearer ${token}`] : [`Sec-WebSocket-Protocol: jwt, ${token}`]
  const lines = [
    `GET ${options.path ?? '/v1/ws'} HTTP/1.1`,
    `Host: ${host}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Key: ${Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('base64')}`,
    'Sec-WebSocket-Version: 13',
    ...(options.headers ?? auth),
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}
