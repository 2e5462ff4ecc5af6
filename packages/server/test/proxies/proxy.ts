import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { soon } from '@ringwire/testkit/patience'
import { findSystemProgram } from '../../../../scripts/system.mjs'
import { tls } from './phone.ts'

const deploy = new URL('../../../../deploy/', import.meta.url).pathname

export type ProxyName = 'nginx' | 'haproxy'
export const proxyFiles = { nginx: 'nginx.conf', haproxy: 'haproxy.cfg' } as const

/** A proxy that runs with our configuration for it, on another port, with a certificate of its own. */
export interface ReverseProxy {
  /** Its log of requests so far. */
  log(): string
  /** Tells it of a third node while it runs, as its file says. */
  addNode(url: string): Promise<void>
  readonly pid: number
  stop(): Promise<void>
}

export interface ProxyOptions {
  readonly port: number
  /** URLs of the two nodes. */
  readonly nodes: readonly [string, string]
  /** How long a connection may be silent, in ms; 75 s where it is not given. */
  readonly silenceMs?: number
}

type Changes = readonly (readonly [string, string])[]

/** The file as it is shipped, but for what an operator changes in it too. */
function configured(file: string, changes: Changes): string {
  let text = readFileSync(join(deploy, file), 'utf8')
  for (const [from, to] of changes) {
    if (!text.includes(from)) throw new Error(`${file} does not say ${from}`)
    text = text.replaceAll(from, to)
  }
  return text
}

function makeCertificate(directory: string): void {
  const made = Bun.spawnSync(
    ['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=127.0.0.1'].concat([
      '-keyout',
      join(directory, 'privkey.pem'),
      '-out',
      join(directory, 'fullchain.pem'),
    ]),
  )
  if (!made.success) throw new Error(`openssl: ${made.stderr.toString()}`)
  const pem = ['fullchain.pem', 'privkey.pem'].map((name) => readFileSync(join(directory, name), 'utf8'))
  writeFileSync(join(directory, 'calls.pem'), pem.join(''))
}

function programOf(name: ProxyName): string {
  const program = findSystemProgram(name)
  if (program === undefined) throw new Error(`${name} is missing: node scripts/system.mjs ${name}`)
  return program
}

/** Starts the proxy before nodes that run, and resolves once it answers for them. */
export async function startProxy(name: ProxyName, options: ProxyOptions): Promise<ReverseProxy> {
  const directory = mkdtempSync(join(tmpdir(), `ringwire-${name}-`))
  makeCertificate(directory)
  const { command, env, addNode } = name === 'nginx' ? nginx(directory, options) : haproxy(directory, options)
  const child = Bun.spawn(command, {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  let said = ''
  const reading = (async () => {
    for await (const bytes of child.stdout) said += new TextDecoder().decode(bytes)
  })()
  const log = () => (name === 'nginx' ? readFileSync(join(directory, 'access.log'), 'utf8') : said)
  const stop = async () => {
    child.kill('SIGTERM')
    await Promise.all([child.exited, reading])
    rmSync(directory, { recursive: true, force: true })
  }
  for (;;) {
    const answer = await fetch(`https://127.0.0.1:${options.port}/healthz`, { tls }).catch(() => undefined)
    if (answer?.status === 200) return { stop, log, pid: child.pid, addNode: (url) => addNode(url, child.pid) }
    if (child.exitCode !== null) {
      const said = await new Response(child.stderr).text()
      await stop()
      throw new Error(`${name} did not start: ${said}`)
    }
    await Bun.sleep(20)
  }
}

interface Started {
  readonly command: string[]
  readonly env: Record<string, string>
  addNode(url: string, pid: number): Promise<void>
}

/** How many files each process of nginx may open here. */
export const nginxFiles = 8_000
/** As an account has them at first, whatever the tests may open. */
const fewFiles = ['sh', '-c', 'ulimit -Sn 1024; exec "$@"', 'sh']

function nginx(directory: string, { port, nodes, silenceMs = 75_000 }: ProxyOptions): Started {
  const file = join(directory, 'nginx.conf')
  mkdirSync(join(directory, 'tmp'))
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const temporary = kinds.map((kind) => `${kind}_temp_path ${directory}/tmp/${kind};`).join('\n')
  const text = configured('nginx.conf', [
    ['listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`],
    ['server 127.0.0.1:8080 ', `server ${new URL(nodes[0]).host} `],
    ['server 127.0.0.1:8081 ', `server ${new URL(nodes[1]).host} `],
    ['/etc/ssl/ringwire/fullchain.pem', `${directory}/fullchain.pem`],
    ['/etc/ssl/ringwire/privkey.pem', `${directory}/privkey.pem`],
    // A machine that runs tests may not allow that many.
    ['worker_rlimit_nofile 40000;', `worker_rlimit_nofile ${nginxFiles};`],
    // Ten seconds are long for a test.
    ['client_header_timeout 10s;', 'client_header_timeout 1s;'],
    ['_timeout 75s;', `_timeout ${silenceMs}ms;`],
    ['access_log /var/log/nginx/ringwire.log calls;', `access_log ${directory}/access.log calls;\n${temporary}`],
  ])
  writeFileSync(file, `pid ${directory}/nginx.pid;\ndaemon off;\nerror_log stderr;\n${text}`)
  return {
    command: [...fewFiles, programOf('nginx'), '-e', 'stderr', '-p', directory, '-c', file],
    env: {},
    async addNode(url, pid) {
      const second = `server ${new URL(nodes[1]).host} max_fails=0;`
      const text = readFileSync(file, 'utf8')
      writeFileSync(file, text.replace(second, `${second}\nserver ${new URL(url).host} max_fails=0;`))
      // nginx -s reload does this.
      process.kill(pid, 'SIGHUP')
    },
  }
}

/** As socat does: one line on the socket, and the answer to its end. */
async function tellHaproxy(path: string, line: string): Promise<void> {
  const ended = Promise.withResolvers<void>()
  await Bun.connect({
    unix: path,
    socket: {
      open: (socket) => void socket.write(`${line}\n`),
      data() {},
      close: () => ended.resolve(),
      error: (_, error) => ended.reject(error),
    },
  })
  await ended.promise
}

function haproxy(directory: string, { port, nodes, silenceMs = 75_000 }: ProxyOptions): Started {
  const file = join(directory, 'haproxy.cfg')
  const silent = ['client', 'server', 'tunnel'].map(
    (end) => [`timeout ${end} 75s`, `timeout ${end} ${silenceMs}ms`] as const,
  )
  writeFileSync(file, configured('haproxy.cfg', [['timeout http-request 10s', 'timeout http-request 1s'], ...silent]))
  const env = {
    LISTEN: `127.0.0.1:${port}`,
    CERTIFICATE: join(directory, 'calls.pem'),
    NODE_1: new URL(nodes[0]).host,
    NODE_2: new URL(nodes[1]).host,
    ADMIN: join(directory, 'admin.sock'),
  }
  // Fewer connections: a machine that runs tests may not allow that many files.
  return {
    command: [programOf('haproxy'), '-db', '-n', '1000', '-f', file],
    env,
    async addNode(url) {
      const { hostname, port } = new URL(url)
      for (const name of ['node3', 'last3']) {
        const server = `ringwire/${name}`
        await tellHaproxy(env.ADMIN, `set server ${server} addr ${hostname} port ${port}; enable server ${server}`)
      }
    },
  }
}

/** The messages of HAProxy about its file as it is shipped, and its exit code, if a process may only open `files` files. */
export function startHaproxyWithin(files: number): { readonly code: number | null; readonly said: string } {
  const directory = mkdtempSync(join(tmpdir(), 'ringwire-haproxy-'))
  try {
    makeCertificate(directory)
    // A process that may raise its limit gets no message.
    const unable = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-sys_resource', '--'] : []
    const within = ['sh', '-c', `ulimit -n ${files}; exec "$@"`, 'sh']
    const { exitCode, stderr } = Bun.spawnSync(
      [...unable, ...within, programOf('haproxy'), '-db', '-f', join(deploy, 'haproxy.cfg')],
      {
        env: {
          PATH: process.env.PATH ?? '',
          LISTEN: `unix@${join(directory, 'listen.sock')}`,
          CERTIFICATE: join(directory, 'calls.pem'),
          ADMIN: join(directory, 'admin.sock'),
        },
        stdout: 'ignore',
        // A process that still starts is ended.
        timeout: soon(10_000),
      },
    )
    return { code: exitCode, said: stderr.toString() }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
