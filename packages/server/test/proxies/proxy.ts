import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findSystemProgram } from '../../../../scripts/system.mjs'

const deploy = new URL('../../../../deploy/', import.meta.url).pathname

/** A proxy that runs with our configuration for it, on another port, with a certificate of its own. */
export interface ReverseProxy {
  readonly url: string
  stop(): Promise<void>
}

async function freePort(): Promise<number> {
  const server = createServer()
  const { promise, resolve } = Promise.withResolvers<void>()
  server.listen(0, '127.0.0.1', resolve)
  await promise
  const address = server.address()
  await new Promise((closed) => server.close(closed))
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** The file as it is shipped, but for what an operator changes in it too. */
function configured(file: string, changes: readonly (readonly [string, string])[]): string {
  let text = readFileSync(join(deploy, file), 'utf8')
  for (const [from, to] of changes) {
    if (!text.includes(from)) throw new Error(`${file} does not say ${from}`)
    text = text.replace(from, to)
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

function programOf(name: 'nginx' | 'haproxy'): string {
  const program = findSystemProgram(name)
  if (program === undefined) throw new Error(`${name} is missing: node scripts/system.mjs ${name}`)
  return program
}

/** Starts the proxy before a service, and resolves once it answers. */
export async function startProxy(name: 'nginx' | 'haproxy', serviceUrl: string): Promise<ReverseProxy> {
  const directory = mkdtempSync(join(tmpdir(), `ringwire-${name}-`))
  makeCertificate(directory)
  const port = await freePort()
  const { host } = new URL(serviceUrl)
  const command = name === 'nginx' ? nginx(directory, port, host) : haproxy(directory, port, host)
  const child = Bun.spawn(command, { stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  const url = `https://127.0.0.1:${port}`
  const stop = async () => {
    child.kill('SIGTERM')
    await child.exited
    rmSync(directory, { recursive: true, force: true })
  }
  for (;;) {
    const answer = await fetch(`${url}/healthz`, { tls: { rejectUnauthorized: false } }).catch(() => undefined)
    if (answer?.status === 200) return { url, stop }
    if (child.exitCode !== null) {
      const said = await new Response(child.stderr).text()
      await stop()
      throw new Error(`${name} did not start: ${said}`)
    }
    await Bun.sleep(20)
  }
}

function nginx(directory: string, port: number, host: string): string[] {
  const file = join(directory, 'nginx.conf')
  mkdirSync(join(directory, 'tmp'))
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const temporary = kinds.map((kind) => `${kind}_temp_path ${directory}/tmp/${kind};`).join('\n')
  const text = configured('nginx.conf', [
    ['listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`],
    ['server 127.0.0.1:8080;', `server ${host};`],
    ['/etc/ssl/ringwire/fullchain.pem', `${directory}/fullchain.pem`],
    ['/etc/ssl/ringwire/privkey.pem', `${directory}/privkey.pem`],
    // Ten seconds are long for a test.
    ['client_header_timeout 10s;', 'client_header_timeout 1s;'],
    ['access_log /var/log/nginx/ringwire.log calls;', `access_log ${directory}/access.log calls;\n${temporary}`],
  ])
  writeFileSync(file, `pid ${directory}/nginx.pid;\ndaemon off;\nerror_log stderr;\n${text}`)
  return [programOf('nginx'), '-e', 'stderr', '-p', directory, '-c', file]
}

function haproxy(directory: string, port: number, host: string): string[] {
  const file = join(directory, 'haproxy.cfg')
  const text = configured('haproxy.cfg', [
    ['bind :443 ssl crt /etc/ssl/ringwire/calls.pem', `bind 127.0.0.1:${port} ssl crt ${directory}/calls.pem`],
    ['timeout http-request 10s', 'timeout http-request 1s'],
    ['maxconn 16384', 'maxconn 1000'],
    ['server node1 127.0.0.1:8080', `server node1 ${host}`],
  ])
  writeFileSync(file, text)
  return [programOf('haproxy'), '-db', '-f', file]
}
