import { createServer } from 'node:net'

/** A TCP port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  await new Promise((resolve) => {
    server.close(resolve)
  })
  if (address === null || typeof address === 'string') throw new Error('no port is free')
  return address.port
}

/** The same for UDP. */
export async function freeUdpPort(): Promise<number> {
  const socket = await Bun.udpSocket({ hostname: '127.0.0.1', port: 0 })
  const { port } = socket
  socket.close()
  return port
}
