import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { encodeFrame, FrameReader, opcodes } from './frames.ts'

export interface Closed {
  /** 1006 where no close frame came. */
  readonly code: number
  readonly reason: string
}

/** What the service answered to the handshake. */
export interface HandshakeAnswer {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  /** What came after the head so far. */
  body(): string
}

export interface RawWebSocketOptions {
  /** `http://127.0.0.1:PORT` of the service, or of a proxy before it; `https` believes any certificate. */
  readonly url: string
  /** Path and query. */
  readonly target: string
  /** Header lines beside those of the handshake itself. */
  readonly headers: readonly string[]
  /** False: pings, and a close frame, are left without an answer, as by a phone that lost its network. */
  readonly answersPings?: boolean
  /** `read`: which read of the socket brought it. */
  readonly onText: (text: string, read: number) => void
  readonly onPing?: () => void
  /** The connection is gone. */
  readonly onClosed: (closed: Closed) => void
}

/** One WebSocket by hand: every text is handed on as it came, and it can die in every way that sockets die. */
export class RawWebSocket {
  answersPings: boolean
  readonly answer: Promise<HandshakeAnswer>
  private readonly socket: Socket
  private readonly options: RawWebSocketOptions
  private readonly reader = new FrameReader()
  private head: Buffer | undefined = Buffer.alloc(0)
  private isUpgraded = false
  private body = ''
  private closeFrame: Closed | undefined
  private reads = 0
  private settleAnswer!: (answer: HandshakeAnswer) => void

  constructor(options: RawWebSocketOptions) {
    this.options = options
    this.answersPings = options.answersPings ?? true
    this.answer = new Promise((resolve) => {
      this.settleAnswer = resolve
    })
    const { protocol, hostname, port } = new URL(options.url)
    this.socket =
      protocol === 'https:'
        ? connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false })
        : connect(Number(port), hostname)
    this.socket.setNoDelay(true)
    this.socket.on('error', () => {})
    this.socket.on('data', (bytes) => this.onBytes(bytes as Buffer))
    this.socket.on('close', () => options.onClosed(this.closeFrame ?? { code: 1006, reason: '' }))
    this.socket.write(upgradeHead(options.headers, options.target, new URL(options.url).host))
  }

  /** The port that names the connection on its way. */
  get localPort(): number {
    return this.socket.localPort ?? 0
  }

  private onBytes(bytes: Buffer): void {
    this.reads++
    let after = bytes
    if (this.head !== undefined) {
      this.head = Buffer.concat([this.head, bytes])
      const end = this.head.indexOf('\r\n\r\n')
      if (end < 0) return
      after = this.head.subarray(end + 4)
      this.onHead(this.head.subarray(0, end).toString('latin1'))
      this.head = undefined
    }
    if (this.isUpgraded) this.onFrames(after)
    else this.body += after.toString('latin1')
  }

  private onHead(head: string): void {
    const [line = '', ...lines] = head.split('\r\n')
    const status = Number(line.split(' ')[1])
    const headers = new Map(
      lines.map((text) => {
        const at = text.indexOf(':')
        return [text.slice(0, at).toLowerCase(), text.slice(at + 1).trim()]
      }),
    )
    this.isUpgraded = status === 101
    this.settleAnswer({ status, headers, body: () => this.body })
  }

  private onFrames(bytes: Buffer): void {
    for (const { opcode, payload } of this.reader.push(bytes)) {
      if (opcode === opcodes.text) this.options.onText(payload.toString(), this.reads)
      else if (opcode === opcodes.ping) this.onPing(payload)
      else if (opcode === opcodes.close) this.onClose(payload)
    }
  }

  private onPing(payload: Buffer): void {
    if (this.answersPings) this.raw(encodeFrame(opcodes.pong, payload))
    this.options.onPing?.()
  }

  private onClose(payload: Buffer): void {
    const code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005
    this.closeFrame = { code, reason: payload.subarray(2).toString() }
    if (this.answersPings) this.socket.end(encodeFrame(opcodes.close, payload.subarray(0, 2)))
  }

  /** Sends bytes as they are. */
  raw(bytes: Uint8Array): void {
    if (!this.socket.destroyed && this.socket.writable) this.socket.write(bytes)
  }

  /** Sends texts in one write. */
  send(...texts: readonly string[]): void {
    this.raw(Buffer.concat(texts.map((text) => encodeFrame(opcodes.text, text))))
  }

  /** Sends a close frame; `null`: one without a code. */
  close(code: number | null): void {
    const payload = Buffer.alloc(code === null ? 0 : 2)
    if (code !== null) payload.writeUInt16BE(code)
    this.raw(encodeFrame(opcodes.close, payload))
  }

  /** The connection is gone without a word: a reset. */
  reset(): void {
    this.socket.resetAndDestroy()
  }

  /** Stops reading; what the service sends piles up. */
  pause(): void {
    this.socket.pause()
  }
  resume(): void {
    this.socket.resume()
  }
}

/** The head of an upgrade request; further header lines as they are to go out. */
export function upgradeHead(lines: readonly string[], target = '/v1/ws', host = 'localhost'): string {
  const head = [
    `GET ${target} HTTP/1.1`,
    `Host: ${host}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Version: 13',
    ...lines,
  ]
  return `${head.join('\r\n')}\r\n\r\n`
}
