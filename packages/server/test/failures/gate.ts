import { connect, createServer, type Socket } from 'node:net'

/** A TCP proxy on the loopback address that leads to one server now and to another one later, or stalls. */
export interface Gate {
  readonly port: number
  /** New connections lead there; those that are open end. */
  leadTo(port: number): void
  /** Nothing passes any more, in either direction, and neither end is told. New connections get no further either. */
  stall(): void
  /** What was held back passes. */
  flow(): void
  stop(): Promise<void>
}

export async function openGate(port: number): Promise<Gate> {
  let target = port
  let stalled = false
  const open = new Set<Socket>()

  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(from)
      from.setNoDelay(true)
      from.on('error', () => {})
      from.pipe(to)
      if (stalled) from.pause()
      from.on('close', () => {
        open.delete(from)
        to.destroy()
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the gate has no port')
  const cut = () => {
    for (const socket of open) socket.destroy()
  }
  return {
    port: address.port,
    leadTo(next) {
      target = next
      cut()
    },
    stall() {
      stalled = true
      for (const socket of open) socket.pause()
    },
    flow() {
      stalled = false
      for (const socket of open) socket.resume()
    },
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve))
      cut()
      await closed
    },
  }
}
