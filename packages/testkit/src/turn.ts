import { join } from 'node:path'
import { freeUdpPort } from './ports.ts'
import { makeTemporaryDirectory, type RunningProcess, startProcess } from './process.ts'
import { systemProgram } from './system.ts'

export interface TurnServer {
  readonly url: string
  /** The first of those that it takes. */
  readonly secret: string
  /** Resolves when the TURN server itself has said that, which it does some time after its answer. */
  said(pattern: RegExp): Promise<unknown>
  /** Its allocations are gone, and with them every path that it carried. */
  restart(secrets?: readonly string[]): Promise<void>
  stop(): Promise<void>
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
export async function startTurnServer(secret: string = crypto.randomUUID()): Promise<TurnServer> {
  const directory = await makeTemporaryDirectory()
  let secrets: readonly string[] = [secret]
  // coturn does not take "any".
  let port = await freeUdpPort()

  async function launch(isFirst = false): Promise<RunningProcess> {
    const started = startProcess([
      ...[systemProgram('coturn'), '-n', '-L', '127.0.0.1', '-p', String(port), '-m', '1'],
      ...['--verbose', '--log-file', 'stdout', '--no-cli', '--no-tls', '--no-dtls', '--allow-loopback-peers'],
      ...['--use-auth-secret', ...secrets.map((each) => `--static-auth-secret=${each}`)],
      ...['--realm=ringwire.test', '--userdb', join(directory.path, 'turndb')],
      ...['--pidfile', join(directory.path, 'pid')],
    ])
    await started.waitFor(/UDP listener opened on\s*: 127\.0\.0\.1/)
    // It listens over TCP, too, and answers nobody while somebody else has that port.
    if (isFirst && started.output.includes('Cannot bind')) {
      await started.stop('SIGKILL')
      port = await freeUdpPort()
      return launch(true)
    }
    await answers(port)
    return started
  }

  let running = await launch(true)
  return {
    url: `turn:127.0.0.1:${port}?transport=udp`,
    secret,
    said: (pattern) => running.waitFor(pattern),
    async restart(others = secrets) {
      secrets = others
      await running.stop('SIGKILL')
      running = await launch()
    },
    async stop() {
      await running.stop()
      await directory.remove()
    },
  }
}
