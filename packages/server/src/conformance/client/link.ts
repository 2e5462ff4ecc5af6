/** One connection of the client under test, through the kit to the service: each message passes the kit. */
import type { Socket } from 'node:net'
import { closePayload, createMessageReader, encodeFrame, opcodes, readClose } from '../frames.ts'
import { openWire, type Wire } from '../wire.ts'
import type { UpgradeRequest } from './http.ts'

/** What is done with what passes; a scenario sets it. */
export interface Traffic {
  /** False: the service does not get this message of the client. */
  up(text: string): boolean
  /** What the client gets instead of this message of the service. */
  down(text: string): readonly string[]
}

export interface LinkObserver {
  onAnswer(link: Link, status: number): void
  onUp(link: Link, text: string): void
  onDown(link: Link, text: string): void
  /** A ping goes to the client; its pong has the same payload. */
  onPing(link: Link, payload: string): void
  onPong(link: Link, payload: string): void
  /** By the client: its close code, 1006 where it sent none. By the kit or the service: undefined. */
  onGone(link: Link, code: number | undefined): void
}

export interface LinkOptions {
  readonly number: number
  readonly socket: Socket
  readonly request: UpgradeRequest
  /** Where the service is, with the path and query that it gets. */
  readonly wsUrl: string
  readonly traffic: () => Traffic
  readonly observer: LinkObserver
}

const ownPing = 'kit-ping-'

export class Link {
  readonly number: number
  readonly request: UpgradeRequest
  readonly openedAt = performance.now()
  isOpen = true
  /** auth.ok went to the client. */
  isIn = false
  private readonly options: LinkOptions
  private readonly wire: Wire
  private readonly pongs = new Map<string, () => void>()
  private isEnded = false
  private isFrozen = false
  /** The client closed first, with this code. */
  private leftWith: number | undefined

  constructor(options: LinkOptions) {
    this.options = options
    this.number = options.number
    this.request = options.request
    const { socket, request } = options
    this.wire = openWire({
      url: options.wsUrl,
      headers: request.credentials,
      key: request.key,
      version: request.version,
      onAnswer: ({ status, headers }) => this.answer(status, headers),
      onMessage: (opcode, payload) => this.takeDown(opcode, payload),
      onClosed: ({ code, reason }) => this.end(code === 1006 ? undefined : code, reason),
    })
    const read = createMessageReader()
    socket.on('data', (bytes: Buffer) => {
      for (const { opcode, payload } of read(bytes)) this.takeUp(opcode, payload)
    })
    socket.on('close', () => this.onClientGone())
    socket.on('end', () => socket.end())
  }

  private answer(status: number, headers: ReadonlyMap<string, string>): void {
    const { socket, observer } = this.options
    observer.onAnswer(this, status)
    if (status !== 101) {
      socket.end(`HTTP/1.1 ${status || 502} Refused\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`)
      return
    }
    const names = ['Upgrade', 'Connection', 'Sec-WebSocket-Accept', 'Sec-WebSocket-Protocol']
    const lines = names.flatMap((name) => {
      const value = headers.get(name.toLowerCase())
      return value === undefined ? [] : [`${name}: ${value}`]
    })
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`)
  }

  private takeDown(opcode: number, payload: Buffer): void {
    if (this.isFrozen) return
    if (opcode === opcodes.text) {
      for (const text of this.options.traffic().down(payload.toString())) this.toClient(text)
    } else if (opcode === opcodes.ping) {
      this.options.observer.onPing(this, payload.toString('latin1'))
      this.write(opcodes.ping, payload)
    } else if (opcode !== opcodes.close) this.write(opcode, payload)
  }

  private takeUp(opcode: number, payload: Buffer): void {
    if (this.isFrozen) return
    const { observer, traffic } = this.options
    if (opcode === opcodes.text || opcode === opcodes.binary) {
      const text = payload.toString()
      observer.onUp(this, text)
      if (traffic().up(text)) this.wire.send(opcode, payload)
    } else if (opcode === opcodes.pong) {
      const name = payload.toString('latin1')
      observer.onPong(this, name)
      if (!name.startsWith(ownPing)) this.wire.send(opcode, payload)
      this.pongs.get(name)?.()
    } else if (opcode === opcodes.close) {
      const { code } = readClose(payload)
      if (!this.isEnded) {
        this.leftWith ??= code
        this.wire.close(code === 1005 ? null : code)
      }
      this.write(opcodes.close, payload.subarray(0, 2))
      this.options.socket.end()
    } else this.wire.send(opcode, payload)
  }

  private onClientGone(): void {
    if (!this.isOpen) return
    this.isOpen = false
    if (this.leftWith === undefined) this.wire.reset()
    this.options.observer.onGone(this, this.leftWith ?? (this.isEnded ? undefined : 1006))
  }

  private write(opcode: number, payload: Uint8Array | string): void {
    if (this.options.socket.writable) this.options.socket.write(encodeFrame(opcode, payload, false))
  }

  /** As if the service had said it. */
  toClient(text: string): void {
    this.options.observer.onDown(this, text)
    this.write(opcodes.text, text)
  }

  /** As if the client had said it. */
  toService(text: string): void {
    this.wire.send(opcodes.text, text)
  }

  /** Whether the client answers a ping. Its pong also says that it has read everything before. */
  async ping(ms: number): Promise<boolean> {
    const name = `${ownPing}${crypto.randomUUID()}`
    const ponged = new Promise<boolean>((resolve) => this.pongs.set(name, () => resolve(true)))
    this.options.observer.onPing(this, name)
    this.write(opcodes.ping, Buffer.from(name))
    return Promise.race([ponged, Bun.sleep(ms).then(() => false)])
  }

  /** From now on nothing passes, either way, and neither side is notified. */
  freeze(): void {
    this.isFrozen = true
  }

  /** The service's side is gone without a word; the client gets this close frame, or a reset. */
  end(code: number | undefined, reason = ''): void {
    if (this.isEnded) return
    this.isEnded = true
    this.wire.reset()
    const { socket } = this.options
    if (code === undefined || code === 1005) return void socket.resetAndDestroy()
    this.write(opcodes.close, closePayload(code, reason))
    socket.end()
    setTimeout(() => socket.destroy(), 2_000).unref()
  }
}
