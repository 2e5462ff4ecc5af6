import { createServer, connect as dial, type Socket } from 'node:net'

/** The network between a client and the service: it can be cut, fall silent, and refuse. */
export interface Network {
  /** The WebSocket URL through it. */
  readonly url: string
  /** Connections so far. */
  readonly count: number
  /** Both ends lose their sockets at once (RST). */
  cut(): void
  /** Nothing gets through any more, and nobody is told: what a phone does that left its network. */
  silence(): void
  /** New connections are refused until `mend`. */
  refuse(): void
  /** Takes the next connection, but lets it through only when the answer is called, even if it is closed by then. */
  delay(): () => void
  /** New connections get through again; what fell silent stays so. */
  mend(): void
  close(): Promise<void>
}

/** `target` is asked for each connection: the service may be another process by then. */
export async function startNetwork(target: () => string): Promise<Network> {
  const pairs = new Set<[Socket, Socket]>()
  let isRefusing = false
  let delayed: Promise<void> | undefined
  let count = 0

  const server = createServer({ allowHalfOpen: true }, async (near) => {
    count++
    near.on('error', () => {})
    if (isRefusing) {
      near.resetAndDestroy()
      return
    }
    const turn = delayed
    delayed = undefined
    if (turn !== undefined) {
      near.pause()
      await turn
      near.resume()
    }
    const { hostname, port } = new URL(target())
    const far = dial(Number(port), hostname)
    far.on('error', () => {})
    near.setNoDelay(true)
    far.setNoDelay(true)
    const pair: [Socket, Socket] = [near, far]
    pairs.add(pair)
    near.on('data', (bytes) => far.write(bytes))
    far.on('data', (bytes) => near.write(bytes))
    near.on('end', () => far.end())
    far.on('end', () => near.end())
    const end = (other: Socket) => () => {
      other.destroy()
      pairs.delete(pair)
    }
    near.on('close', end(far))
    far.on('close', end(near))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')

  function cut(): void {
    for (const [near, far] of pairs) {
      near.resetAndDestroy()
      far.resetAndDestroy()
    }
  }

  return {
    url: `ws://127.0.0.1:${address.port}/v1/ws`,
    get count() {
      return count
    },
    cut,
    silence() {
      for (const socket of [...pairs].flat()) {
        socket.removeAllListeners('data')
        socket.pause()
      }
    },
    refuse() {
      isRefusing = true
      cut()
    },
    delay() {
      const turn = Promise.withResolvers<void>()
      delayed = turn.promise
      return turn.resolve
    },
    mend() {
      isRefusing = false
    },
    async close() {
      isRefusing = true
      cut()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
