import { connect, createServer, type Server, type Socket } from 'node:net'

/** One direction of a connection: what goes in comes out in the same order, later or never. */
class Flow {
  stalled = false
  /** How long every piece is under way, in ms. */
  delayMs = 0
  private readonly to: Socket
  private readonly onClosed: () => void
  private queue: { readonly piece: Buffer | 'end' | 'closed'; readonly dueAt: number }[] = []
  private lastDueAt = 0
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(from: Socket, to: Socket, onClosed: () => void) {
    this.to = to
    this.onClosed = onClosed
    from.on('data', (bytes) => this.take(bytes as Buffer))
    from.on('end', () => this.take('end'))
    from.on('close', () => this.take('closed'))
  }

  private take(piece: Buffer | 'end' | 'closed'): void {
    this.lastDueAt = Math.max(this.lastDueAt, performance.now() + this.delayMs)
    this.queue.push({ piece, dueAt: this.lastDueAt })
    if (this.queue.length === 1) this.pump()
  }

  pump(): void {
    clearTimeout(this.timer)
    while (!this.stalled) {
      const head = this.queue[0]
      if (head === undefined) return
      const wait = head.dueAt - performance.now()
      if (wait > 0.5) {
        this.timer = setTimeout(() => this.pump(), wait)
        return
      }
      this.queue.shift()
      if (head.piece === 'closed') this.onClosed()
      else if (this.to.destroyed) continue
      else if (head.piece === 'end') this.to.end()
      else this.to.write(head.piece)
    }
  }

  stop(): void {
    this.stalled = true
    clearTimeout(this.timer)
    this.queue = []
  }
}

/** One connection through the proxy, and what networks do to connections. */
export class CuttingLink {
  /** Resolves when both ends are gone. */
  readonly gone: Promise<void>
  /** The client's port: it names the connection. */
  readonly clientPort: number
  private readonly client: Socket
  private readonly service: Socket
  private readonly flows: readonly Flow[]

  constructor(client: Socket, service: Socket) {
    this.client = client
    this.service = service
    this.clientPort = client.remotePort ?? 0
    // What is on its way arrives before the news that the other end is gone.
    const onClosed = () => this.reset()
    this.flows = [new Flow(client, service, onClosed), new Flow(service, client, onClosed)]
    for (const socket of [client, service]) {
      socket.setNoDelay(true)
      socket.on('error', () => {})
    }
    const isGone = (socket: Socket) => new Promise<void>((resolve) => socket.on('close', () => resolve()))
    this.gone = Promise.all([isGone(client), isGone(service)]).then(() => {})
  }

  /** Nothing passes any more, no FIN either: both ends believe that the connection is there. */
  stall(): void {
    for (const flow of this.flows) flow.stalled = true
  }

  /** What was held back arrives after all. */
  flow(): void {
    for (const flow of this.flows) {
      flow.stalled = false
      flow.pump()
    }
  }

  delay(ms: number): void {
    for (const flow of this.flows) flow.delayMs = ms
  }

  /** A reset to both ends; what was on its way is gone. */
  reset(): void {
    for (const flow of this.flows) flow.stop()
    for (const socket of [this.client, this.service]) socket.resetAndDestroy()
  }

  /** A FIN to one end only. */
  halfClose(end: 'client' | 'service'): void {
    if (end === 'client') this.client.end()
    else this.service.end()
  }
}

/** A TCP proxy before the service that cuts. */
export class CuttingProxy {
  url = ''
  /** Called for every connection that is made through it. */
  onLink: (link: CuttingLink) => void = () => {}
  private readonly links = new Set<CuttingLink>()
  private readonly server: Server

  constructor(serviceUrl: string) {
    const { hostname, port } = new URL(serviceUrl)
    this.server = createServer({ allowHalfOpen: true }, (client) => {
      const link = new CuttingLink(client, connect({ port: Number(port), host: hostname, allowHalfOpen: true }))
      this.links.add(link)
      link.gone.then(() => this.links.delete(link))
      this.onLink(link)
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

  /** The connections that are open. */
  get open(): readonly CuttingLink[] {
    return [...this.links]
  }

  stop(): void {
    for (const link of this.links) link.reset()
    this.server.close()
  }
}
