type Socket = Bun.udp.Socket<'buffer'>

/** A client that closed its port is no failure of the way. */
const error = () => {}

export interface LossyWay {
  readonly port: number
  /** From now on every nth datagram is lost, in both directions; 0: none. */
  loseEvery(n: number): void
  stop(): void
}

/** The way of datagrams to a server on this machine. */
export async function startLossyWay(serverPort: number): Promise<LossyWay> {
  let every = 0
  let carried = 0
  const ways = new Map<number, Promise<Socket>>()
  const isLost = () => every > 0 && ++carried % every === 0

  /** For each port of a client one of its own, so that the server tells them apart. */
  function wayOf(clientPort: number): Promise<Socket> {
    const known = ways.get(clientPort)
    if (known) return known
    const data = (_: unknown, bytes: Uint8Array) => {
      if (!isLost()) front.send(bytes, clientPort, '127.0.0.1')
    }
    const opened = Bun.udpSocket({ hostname: '127.0.0.1', socket: { data, error } })
    ways.set(clientPort, opened)
    return opened
  }

  const front = await Bun.udpSocket({
    hostname: '127.0.0.1',
    socket: {
      error,
      data(_, bytes, clientPort) {
        if (!isLost()) void wayOf(clientPort).then((way) => way.send(bytes, serverPort, '127.0.0.1'))
      },
    },
  })
  return {
    port: front.port,
    loseEvery(n) {
      every = n
    },
    stop() {
      front.close()
      for (const way of ways.values()) void way.then((socket) => socket.close())
    },
  }
}
