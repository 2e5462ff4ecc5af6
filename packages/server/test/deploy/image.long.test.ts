import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TokenResponse } from '@ringwire/protocol/rest'
import { Client } from '@ringwire/testkit/client'
import { freePort } from '@ringwire/testkit/ports'
import type { Subprocess } from 'bun'
import { findSystemProgram } from '../../../../scripts/system.mjs'
import { Postgres } from '../support/postgres.ts'
import {
  deploy,
  environmentOf,
  makeSecrets,
  readCompose,
  readEnvironment,
  readSecrets,
  type Variables,
} from './compose.ts'
import { type Container, type ContainerOptions, makeVolume, startContainer } from './container.ts'
import { buildImage, contextOf, type Image } from './image.ts'

/*
 * deploy/Dockerfile run by hand, what it makes as a container of namespaces, and the commands of compose.yaml with ports of
 * this machine for addresses. Needs root on Linux.
 */

const work = mkdtempSync(join(tmpdir(), 'ringwire-image-'))
const running: Subprocess[] = []
const containers: Container[] = []
let image: Image
let file: Variables
/** Of make-secrets.sh: the directory, and what is in the files. */
let secretFiles = ''
let secrets: Readonly<Record<string, string>> = {}
let postgres: Postgres
const port = { redis: 0, node: 0, turn: 0, haproxy: 0 }

beforeAll(async () => {
  // Another user runs what is in there.
  chmodSync(work, 0o755)
  file = readEnvironment(readFileSync(join(deploy, 'env.example'), 'utf8'))
  secretFiles = makeSecrets(work)
  secrets = readSecrets(secretFiles)
  for (const name of ['redis', 'node', 'turn', 'haproxy'] as const) port[name] = await freePort()
  image = buildImage(join(work, 'image'))
  postgres = await Postgres.start()
  await postgres.query('CREATE DATABASE ringwire')
}, 240_000)

afterAll(async () => {
  for (const child of running) {
    child.kill('SIGKILL')
    await child.exited
  }
  await Promise.all(containers.map((it) => it.remove()))
  await postgres?.dispose()
  rmSync(work, { recursive: true, force: true })
}, 240_000)

function start(command: readonly string[], env: Record<string, string | undefined>) {
  const child = Bun.spawn([...command], {
    cwd: work,
    env: { PATH: process.env.PATH, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  running.push(child)
  return child
}

/** The exit code of a health check, with what is different here. */
async function health(name: string, env: Record<string, string>, change = (text: string) => text): Promise<number> {
  const [kind, ...words] = (readCompose(file).services[name]?.healthcheck?.test ?? []).map(change)
  return start(kind === 'CMD-SHELL' ? ['sh', '-c', words.join(' ')] : words, env).exited
}

/** A text of compose.yaml, with the secrets where they are here. */
const inSecrets = (text: string) => text.replaceAll('/run/secrets', secretFiles)

const dataDir = '/var/lib/ringwire'

async function container(options: ContainerOptions = {}): Promise<Container> {
  const it = await startContainer(image, options)
  containers.push(it)
  return it
}

/** Repeats a health check until it says yes. */
async function healthy(check: () => Promise<number>): Promise<void> {
  for (const begin = performance.now(); performance.now() - begin < 60_000; ) {
    if ((await check()) === 0) return
    await Bun.sleep(50)
  }
  throw new Error('it does not become healthy')
}

describe('the image', () => {
  const filesIn = (directory: string) =>
    [...new Bun.Glob('**').scanSync({ cwd: directory, dot: true })]
      .map((path) => path.replace(/^lib.*\//, 'lib/'))
      .sort()

  test('is one executable, the C library, and wget', () => {
    expect(filesIn(image.directory)).toEqual([
      ...['ld-linux-x86-64.so.2', 'libc.so.6', 'libdl.so.2', 'libm.so.6', 'libpthread.so.0'].map(
        (name) => `lib/${name}`,
      ),
      ...['usr/bin/ringwire', 'usr/bin/wget'],
      ...['busybox-static/copyright', 'libc6/copyright', 'ringwire/LICENSE'].map((name) => `usr/share/doc/${name}`),
    ])
    expect(image.user).toBeGreaterThan(0)
    expect(image.entrypoint).toEqual(['/usr/bin/ringwire'])
    expect(image.healthcheck[0]).toBe('/usr/bin/wget')
  })

  test('as process 1 of a container without rights and without a network: it serves, is healthy, and ends on SIGTERM', async () => {
    const data = makeVolume(image)
    const node = await container({ volumes: { [dataDir]: data }, isAlone: true })
    await node.process.waitFor(/Ringwire listens on http:\/\/0\.0\.0\.0:8080\n/)
    expect(await node.exec(image.healthcheck)).toBe(0)
    expect(readdirSync(data)).toContain('ringwire.db')
    node.signal('SIGTERM')
    expect([await node.process.exited, node.process.output.match(/"level":"(warn|error)".*/g)]).toEqual([0, null])
    rmSync(data, { recursive: true })
  })

  test('without a volume and without DATABASE_URL it says in a line that it cannot write', async () => {
    const { process } = await container({ isAlone: true })
    expect(await process.exited).toBe(1)
    expect(process.err).toMatch(
      /^The data directory \S+ \(RINGWIRE_DATA_DIR\) cannot be used: the file system of \S+ is read-only$/m,
    )
  })

  test('nothing but source goes to the builder', () => {
    const ignoreFile = readFileSync(join(deploy, 'Dockerfile.dockerignore'), 'utf8')
    const secret = ['deploy/.env', '.env', 'data/jwt-secrets', 'node_modules/x/package.json', '.git/config']
    const tests = ['test/a.ts', 'src/a.test.ts', 'src/a.fixture.ts', 'node_modules/b/c.js'].map(
      (file) => `packages/server/${file}`,
    )
    const source = ['packages/server/src/main.ts', 'package.json', 'scripts/build.ts']
    expect(contextOf([...secret, ...tests, 'scripts/test.mjs', ...source], ignoreFile)).toEqual(source)
  })
})

test('Redis takes its configuration, asks for the password, and its health check notices when it is gone', async () => {
  const { services, configs } = readCompose(file)
  const path = join(work, 'redis.conf')
  writeFileSync(path, inSecrets(configs.redis?.content ?? ''))
  const [program, config] = services.redis?.command ?? []
  expect(config).toBe(services.redis?.configs?.[0]?.target)
  const dir = join(work, 'redis')
  mkdirSync(dir)
  const redis = start([program ?? '', path, '--port', String(port.redis), '--bind', '127.0.0.1', '--dir', dir], {})
  const here = (text: string) => inSecrets(text).replace('redis-cli', `redis-cli -p ${port.redis}`)
  await healthy(() => health('redis', {}, here))
  expect(await health('redis', {}, (text) => here(text).replace('^requirepass ', ''))).not.toBe(0)
  redis.kill('SIGTERM')
  await redis.exited
  expect(await health('redis', {}, here)).not.toBe(0)
  expect(readdirSync(dir)).toEqual([])
  start([program ?? '', path, '--port', String(port.redis), '--bind', '127.0.0.1', '--dir', dir], {})
  await healthy(() => health('redis', {}, here))
})

test('HAProxy takes the addresses of compose.yaml, and its health check says whether it is there', async () => {
  const certificate = join(work, 'calls.pem')
  const files = ['-keyout', join(work, 'key.pem'), '-out', join(work, 'cert.pem')]
  const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=calls.example.com']
  Bun.spawnSync(['openssl', ...made, ...files])
  writeFileSync(certificate, ['cert.pem', 'key.pem'].map((name) => readFileSync(join(work, name), 'utf8')).join(''))
  const here = (text: string) => text.replace('/443', `/${port.haproxy}`)
  expect(await health('haproxy', {}, here)).not.toBe(0)
  const env = { ...readCompose(file).services.haproxy?.environment, CERTIFICATE: certificate }
  const program = findSystemProgram('haproxy') ?? 'haproxy'
  const command = [program, '-db', '-n', '1000', '-f', join(deploy, 'haproxy.cfg')]
  const haproxy = start(command, { ...env, LISTEN: `127.0.0.1:${port.haproxy}` })
  await healthy(() => health('haproxy', {}, here))
  haproxy.kill('SIGTERM')
  await haproxy.exited
}, 240_000)

test('the health check of PostgreSQL says whether it is there', async () => {
  expect(await health('postgres', { PGPORT: String(postgres.port) })).toBe(0)
  expect(await health('postgres', { PGPORT: String(port.node) })).not.toBe(0)
})

test('a node as Compose starts it serves, on files that it cannot write, and sends its clients on at SIGTERM', async () => {
  const service = readCompose(file).services.node1
  const given = environmentOf(service!, file)
  for (const name of ['database-url', 'redis-url']) {
    const url = secrets[name]!
    const here = url
      .replace('@postgres:5432', `@127.0.0.1:${postgres.port}`)
      .replace('@redis:6379', `@127.0.0.1:${port.redis}`)
    writeFileSync(join(secretFiles, name), here)
  }
  const files = Object.fromEntries(
    (service?.secrets ?? []).map((name) => [`/run/secrets/${name}`, join(secretFiles, name)]),
  )
  const check = service?.healthcheck?.test.slice(1).map((word) => word.replace(':8080', `:${port.node}`)) ?? []
  const node = await container({ env: { ...given, RINGWIRE_PORT: String(port.node) }, files })
  await node.process.waitFor(/Ringwire listens on/)
  await healthy(() => node.exec(check))
  expect(await node.exec(check.map((word) => word.replace(`${port.node}`, `${port.turn}`)))).toBe(1)

  const url = `http://127.0.0.1:${port.node}`
  const { token, ws_url, ice_servers } = await issue(url)
  expect(ws_url).toBe('wss://calls.example.com/v1/ws')
  expect(ice_servers.flatMap(({ urls }) => urls)).toContain('turn:calls.example.com:3478')
  const client = new Client({ url, token })
  await client.next('auth.ok')
  node.signal('SIGTERM')
  expect((await client.closed).code).toBe(1012)
  expect(await node.process.exited).toBe(0)
}, 240_000)

/** A token, with the key of the environment file. */
async function issue(url: string): Promise<TokenResponse> {
  const [id = '', secret = ''] = secrets['bootstrap-keys']?.split(':') ?? []
  const answer = await fetch(`${url}/v1/call/session-token`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-SVC-Product-Key-ID': id, 'X-SVC-Product-Secret': secret },
    body: JSON.stringify({
      ...{ context_type: 'order', context_id: '1', user_id: 'ann', role: 'customer' },
      ...{ display_name: 'Ann', allowed_peer_role: 'agent' },
    }),
  })
  expect(answer.status).toBe(200)
  return (await answer.json()) as TokenResponse
}

test('coturn takes its configuration, asks for the secret that only it can read, and its health check answers', async () => {
  const { services, configs } = readCompose(file)
  const { entrypoint = [], configs: mounted } = services.coturn ?? { image: '' }
  const [base, whole] = ['base.conf', 'turnserver.conf'].map((name) => join(work, name))
  writeFileSync(base!, configs.coturn?.content ?? '')
  expect(mounted?.[0]?.target).toBe('/etc/coturn/base.conf')
  const options = `-L 127.0.0.1 -p ${port.turn} -m 1 --userdb ${work}/turndb --pidfile ${work}/turn.pid`
  const command = entrypoint.map((word) =>
    inSecrets(word)
      .replace('/etc/coturn/base.conf', base!)
      .replaceAll('/tmp/turnserver.conf', whole!)
      .replace('exec turnserver', `exec ${findSystemProgram('coturn')} ${options}`),
  )
  const turn = start(command, {})
  const here = (text: string) => text.replace('turnutils_stunclient', `timeout 1 turnutils_stunclient -p ${port.turn}`)
  await healthy(() => health('coturn', {}, here))
  expect(readFileSync(whole!, 'utf8')).toContain(`\n${secrets['turnserver.conf']}\n`)
  expect(statSync(whole!).mode & 0o077).toBe(0)
  const args = readFileSync(`/proc/${turn.pid}/cmdline`, 'utf8')
  expect([args.includes('turnserver'), args.includes(secrets['turn-secret']!)]).toEqual([true, false])
  turn.kill('SIGTERM')
  const said = await new Response(turn.stdout).text()
  expect(said).not.toMatch(/bad configuration|unknown argument|error/i)
  expect(await health('coturn', {}, here)).not.toBe(0)
}, 240_000)
