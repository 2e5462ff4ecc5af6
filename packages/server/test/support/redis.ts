import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface RedisServer {
  readonly port: number
  readonly url: string
  readonly pid: number
  stop(): Promise<void>
}

/** A throw-away redis-server on a free port of the loopback address; nothing of it stays. */
export async function startRedis(args: readonly string[] = [], port = 0): Promise<RedisServer> {
  const directory = await mkdtemp(join(tmpdir(), 'ringwire-redis-'))
  for (let tries = 0; ; tries++) {
    const at = port === 0 ? await freePort() : port
    const child = Bun.spawn(
      [
        ...['redis-server', '--port', String(at), '--bind', '127.0.0.1', '--dir', directory, '--save', ''],
        ...['--appendonly', 'no', '--maxmemory-policy', 'noeviction', ...args],
      ],
      { stdout: 'ignore', stderr: 'inherit' },
    )
    if (await answers(at, child)) {
      const stop = async () => {
        child.kill('SIGKILL')
        await child.exited
        await rm(directory, { recursive: true, force: true })
      }
      return { port: at, url: `redis://127.0.0.1:${at}`, pid: child.pid, stop }
    }
    // Somebody else was quicker to take the port.
    if (tries > 5) throw new Error('redis-server does not start')
  }
}

async function answers(port: number, child: { exitCode: number | null }): Promise<boolean> {
  for (let tries = 0; tries < 400 && child.exitCode === null; tries++) {
    if (await ping(port)) return child.exitCode === null
    await Bun.sleep(10)
  }
  return false
}

function ping(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'))
  socket.on('data', (data) => {
    socket.destroy()
    resolve(data.toString().startsWith('+PONG'))
  })
  socket.on('error', () => resolve(false))
  return promise
}

/** A port that was free a moment ago. */
export function freePort(): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const server = createServer().once('error', reject)
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
  })
  return promise
}
