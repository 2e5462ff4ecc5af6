import { connect, createServer, type Socket } from 'node:net'

/** The way from the browser to the service's WebSocket, which can break. */
export type Network = {
  url: string
  /** Every connection is gone, and none comes about, until `mend`. */
  cut(): void
  mend(): void
  stop(): Promise<void>
}

/** `target` is asked at each connection: the service's address is known after the network's. */
export async function startNetwork(target: () => string): Promise<Network> {
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer((client) => {
    if (isCut) {
      client.destroy()
      return
    }
    const { hostname, port } = new URL(target())
    const service = connect(Number(port), hostname)
    for (const [one, other] of [
      [client, service],
      [service, client],
    ] as const) {
      sockets.add(one)
      one.on('error', () => {})
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
      one.pipe(other)
    }
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const breakAll = () => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: `http://127.0.0.1:${address.port}`,
    cut() {
      isCut = true
      breakAll()
    },
    mend() {
      isCut = false
    },
    stop() {
      breakAll()
      return new Promise((closed) => server.close(() => closed()))
    },
  }
}
