import { connect, createServer, type Server, type Socket } from 'node:net'

/** The two ends of a connection through a proxy. */
export type End = 'client' | 'server'

/** What becomes of bytes on their way to an end; undefined swallows them, and neither end hears of it. */
export type Pass = (bytes: Buffer, to: End, link: Link) => Buffer | undefined

/** One direction of a connection: what goes in comes out in the same order, later or never. */
class Flow {
  stalled = false
  silent = false
  /** How long every piece is under way, in ms. */
  delayMs = 0
  private readonly to: Socket
  private queue: { readonly piece: Buffer | 'end' | 'closed' | 'broken'; readonly dueAt: number }[] = []
  private lastDueAt = 0
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(from: Socket, to: Socket, pass: (bytes: Buffer) => Buffer | undefined) {
    this.to = to
    let isBroken = false
    from.on('data', (bytes) => this.take(pass(bytes as Buffer)))
    from.on('end', () => this.take('end'))
    from.on('error', () => {
      isBroken = true
    })
    from.on('close', () => this.take(isBroken ? 'broken' : 'closed'))
  }

  private take(piece: Flow['queue'][number]['piece'] | undefined): void {
    if (piece === undefined || this.silent) return
    this.lastDueAt = Math.max(this.lastDueAt, performance.now() + this.delayMs)
    this.queue.push({ piece, dueAt: this.lastDueAt })
    if (this.queue.length === 1) this.pump()
  }

  /** Passes on what is due. */
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
      if (this.to.destroyed) continue
      if (head.piece === 'end') this.to.end()
      else if (head.piece === 'closed') this.to.destroySoon()
      else if (head.piece === 'broken') this.to.resetAndDestroy()
      else this.to.write(head.piece)
    }
  }

  /** Passes nothing on any more, ever. */
  silence(): void {
    this.silent = true
    clearTimeout(this.timer)
    this.queue = []
  }
}

/** One connection through the proxy, and what networks do to connections. Without `to` it is done both ways. */
export class Link {
  /** Resolves when both ends are gone. */
  readonly gone: Promise<void>
  /** Resolves when the client, or the server, has let go of the connection. */
  readonly clientGone: Promise<void>
  readonly serverGone: Promise<void>
  /** The client's port: it names the connection. */
  readonly clientPort: number
  private readonly sockets: Readonly<Record<End, Socket>>
  private readonly flows: Readonly<Record<End, Flow>>

  constructor(client: Socket, server: Socket, pass: Pass) {
    this.sockets = { client, server }
    this.clientPort = client.remotePort ?? 0
    for (const socket of [client, server]) socket.setNoDelay(true)
    this.flows = {
      client: new Flow(server, client, (bytes) => pass(bytes, 'client', this)),
      server: new Flow(client, server, (bytes) => pass(bytes, 'server', this)),
    }
    const closed = (socket: Socket) => new Promise<void>((resolve) => socket.on('close', () => resolve()))
    this.gone = Promise.all([closed(client), closed(server)]).then(() => {})
    const ended = (socket: Socket) => new Promise<void>((resolve) => socket.on('end', () => resolve()))
    this.clientGone = Promise.race([closed(client), ended(client)])
    this.serverGone = Promise.race([closed(server), ended(server)])
  }

  private each(to: End | undefined, work: (flow: Flow) => void): void {
    for (const end of to === undefined ? (['client', 'server'] as const) : [to]) work(this.flows[end])
  }

  /** What an end sends from now on, as it arrives here. */
  observe(from: End, heard: (bytes: Buffer) => void): void {
    this.sockets[from].on('data', (bytes) => heard(bytes as Buffer))
  }

  /** Holds back everything, a FIN too: both ends believe that the connection is there. */
  stall(to?: End): void {
    this.each(to, (flow) => {
      flow.stalled = true
    })
  }

  /** What was held back arrives after all. */
  flow(to?: End): void {
    this.each(to, (flow) => {
      flow.stalled = false
      flow.pump()
    })
  }

  /** Swallows everything from now on, and everything that was held back, for good; neither end is notified. */
  silence(to?: End): void {
    this.each(to, (flow) => flow.silence())
  }

  /** From now on everything is under way for `ms`, each way. */
  delay(ms: number, to?: End): void {
    this.each(to, (flow) => {
      flow.delayMs = ms
    })
  }

  /** A reset to both ends; what was on its way is gone. */
  reset(): void {
    this.silence()
    for (const socket of Object.values(this.sockets)) socket.resetAndDestroy()
  }

  /** A FIN to both ends; what was on its way is gone. */
  close(): void {
    this.silence()
    for (const socket of Object.values(this.sockets)) socket.destroy()
  }

  /** A FIN to one end only. */
  halfClose(end: End): void {
    this.sockets[end].end()
  }
}

/** A TCP proxy on the loopback address that can do what networks do. */
export class TcpProxy {
  /** `127.0.0.1:PORT`. */
  host = ''
  port = 0
  /** Every connection that was made through it, the last one last. */
  readonly links: Link[] = []
  /** Called for each of them before anything passes. */
  onLink: (link: Link) => void = () => {}
  /** Connections that were attempted, those that were refused too. */
  attempts = 0
  private readonly living = new Set<Link>()
  private readonly server: Server
  private target: () => string
  private state: 'open' | 'stalled' | 'refusing' = 'open'
  private held: Promise<void> | undefined

  /** The target is a URL, asked for at each connection where it may be another one by then. */
  constructor(target: string | (() => string), pass: Pass = (bytes) => bytes) {
    this.target = typeof target === 'string' ? () => target : target
    this.server = createServer({ allowHalfOpen: true }, (client) => this.accept(client, pass))
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => {
      this.server.listen(0, '127.0.0.1', resolve)
    })
    const address = this.server.address()
    if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
    this.port = address.port
    this.host = `127.0.0.1:${address.port}`
    return this
  }

  get url(): string {
    return `http://${this.host}`
  }

  /** The address for clients of the service. */
  get wsUrl(): string {
    return `ws://${this.host}/v1/ws`
  }

  /** The connections that are there. */
  get open(): readonly Link[] {
    return [...this.living]
  }

  /** The connection that was made last. */
  get last(): Link {
    const link = this.links.at(-1)
    if (link === undefined) throw new Error('nobody has connected to the proxy')
    return link
  }

  private accept(client: Socket, pass: Pass): void {
    this.attempts++
    client.on('error', () => {})
    if (this.state === 'refusing') {
      client.resetAndDestroy()
      return
    }
    const { hostname, port } = new URL(this.target())
    const server = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    const link = new Link(client, server, pass)
    this.links.push(link)
    this.living.add(link)
    link.gone.then(() => this.living.delete(link))
    if (this.state === 'stalled' || this.held !== undefined) link.stall()
    this.held?.then(() => link.flow())
    this.held = undefined
    this.onLink(link)
  }

  /** Takes the next connection, but lets it through only when the answer is called, even if it is closed by then. */
  holdNext(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.held = promise
    return resolve
  }

  /** Every connection is gone; without `how`, by a reset. */
  cut(how: 'reset' | 'close' = 'reset'): void {
    for (const link of this.living) link[how]()
  }

  /** Every connection is gone, and none is made until `mend`. */
  refuse(how: 'reset' | 'close' = 'reset'): void {
    this.state = 'refusing'
    this.cut(how)
  }

  /** Nothing passes, on new connections neither, and neither end is notified, until `mend`. */
  stall(): void {
    this.state = 'stalled'
    for (const link of this.living) link.stall()
  }

  /** It passes again, and so does what was held back. */
  mend(): void {
    this.state = 'open'
    for (const link of this.living) link.flow()
  }

  /** Open connections are silent from now on and stay so, and neither end is notified; new connections get through. */
  silence(): void {
    for (const link of this.living) link.silence()
  }

  /** New connections lead there; those that are open end. */
  leadTo(target: string): void {
    this.target = () => target
    this.cut('close')
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve))
    this.refuse()
    await closed
  }
}
