import { connect, createServer, type Socket } from 'node:net'

/** One connection through the proxy. */
export interface ProxyLink {
  /** Whether its client has subscribed to something. */
  readonly subscribes: boolean
}

export interface RedisProxy {
  readonly url: string
  readonly links: readonly ProxyLink[]
  stop(): Promise<void>
}

/** What becomes of bytes that the server sent; undefined swallows them, and neither end hears of it. */
export type FromServer = (bytes: Buffer, link: ProxyLink) => Buffer | undefined

/** A TCP proxy before a Redis server on the loopback address. */
export async function startRedisProxy(port: number, fromServer: FromServer): Promise<RedisProxy> {
  const links: ProxyLink[] = []
  const sockets = new Set<Socket>()
  const proxy = createServer((client) => {
    const server = connect(port, '127.0.0.1')
    const link = { subscribes: false }
    links.push(link)
    client.on('data', (bytes) => {
      if (bytes.toString('latin1').toLowerCase().includes('\r\nsubscribe\r\n')) link.subscribes = true
      server.write(bytes)
    })
    server.on('data', (bytes) => {
      const passed = fromServer(bytes as Buffer, link)
      if (passed !== undefined) client.write(passed)
    })
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  const address = proxy.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
  return {
    url: `redis://127.0.0.1:${address.port}`,
    links,
    async stop() {
      const closed = new Promise((resolve) => proxy.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
