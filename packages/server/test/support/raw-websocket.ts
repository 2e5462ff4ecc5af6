import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Closed } from './client.ts'
import { encodeFrame, FrameReader, opcodes } from './frames.ts'

export interface RawWebSocketOptions {
  /** `http://127.0.0.1:PORT` of the service, or of a proxy before it; `https` believes any certificate. */
  readonly url: string
  /** Path and query. */
  readonly target: string
  readonly token: string
  /** `read`: which read of the socket brought it. */
  readonly onText: (text: string, read: number) => void
  /** The connection is gone; 1006 where no close frame came. */
  readonly onClosed: (closed: Closed) => void
}

/** One WebSocket by hand: every text is handed on as it came, and it can die in every way that sockets die. */
export class RawWebSocket {
  /** False: pings are left without an answer. */
  answersPings = true
  private readonly socket: Socket
  private readonly options: RawWebSocketOptions
  private readonly reader = new FrameReader()
  private head: Buffer | undefined = Buffer.alloc(0)
  private closeFrame: Closed | undefined
  private reads = 0

  constructor(options: RawWebSocketOptions) {
    this.options = options
    const { protocol, hostname, port } = new URL(options.url)
    this.socket =
      protocol === 'https:'
        ? connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false })
        : connect(Number(port), hostname)
    this.socket.setNoDelay(true)
    this.socket.on('error', () => {})
    this.socket.on('data', (bytes) => this.onBytes(bytes as Buffer))
    this.socket.on('close', () => options.onClosed(this.closeFrame ?? { code: 1006, reason: '' }))
    this.socket.write(handshake(options))
  }

  /** The port that names the connection on its way. */
  get localPort(): number {
    return this.socket.localPort ?? 0
  }

  private onBytes(bytes: Buffer): void {
    this.reads++
    if (this.head === undefined) {
      this.onFrames(bytes)
      return
    }
    this.head = Buffer.concat([this.head, bytes])
    const end = this.head.indexOf('\r\n\r\n')
    if (end < 0) return
    const after = this.head.subarray(end + 4)
    const isUpgraded = this.head.toString('latin1').startsWith('HTTP/1.1 101')
    this.head = undefined
    if (isUpgraded) this.onFrames(after)
    else this.socket.destroy()
  }

  private onFrames(bytes: Buffer): void {
    for (const { opcode, payload } of this.reader.push(bytes)) {
      if (opcode === opcodes.text) this.options.onText(payload.toString(), this.reads)
      else if (opcode === opcodes.ping && this.answersPings) this.write(encodeFrame(opcodes.pong, payload))
      else if (opcode === opcodes.close) this.onClose(payload)
    }
  }

  private onClose(payload: Buffer): void {
    const code = payload.length >= 2 ? payload.readUInt16BE(0) : 1005
    this.closeFrame = { code, reason: payload.subarray(2).toString() }
    this.socket.end(encodeFrame(opcodes.close, payload.subarray(0, 2)))
  }

  private write(bytes: Uint8Array): void {
    if (!this.socket.destroyed && this.socket.writable) this.socket.write(bytes)
  }

  /** Sends texts in one write. */
  send(...texts: readonly string[]): void {
    this.write(Buffer.concat(texts.map((text) => encodeFrame(opcodes.text, text))))
  }

  /** Sends a close frame. */
  close(code: number): void {
    const payload = Buffer.alloc(2)
    payload.writeUInt16BE(code)
    this.write(encodeFrame(opcodes.close, payload))
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

function handshake({ url, target, token }: RawWebSocketOptions): string {
  const lines = [
    `GET ${target} HTTP/1.1`,
    `Host: ${new URL(url).host}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Key: ${Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('base64')}`,
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Protocol: jwt, ${token}`,
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}
