import { afterAll, expect, test } from 'bun:test'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@ringwire/testkit/client'

/** What somebody gets who installs Ringwire with npm: packed, installed into an empty project, and run from there. */
const root = new URL('../../../..', import.meta.url).pathname
const packages = ['protocol', 'client', 'demo', 'server'] as const
const productSecret = 'a-secret-that-only-tests-know-0123456789'

const work = mkdtempSync(join(tmpdir(), 'ringwire-package-'))
const tarballs = join(work, 'tarballs')
const project = join(work, 'project')
let service: ChildProcess | undefined

afterAll(() => {
  // npx starts a shell of its own: all of it goes.
  if (service?.pid !== undefined) signalGroup(service.pid, 'SIGKILL')
  rmSync(work, { recursive: true, force: true })
})

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch {
    // It ended by itself.
  }
}

/** As in a shell of one's own: nothing of the npm that perhaps runs these tests. */
function environment(more: Record<string, string> = {}): Record<string, string> {
  const own = Object.entries(process.env).filter(([name]) => !/^(npm_(?!config_)|INIT_CWD$|NODE_OPTIONS$)/.test(name))
  return { ...(Object.fromEntries(own) as Record<string, string>), ...more }
}

async function run(directory: string, command: readonly string[]) {
  const child = Bun.spawn([...command], { cwd: directory, env: environment(), stdout: 'pipe', stderr: 'pipe' })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const code = await child.exited
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}:\n${out}${err}`)
  return { out, err }
}

interface Packed {
  readonly filename: string
  readonly files: readonly { readonly path: string }[]
}

test('npm pack: what a package needs is in it, and nothing else', async () => {
  await run(work, ['mkdir', tarballs, project])
  for (const name of packages) {
    const directory = join(root, 'packages', name)
    const { out } = await run(directory, ['npm', 'pack', '--json', '--pack-destination', tarballs])
    const answer: Packed[] | Record<string, Packed> = JSON.parse(out)
    const [packed] = Object.values(answer)
    const paths = packed!.files.map(({ path }) => path)
    expect(paths.filter((path) => /\.test\.ts$|^test\/|\.map$|\.db|secret\.|\.env/.test(path))).toEqual([])
    expect(paths).toContain('package.json')
    // Who does not read TypeScript gets JavaScript and declarations.
    if (name === 'client') for (const path of ['dist/client.js', 'dist/client.d.ts']) expect(paths).toContain(path)
    if (name === 'server') {
      expect(paths).toContain('bin/ringwire.mjs')
      expect(paths.some((path) => path.startsWith('sql/sqlite/'))).toBe(true)
    }
  }
  expect(readdirSync(tarballs)).toHaveLength(packages.length)
}, 90_000)

test('npm install into an empty project', async () => {
  writeFileSync(join(project, 'package.json'), '{"name":"empty","private":true}')
  const files = readdirSync(tarballs).map((name) => join(tarballs, name))
  await run(project, ['npm', 'install', '--prefer-offline', '--no-audit', '--no-fund', ...files])
  expect(readdirSync(join(project, 'node_modules', '@ringwire')).sort()).toEqual(['client', 'demo', 'protocol'])
}, 240_000)

test('the SDK in Node, and its types in an application of its own', async () => {
  const entries = ['client', 'client/media', 'client/react', 'client/types', 'protocol/close-codes']
  const script = entries.map((entry) => `await import('@ringwire/${entry}')`).join('; ')
  const use = `import { createCallClient } from '@ringwire/client'; ${script}; console.log(typeof createCallClient)`
  // React is the application's own, if it has one at all.
  const node = use.replace("await import('@ringwire/client/react'); ", '')
  expect((await run(project, ['node', '--input-type=module', '-e', node])).out.trim()).toBe('function')

  writeFileSync(
    join(project, 'phone.ts'),
    `import { createCallClient } from '@ringwire/client'
import { createCallMedia } from '@ringwire/client/media'
import type { Call } from '@ringwire/client/types'
const client = createCallClient({ getToken: async () => ({ token: '', expires_at: '' }) })
export const call: Call = client.call({ userId: 'ben', role: 'agent' })
export const muted: boolean = createCallMedia(call, { client }).state.muted.audio
// @ts-expect-error: a user has no number
client.call({ userId: 5, role: 'agent' })
`,
  )
  const tsc = join(root, 'node_modules', '.bin', 'tsc')
  for (const resolution of [
    ['--module', 'nodenext'],
    ['--module', 'esnext', '--moduleResolution', 'bundler'],
  ]) {
    const options = ['--strict', '--noEmit', '--target', 'esnext', '--types', '', '--lib', 'esnext,dom,dom.iterable']
    await run(project, [tsc, 'phone.ts', ...options, ...resolution])
  }
}, 90_000)

test('npx ringwire version and --help', async () => {
  const version = await run(project, ['npx', 'ringwire', 'version'])
  expect(version.out).toMatch(/^ringwire \d+\.\d+\.\d+ \(Bun \d/)
  const help = await run(project, ['npx', 'ringwire', '--help'])
  for (const command of ['serve', 'keys', 'token', 'config']) expect(help.out).toContain(command)
}, 90_000)

test('npx ringwire serve: a token, auth.ok, the demo page, and an end in order', async () => {
  const child = spawn('npx', ['ringwire', 'serve'], {
    cwd: project,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environment({
      RINGWIRE_PORT: '0',
      RINGWIRE_DATA_DIR: join(work, 'data'),
      RINGWIRE_BOOTSTRAP_KEYS: `test:${productSecret}:shop`,
      RINGWIRE_DEMO: '1',
    }),
  })
  service = child
  let log = ''
  child.stderr.on('data', (bytes) => {
    log += bytes
  })
  const exited = new Promise<number | null>((resolve) => child.on('exit', resolve))
  const url = await new Promise<string>((resolve, reject) => {
    let out = ''
    child.stdout.on('data', (bytes) => {
      out += bytes
      const line = /Ringwire listens on (\S+)\n/.exec(out)
      if (line !== null) resolve(line[1] ?? '')
    })
    exited.then((code) => reject(new Error(`ended with ${code}: ${log}`)))
  })

  const response = await fetch(`${url}/v1/call/session-token`, {
    method: 'POST',
    headers: { 'X-SVC-Product-Key-ID': 'test', 'X-SVC-Product-Secret': productSecret },
    body: JSON.stringify({
      context_type: 'order',
      context_id: '1',
      user_id: 'ann',
      role: 'agent',
      display_name: 'Ann',
      allowed_peer_role: 'customer',
    }),
  })
  expect(response.status).toBe(200)
  const { token } = (await response.json()) as { token: string }
  const client = new Client({ url, token })
  expect((await client.next('auth.ok')).data).toMatchObject({ user_id: 'ann', role: 'agent' })
  const page = await fetch(`${url}/demo/`)
  expect(page.status).toBe(200)
  expect(await page.text()).toContain('<html')
  // The page's script is bundled from the SDK's package.
  const script = await fetch(`${url}/demo/main.js`)
  expect(script.status).toBe(200)
  expect(await script.text()).toContain('RTCPeerConnection')

  signalGroup(child.pid!, 'SIGTERM')
  expect((await client.closed).code).toBe(1012)
  await exited
  expect(log).not.toContain('"level":"error"')
}, 90_000)
