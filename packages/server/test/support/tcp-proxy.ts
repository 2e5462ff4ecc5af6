import { connect, createServer, type Server, type Socket } from 'node:net'
import { type Frame, FrameReader, opcodes } from './frames.ts'

/** Both ends of one connection through the proxy. */
type End = 'client' | 'service'

/**
 * One connection through the proxy. It can do what networks do to connections: nothing at all any more, without a word
 * to either end.
 */
export class Link {
  /** Frames that the service sent, whether the client got them or not. */
  readonly frames: Frame[] = []
  /** Of the service's close frame. */
  closeCode: number | undefined
  /** The service's pings so far. */
  pings = 0
  /** Resolves when the service has let go of the connection. */
  readonly serviceGone: Promise<void>
  private readonly ends: Record<End, Socket>
  private readonly reader = new FrameReader()
  private head: Buffer | undefined = Buffer.alloc(0)
  private stalled = false
  private held: { to: Socket; bytes: Buffer }[] = []
  private delayMs = 0
  private watchers: (() => void)[] = []

  constructor(client: Socket, service: Socket) {
    this.ends = { client, service }
    this.serviceGone = new Promise((resolve) => {
      service.on('end', () => resolve())
      service.on('close', () => resolve())
    })
    client.on('data', (bytes) => this.pass(service, bytes as Buffer))
    service.on('data', (bytes) => {
      this.observe(bytes as Buffer)
      this.pass(client, bytes as Buffer)
    })
    client.on('end', () => this.passEnd(service))
    service.on('end', () => this.passEnd(client))
    client.on('close', () => this.passClose(service))
    service.on('close', () => this.passClose(client))
    for (const socket of [client, service]) socket.on('error', () => {})
  }

  private pass(to: Socket, bytes: Buffer): void {
    if (this.stalled) this.held.push({ to, bytes })
    else if (this.delayMs === 0) to.write(bytes)
    else setTimeout(() => to.write(bytes), this.delayMs)
  }

  private passEnd(to: Socket): void {
    if (!this.stalled) setTimeout(() => to.end(), this.delayMs)
  }

  private passClose(to: Socket): void {
    if (!this.stalled) setTimeout(() => to.destroy(), this.delayMs)
  }

  private observe(bytes: Buffer): void {
    let after = bytes
    if (this.head !== undefined) {
      this.head = Buffer.concat([this.head, bytes])
      const end = this.head.indexOf('\r\n\r\n')
      if (end < 0) return
      after = this.head.subarray(end + 4)
      this.head = undefined
    }
    for (const frame of this.reader.push(after)) {
      this.frames.push(frame)
      if (frame.opcode === opcodes.ping) this.pings++
      else if (frame.opcode === opcodes.close) this.closeCode = frame.payload.readUInt16BE(0)
    }
    for (const watcher of this.watchers.splice(0)) watcher()
  }

  /** Texts of the service so far. */
  get texts(): string[] {
    return this.frames.filter(({ opcode }) => opcode === opcodes.text).map(({ payload }) => payload.toString())
  }

  /** Waits until what the service sent satisfies the condition. */
  async until(condition: (link: Link) => boolean): Promise<void> {
    while (!condition(this)) await new Promise<void>((resolve) => this.watchers.push(resolve))
  }

  /** Nothing passes any more, no FIN either; both ends believe that the connection is there. */
  stall(): void {
    this.stalled = true
  }

  /** What was held back arrives after all. */
  flow(): void {
    this.stalled = false
    for (const { to, bytes } of this.held.splice(0)) to.write(bytes)
  }

  delay(ms: number): void {
    this.delayMs = ms
  }

  /** A reset to both ends. */
  cut(): void {
    for (const socket of Object.values(this.ends)) socket.resetAndDestroy()
  }

  /** A FIN to the service, as if the client had closed its half. */
  halfClose(): void {
    this.ends.service.end()
  }

  destroy(): void {
    this.stalled = true
    for (const socket of Object.values(this.ends)) socket.destroy()
  }
}

/** A TCP proxy before the service: clients connect to its `url`. */
export class TcpProxy {
  url = ''
  readonly links: Link[] = []
  private readonly server: Server

  constructor(serviceUrl: string) {
    const { hostname, port } = new URL(serviceUrl)
    this.server = createServer({ allowHalfOpen: true }, (client) => {
      this.links.push(new Link(client, connect({ port: Number(port), host: hostname, allowHalfOpen: true })))
    })
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => {
      this.server.listen(0, '127.0.0.1', resolve)
    })
    const address = this.server.address()
    if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
    this.url = `http://127.0.0.1:${address.port}`
    return this
  }

  /** The connection that was made last. */
  get last(): Link {
    const link = this.links.at(-1)
    if (link === undefined) throw new Error('nobody has connected to the proxy')
    return link
  }

  stop(): void {
    for (const link of this.links) link.destroy()
    this.server.close()
  }
}
