import { type Link, TcpProxy } from '@ringwire/testkit/tcp-proxy'

/** What becomes of bytes that the server sent; undefined swallows them, and neither end hears of it. */
export type FromServer = (bytes: Buffer, link: Link) => Buffer | undefined

/** A proxy before a Redis server that tells apart what connections are for. */
export class RedisProxy extends TcpProxy {
  private readonly subscribers: WeakSet<Link>

  constructor(port: number, fromServer: FromServer) {
    const subscribers = new WeakSet<Link>()
    super(`redis://127.0.0.1:${port}`, (bytes, to, link) => {
      if (to === 'client') return fromServer(bytes, link)
      if (bytes.toString('latin1').toLowerCase().includes('\r\nsubscribe\r\n')) subscribers.add(link)
      return bytes
    })
    this.subscribers = subscribers
  }

  override get url(): string {
    return `redis://${this.host}`
  }

  /** Whether the client of this connection has subscribed to something. */
  subscribes(link: Link): boolean {
    return this.subscribers.has(link)
  }
}
