import { join } from 'node:path'
import { makeTemporaryDirectory, startProcess } from './process.ts'
import { systemProgram } from './system.ts'

export type TurnServer = {
  url: string
  secret: string
  /** What the TURN server itself says that it did. */
  log(): string
  stop(): Promise<void>
}

/** A port that is free now for UDP and TCP: coturn cannot be told "any". */
async function freePort(): Promise<number> {
  const socket = await Bun.udpSocket({ hostname: '127.0.0.1', port: 0 })
  const { port } = socket
  socket.close()
  return port
}

/** The real coturn, checking the credentials that the service makes from the secret they share [ICE1]. */
export async function startTurnServer(): Promise<TurnServer> {
  const directory = await makeTemporaryDirectory()
  const secret = crypto.randomUUID()
  const port = await freePort()
  const running = startProcess([
    ...[
      systemProgram('coturn'),
      '-n',
      '-L',
      '127.0.0.1',
      '-p',
      String(port),
      '-m',
      '1',
      '--verbose',
      '--log-file',
      'stdout',
    ],
    ...['--use-auth-secret', `--static-auth-secret=${secret}`, '--realm=ringwire.test', '--allow-loopback-peers'],
    ...['--no-cli', '--no-tls', '--no-dtls'],
    ...['--userdb', join(directory.path, 'turndb'), '--pidfile', join(directory.path, 'pid')],
  ])
  await running.waitFor(/UDP listener opened on\s*: 127\.0\.0\.1/)
  return {
    url: `turn:127.0.0.1:${port}?transport=udp`,
    secret,
    log: running.output,
    async stop() {
      await running.stop()
      await directory.remove()
    },
  }
}
