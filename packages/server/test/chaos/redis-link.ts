import { connect, createServer, type Server, type Socket } from 'node:net'

/** The way of one node to Redis: a TCP proxy that can be cut, with a reset or without a word. */
export class RedisLink {
  port = 0
  private readonly redisPort: number
  private readonly server: Server
  private readonly pairs = new Set<readonly [Socket, Socket]>()
  private state: 'open' | 'silent' | 'refusing' = 'open'

  constructor(redisPort: number) {
    this.redisPort = redisPort
    this.server = createServer((client) => this.accept(client))
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => {
      this.server.listen(0, '127.0.0.1', resolve)
    })
    const address = this.server.address()
    if (address === null || typeof address === 'string') throw new Error('the way to Redis has no port')
    this.port = address.port
    return this
  }

  private accept(client: Socket): void {
    if (this.state === 'refusing') {
      client.destroy()
      return
    }
    const upstream = connect(this.redisPort, '127.0.0.1')
    const pair = [client, upstream] as const
    this.pairs.add(pair)
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('data', (bytes) => {
        if (!to.destroyed) to.write(bytes)
      })
      from.on('error', () => {})
      from.on('close', () => {
        to.destroy()
        this.pairs.delete(pair)
      })
    }
    if (this.state === 'silent') for (const socket of pair) socket.pause()
  }

  /** Nothing passes any more; `silent`: nobody is told, as where a cable is pulled. */
  cut(how: 'silent' | 'refusing'): void {
    this.state = how
    for (const pair of this.pairs) {
      if (how === 'silent') for (const socket of pair) socket.pause()
      else pair[0].destroy()
    }
  }

  /** It passes again, and so does what waited. */
  mend(): void {
    this.state = 'open'
    for (const pair of this.pairs) for (const socket of pair) socket.resume()
  }

  stop(): void {
    for (const [client, upstream] of this.pairs) {
      client.destroy()
      upstream.destroy()
    }
    this.server.close()
  }
}
