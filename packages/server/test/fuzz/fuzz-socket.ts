import { connect, type Socket } from 'node:net'
import { encodeFrame, FrameReader, opcodes } from '@ringwire/testkit/frames'
import { upgradeHead } from '@ringwire/testkit/raw-websocket'
import type { Findings } from './findings.ts'

/** A WebSocket connection that may send anything; whatever comes back is judged. */
export class FuzzSocket {
  readonly opened: Promise<void>
  readonly closed: Promise<void>
  isClosed = false
  /** What was sent last. */
  input: Uint8Array | string = ''
  private readonly socket: Socket
  private readonly reader = new FrameReader()
  private readonly findings: Findings
  private head: Buffer | undefined = Buffer.alloc(0)
  private closeCode = 1006
  private waiting = new Map<string, () => void>()
  private listeners: { event: string; resolve: (data: { call_uuid: string }) => void }[] = []
  private open!: () => void

  /** Of an extended session: where it could be resumed. */
  session: { session_id: string; epoch: string } | undefined

  constructor(url: string, token: string, findings: Findings, options: { mayClose?: boolean; query?: string } = {}) {
    const { hostname, port } = new URL(url)
    this.findings = findings
    this.opened = new Promise((resolve) => {
      this.open = resolve
    })
    this.socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    this.socket.on('data', (bytes) => this.onBytes(bytes as Buffer))
    this.socket.on('error', () => {})
    this.closed = new Promise((resolve) => {
      const end = () => {
        if (this.isClosed) return
        this.isClosed = true
        findings.closed(this.closeCode, this.input, options.mayClose ?? false)
        this.socket.resetAndDestroy()
        for (const wake of this.waiting.values()) wake()
        this.open()
        resolve()
      }
      this.socket.on('end', end)
      this.socket.on('close', end)
    })
    const target = `/v1/ws${options.query ?? ''}`
    this.socket.write(upgradeHead([`Sec-WebSocket-Protocol: jwt, ${token}`], target))
  }

  private onBytes(bytes: Buffer): void {
    let after = bytes
    if (this.head !== undefined) {
      this.head = Buffer.concat([this.head, bytes])
      const end = this.head.indexOf('\r\n\r\n')
      if (end < 0) return
      after = this.head.subarray(end + 4)
      this.head = undefined
      this.open()
    }
    for (const { opcode, payload } of this.reader.push(after)) {
      if (opcode === opcodes.text) this.onText(payload.toString())
      else if (opcode === opcodes.ping) this.frame(encodeFrame(opcodes.pong, payload))
      else if (opcode === opcodes.close) this.closeCode = payload.length < 2 ? 1005 : payload.readUInt16BE(0)
    }
  }

  private onText(text: string): void {
    this.findings.message(text, this.input)
    const { event, request_id: id, data } = JSON.parse(text)
    if (event === 'auth.ok' && 'session_id' in data) this.session = data
    if (typeof id === 'string') {
      this.waiting.get(id)?.()
      this.waiting.delete(id)
    }
    const index = this.listeners.findIndex((listener) => listener.event === event)
    if (index >= 0) this.listeners.splice(index, 1)[0]!.resolve(data)
  }

  /** Sends bytes as they are. */
  frame(bytes: Uint8Array): void {
    if (!this.isClosed) this.socket.write(bytes)
  }

  /** Everything that was sent before is through; or the socket is closed. */
  async barrier(): Promise<void> {
    if (this.isClosed) return
    const id = `barrier-${crypto.randomUUID()}`
    const through = new Promise<void>((resolve) => this.waiting.set(id, resolve))
    this.frame(encodeFrame(opcodes.text, JSON.stringify({ event: 'test.barrier', request_id: id })))
    await Promise.race([through, this.closed])
  }

  /** The data of the next push of an event, or nothing where the socket closes first. */
  next(event: string): Promise<{ call_uuid: string } | undefined> {
    const came = new Promise<{ call_uuid: string }>((resolve) => this.listeners.push({ event, resolve }))
    return Promise.race([came, this.closed.then(() => undefined)])
  }

  /** Our half is over. */
  end(): void {
    this.socket.end()
  }

  destroy(): void {
    this.socket.resetAndDestroy()
  }
}
