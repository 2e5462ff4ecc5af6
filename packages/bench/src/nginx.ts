// nginx with the project's configuration for it, before one node: one worker, on the core of that node.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '@ringwire/testkit/ports'
import { findSystemProgram } from '../../../scripts/system.mjs'
import type { Certificate } from './certificate.ts'
import { processesOf } from './parts.ts'
import { pinned } from './process.ts'

export interface Nginx {
  readonly port: number
  /** Its first process, and the worker. */
  readonly pids: number[]
  stop(): Promise<void>
}

const shipped = join(import.meta.dir, '..', '..', '..', 'deploy', 'nginx.conf')
const STARTS_WITHIN_MS = 10_000

export const hasNginx = () => findSystemProgram('nginx') !== undefined

export async function startNginx(
  node: number,
  { cert, key }: Certificate,
  core: number | null,
  directory: string,
): Promise<Nginx> {
  const port = await freePort()
  const home = join(directory, `nginx-${port}`)
  mkdirSync(join(home, 'tmp'), { recursive: true })
  const file = join(home, 'nginx.conf')
  writeFileSync(file, configuration(port, node, { cert, key }, home))
  const command = [findSystemProgram('nginx')!, '-e', 'stderr', '-p', home, '-c', file]
  const child = Bun.spawn(pinned(command, core), { stdin: 'ignore', stdout: 'ignore', stderr: 'inherit' })
  // Told so, it ends its worker as well.
  const endNow = () => child.kill('SIGTERM')
  process.on('exit', endNow)
  const stop = async () => {
    endNow()
    await child.exited
    process.off('exit', endNow)
  }
  const deadline = performance.now() + STARTS_WITHIN_MS
  for (;;) {
    const options = { tls: { rejectUnauthorized: false } }
    const answer = await fetch(`https://127.0.0.1:${port}/healthz`, options).catch(() => undefined)
    if (answer?.status === 200) return { port, pids: processesOf(child.pid), stop }
    if (child.exitCode !== null || performance.now() > deadline) {
      await stop()
      throw new Error(`nginx did not answer for the service: ${answer?.status ?? 'no answer'}`)
    }
    await Bun.sleep(20)
  }
}

/** The file as it is shipped, but for what an operator changes in it too. */
export function configuration(port: number, node: number, { cert, key }: Certificate, home: string): string {
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const temporary = kinds.map((kind) => `${kind}_temp_path ${home}/tmp/${kind};`).join('\n')
  const changes = [
    ['worker_processes auto;', 'worker_processes 1;'],
    ['listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`],
    ['server 127.0.0.1:8080 ', `server 127.0.0.1:${node} `],
    ['server 127.0.0.1:8081 max_fails=0;', ''],
    ['/etc/ssl/ringwire/fullchain.pem', cert],
    ['/etc/ssl/ringwire/privkey.pem', key],
    // The usual limit of an account that may not raise its own.
    ['worker_rlimit_nofile 40000;', ''],
    ['access_log /var/log/nginx/ringwire.log calls;', `access_log ${home}/access.log calls;\n${temporary}`],
  ] as const
  let text = readFileSync(shipped, 'utf8')
  for (const [from, to] of changes) {
    if (!text.includes(from)) throw new Error(`nginx.conf does not say ${from}`)
    text = text.replace(from, to)
  }
  return `pid ${home}/nginx.pid;\ndaemon off;\nerror_log stderr;\n${text}`
}
