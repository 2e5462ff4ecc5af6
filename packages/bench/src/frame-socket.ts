// One WebSocket client over a bare TCP socket. A full client library would cost more per message than the servers
// that are measured; here a message is a header read and a precomputed frame written.
import type { Socket } from 'bun'
import { connectOptions, type Way } from './connection.ts'
import { encodeMaskedFrame, FrameScanner, newMaskKey, Opcode, type Split } from './websocket-frames.ts'

const decoder = new TextDecoder()
const encoder = new TextEncoder()
const END_OF_HEADERS = '\r\n\r\n'
/** Status 1000, RFC 6455 section 7.4.1. */
const NORMAL_CLOSURE = new Uint8Array([0x03, 0xe8])

/** What a protocol does differently from one text a frame. */
export interface Framing {
  /** Frames are binary: each character of a message is one byte. */
  readonly binary?: boolean
  readonly split?: Split
}

export class FrameSocket {
  readonly scanner: FrameScanner
  /** Called with the number of expected messages in each chunk that held any. */
  onFrames: (count: number) => void = () => {}
  /** Every other message; by default it waits in the inbox for `next()`. */
  onText: (text: string) => void
  /** The server closed, or broke the protocol. */
  onFailure: (error: Error) => void = () => {}
  /** A client that is silent, though its connection stands, does not. */
  answersPings = true
  readonly #opcode: number
  #socket: Socket<FrameSocket> | null = null
  #maskKey = newMaskKey()
  #handshake: string | null = ''
  #unsent: Uint8Array[] = []
  #inbox: string[] = []
  #waiting: { resolve: (text: string) => void; reject: (error: Error) => void } | null = null
  #opened = Promise.withResolvers<void>()
  #closed = Promise.withResolvers<void>()
  #failure: Error | null = null
  #closing = false

  private constructor({ binary = false, split }: Framing) {
    this.onText = this.toInbox
    this.#opcode = binary ? Opcode.binary : Opcode.text
    const sink = {
      onMessage: (payload: Uint8Array) => this.onText(this.#decode(payload)),
      onControl: (opcode: number, payload: Uint8Array) => this.#control(opcode, payload),
    }
    this.scanner = new FrameScanner(sink, split)
    this.#opened.promise.catch(() => {})
  }

  /** Connects, upgrades, and resolves when the server has answered 101. */
  static async open(port: number, upgradeRequest: string, framing: Framing = {}, way: Way = {}): Promise<FrameSocket> {
    const client = new FrameSocket(framing)
    await Bun.connect<FrameSocket>({
      ...connectOptions(way),
      port,
      data: client,
      socket: handlers(upgradeRequest),
    })
    await client.#opened.promise
    return client
  }

  /** The next message that nobody has taken yet. */
  next(): Promise<string> {
    const text = this.#inbox.shift()
    if (text !== undefined) return Promise.resolve(text)
    if (this.#failure !== null) return Promise.reject(this.#failure)
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject }
    })
  }

  /** Messages that came and that nobody has taken. */
  get unread(): readonly string[] {
    return this.#inbox
  }

  /** Everything that was written has left. */
  get isClear(): boolean {
    return this.#unsent.length === 0
  }

  frame(text: string, opcode: number = this.#opcode): Uint8Array {
    return encodeMaskedFrame(this.encode(text), this.#maskKey, opcode)
  }

  encode(text: string): Uint8Array {
    return this.#opcode === Opcode.binary ? Buffer.from(text, 'latin1') : encoder.encode(text)
  }

  #decode(payload: Uint8Array): string {
    return this.#opcode === Opcode.binary ? Buffer.from(payload).toString('latin1') : decoder.decode(payload)
  }

  send(text: string): void {
    this.write(this.frame(text))
  }

  write(bytes: Uint8Array): void {
    if (this.#unsent.length > 0) {
      this.#unsent.push(bytes)
      return
    }
    const written = this.#socket?.write(bytes) ?? -1
    if (written === bytes.length) return
    if (written < 0) this.#fail(new Error('Writing to a closed connection'))
    else this.#unsent.push(bytes.subarray(written))
  }

  /** Says goodbye as a client does and resolves when the TCP connection is gone. */
  async close(): Promise<void> {
    if (!this.#closing && this.#socket !== null) {
      this.#closing = true
      this.write(encodeMaskedFrame(NORMAL_CLOSURE, this.#maskKey, Opcode.close))
      const impatience = setTimeout(() => this.#socket?.terminate(), 1000)
      await this.#closed.promise
      clearTimeout(impatience)
    }
  }

  /** Resets the connection: no farewell and no TIME_WAIT, so that thousands can be closed at once. */
  terminate(): Promise<void> {
    this.#closing = true
    this.#socket?.terminate()
    return this.#closed.promise
  }

  readonly toInbox = (text: string): void => {
    const waiting = this.#waiting
    this.#waiting = null
    if (waiting === null) this.#inbox.push(text)
    else waiting.resolve(text)
  }

  #control(opcode: number, payload: Uint8Array): void {
    if (opcode === Opcode.ping && this.answersPings) this.write(encodeMaskedFrame(payload, this.#maskKey, Opcode.pong))
    if (opcode !== Opcode.close) return
    if (this.#closing) {
      this.#socket?.end()
      return
    }
    const code = payload.length >= 2 ? payload[0]! * 256 + payload[1]! : 1005
    this.#fail(new Error(`The server closed with ${code} ${decoder.decode(payload.subarray(2))}`.trimEnd()))
  }

  #fail(error: Error): void {
    if (this.#failure !== null || this.#closing) return
    this.#failure = error
    this.#opened.reject(error)
    this.#waiting?.reject(error)
    this.#waiting = null
    this.onFailure(error)
    this.#socket?.terminate()
  }

  #readHandshake(chunk: Uint8Array): void {
    const text = this.#handshake + Buffer.from(chunk).toString('latin1')
    const end = text.indexOf(END_OF_HEADERS)
    if (end < 0) {
      this.#handshake = text
      return
    }
    if (!text.startsWith('HTTP/1.1 101')) {
      this.#fail(new Error(`The upgrade was refused: ${text.slice(0, text.indexOf('\r\n'))}`))
      return
    }
    this.#handshake = null
    this.#opened.resolve()
    const rest = Buffer.from(text.slice(end + END_OF_HEADERS.length), 'latin1')
    if (rest.length > 0) this.received(rest)
  }

  /** Called by the socket handlers only. */
  attached(socket: Socket<FrameSocket>): void {
    this.#socket = socket
  }

  /** Called by the socket handlers only. */
  received(chunk: Uint8Array): void {
    if (this.#handshake !== null) {
      this.#readHandshake(chunk)
      return
    }
    try {
      const count = this.scanner.push(chunk)
      if (count > 0) this.onFrames(count)
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)))
    }
  }

  /** Called by the socket handlers only. */
  writable(): void {
    const waiting = this.#unsent
    this.#unsent = []
    for (const bytes of waiting) this.write(bytes)
  }

  /** Called by the socket handlers only. */
  gone(error: Error | null): void {
    this.#fail(error ?? new Error('The connection was lost'))
    this.#socket = null
    this.#closed.resolve()
  }
}

function handlers(upgradeRequest: string) {
  return {
    open(socket: Socket<FrameSocket>) {
      socket.data.attached(socket)
      socket.data.write(encoder.encode(upgradeRequest))
    },
    data(socket: Socket<FrameSocket>, chunk: Buffer) {
      socket.data.received(chunk)
    },
    drain(socket: Socket<FrameSocket>) {
      socket.data.writable()
    },
    close(socket: Socket<FrameSocket>) {
      socket.data.gone(null)
    },
    error(socket: Socket<FrameSocket>, error: Error) {
      socket.data.gone(error)
    },
  }
}
