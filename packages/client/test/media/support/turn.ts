import { join } from 'node:path'
import { makeTemporaryDirectory, type RunningProcess, startProcess } from '../../../../demo/test/support/process.ts'
import { systemProgram } from '../../../../demo/test/support/system.ts'

export interface TurnServer {
  url: string
  secret: string
  /** Its allocations are gone, and with them every path that it carried. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** A port that is free now for UDP and TCP: coturn cannot be told "any". */
async function freePort(): Promise<number> {
  const socket = await Bun.udpSocket({ hostname: '127.0.0.1', port: 0 })
  const { port } = socket
  socket.close()
  return port
}

/** A STUN binding request (RFC 8489 section 5). */
function bindingRequest(): Uint8Array {
  const request = new Uint8Array(20)
  new DataView(request.buffer).setUint32(0, 0x0001_0000)
  new DataView(request.buffer).setUint32(4, 0x2112_a442)
  crypto.getRandomValues(request.subarray(8))
  return request
}

/** coturn says that it listens some time before it answers. */
async function answers(port: number): Promise<void> {
  const answered = Promise.withResolvers<void>()
  const socket = await Bun.udpSocket({ hostname: '127.0.0.1', socket: { data: () => answered.resolve() } })
  const ask = () => socket.send(bindingRequest(), port, '127.0.0.1')
  const timer = setInterval(ask, 20)
  ask()
  await answered.promise
  clearInterval(timer)
  socket.close()
}

/** The real coturn, checking the credentials that the service makes from the secret they share [ICE1]. */
export async function startTurnServer(): Promise<TurnServer> {
  const directory = await makeTemporaryDirectory()
  const secret = crypto.randomUUID()
  const port = String(await freePort())
  let running: RunningProcess | undefined

  async function launch(): Promise<void> {
    running = startProcess([
      ...[systemProgram('coturn'), '-n', '-L', '127.0.0.1', '-p', port, '-m', '1', '--verbose', '--log-file', 'stdout'],
      ...['--use-auth-secret', `--static-auth-secret=${secret}`, '--realm=ringwire.test', '--allow-loopback-peers'],
      ...['--no-cli', '--no-tls', '--no-dtls'],
      ...['--userdb', join(directory.path, 'turndb'), '--pidfile', join(directory.path, 'pid')],
    ])
    await running.waitFor(/UDP listener opened on\s*: 127\.0\.0\.1/)
    await answers(Number(port))
  }

  await launch()
  return {
    url: `turn:127.0.0.1:${port}?transport=udp`,
    secret,
    async restart() {
      await running?.stop('SIGKILL')
      await launch()
    },
    async stop() {
      await running?.stop()
      await directory.remove()
    },
  }
}
