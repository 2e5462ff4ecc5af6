import { afterAll, expect, test } from 'bun:test'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@ringwire/testkit/client'
import { block, readDocument } from '@ringwire/testkit/documents'
import { environment, installCommands, run, shell } from './commands.ts'

/** What somebody gets who installs Ringwire with npm: packed, installed into an empty project, and run from there. */
const root = new URL('../../../..', import.meta.url).pathname
const tsc = join(root, 'node_modules', '.bin', 'tsc')
/** Folder and start of the tarball's name. */
const packages = {
  protocol: 'ringwire-protocol',
  client: 'ringwire-client',
  'server-sdk': 'ringwire-server-sdk',
  ui: 'ringwire-ui',
  demo: 'ringwire-demo',
  server: 'ringwire',
  'create-ringwire': 'create-ringwire',
}
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

function readJson(directory: string): object {
  return JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'))
}

test('the first command packs what a package needs, and nothing else', async () => {
  const { out } = await shell(root, installCommands('server', tarballs)[0])
  // npm adds the name of the script. The paths of the packages, and how each is installed.
  expect(out.trim().split('\n').filter(Boolean).length).toBeLessThanOrEqual(10)
  expect(out).toContain(`${Object.keys(packages).length} packages are in ${tarballs}.`)
  for (const name of [
    '/\\*.tgz',
    '/ringwire-server-sdk-\\*.tgz',
    '/ringwire-protocol-\\*.tgz .*/ringwire-ui-\\*.tgz',
  ]) {
    expect(out).toMatch(new RegExp(`npm install ${tarballs}${name}$`, 'm'))
  }
  expect(readdirSync(tarballs)).toHaveLength(Object.keys(packages).length)
  for (const [name, title] of Object.entries(packages)) {
    const listed = await run(tarballs, ['sh', '-c', `tar -tzf ${title}-[0-9]*.tgz`])
    const paths = listed.out
      .trim()
      .split('\n')
      .map((path) => path.replace(/^package\//, ''))
    expect(paths.filter((path) => /\.(?:test|fixture)\.ts$|^test\/|\.map$|\.db|secret\.|\.env/.test(path))).toEqual([])
    expect(paths).toContain('package.json')
    expect(paths).toContain('LICENSE')
    // Who does not read TypeScript gets JavaScript and declarations.
    if (name === 'client') for (const path of ['dist/client.js', 'dist/client.d.ts']) expect(paths).toContain(path)
    if (name === 'server-sdk')
      for (const path of ['dist/ringwire.js', 'dist/ringwire.d.ts']) expect(paths).toContain(path)
    if (name !== 'demo') expect(paths).toContain('README.md')
    if (name === 'server') {
      expect(paths).toContain('bin/ringwire.mjs')
      expect(paths.some((path) => path.startsWith('sql/sqlite/'))).toBe(true)
    }
  }
}, 240_000)

test('the second command installs the SDK into an empty folder, where Node and strict TypeScript use it', async () => {
  const application = join(work, 'application')
  mkdirSync(application)
  await shell(application, installCommands('client', tarballs)[1])
  expect(readdirSync(join(application, 'node_modules', '@ringwire')).sort()).toEqual(['client', 'protocol'])

  writeFileSync(
    join(application, 'program.mjs'),
    `import { createCallClient } from '@ringwire/client'
import '@ringwire/client/media'
import { shouldReconnect } from '@ringwire/protocol/close-codes'
const { state, close } = createCallClient({ getToken: () => Promise.reject(new Error('none')) })
close()
console.log(state.name, shouldReconnect(4409), shouldReconnect(1006))
`,
  )
  expect((await run(application, ['node', 'program.mjs'])).out).toBe('idle false true\n')

  writeFileSync(join(application, 'phone.ts'), block('packages/client/README.md', 'ts', '## Use'))
  writeFileSync(
    join(application, 'wrong.ts'),
    `import { createCallClient } from '@ringwire/client'
const client = createCallClient({ getToken: async () => ({ token: '', expires_at: '' }) })
// @ts-expect-error: a user has no number
client.call({ userId: 5, role: 'agent' })
`,
  )
  // Node resolves files of a package by its type.
  writeFileSync(join(application, 'package.json'), JSON.stringify({ ...readJson(application), type: 'module' }))
  for (const resolution of [
    ['--module', 'node16'],
    ['--module', 'nodenext'],
    ['--module', 'esnext', '--moduleResolution', 'bundler'],
  ]) {
    const options = ['--strict', '--noEmit', '--target', 'esnext', '--types', '', '--lib', 'esnext,dom,dom.iterable']
    await run(application, [tsc, 'phone.ts', 'wrong.ts', ...options, ...resolution])
  }
  // Declarations ask for no newer language than the application is compiled for.
  const { exports } = readJson(join(application, 'node_modules', '@ringwire', 'client')) as { exports: object }
  const entries = Object.keys(exports).filter((name) => !name.endsWith('.json'))
  const imports = entries.map((name) => `import '@ringwire/client${name.slice(1)}'\n`)
  writeFileSync(join(application, 'old.ts'), imports.join(''))
  const old = ['--strict', '--noEmit', '--target', 'es2020', '--types', '', '--lib', 'es2020,dom,dom.iterable']
  await run(application, [tsc, 'old.ts', ...old, '--module', 'esnext', '--moduleResolution', 'bundler'])
}, 240_000)

test('the SDK for backends installs alone, and Node and strict TypeScript use it', async () => {
  const backend = join(work, 'backend')
  mkdirSync(backend)
  await shell(backend, installCommands('server-sdk', tarballs)[1])
  expect(readdirSync(join(backend, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['@ringwire'])
  writeFileSync(
    join(backend, 'program.mjs'),
    `import { createRingwire, webhooks } from '@ringwire/server-sdk'
const { calls } = createRingwire({ url: 'http://127.0.0.1:1', keyId: 'k', secret: 's' })
console.log(typeof webhooks.verify, await calls.list().catch(({ code }) => code))
`,
  )
  expect((await run(backend, ['node', 'program.mjs'])).out).toBe('function NETWORK\n')
  writeFileSync(join(backend, 'backend.ts'), block('packages/server-sdk/README.md', 'ts', '## Use'))
  writeFileSync(join(backend, 'package.json'), JSON.stringify({ ...readJson(backend), type: 'module' }))
  const types = ['--types', 'node', '--typeRoots', join(root, 'node_modules', '@types')]
  await run(backend, [
    tsc,
    '--strict',
    '--noEmit',
    '--module',
    'nodenext',
    '--target',
    'es2024',
    ...types,
    'backend.ts',
  ])
})

test('the second command installs the service into an empty folder', async () => {
  mkdirSync(project)
  await shell(project, installCommands('server', tarballs)[1])
  expect(readdirSync(join(project, 'node_modules', '@ringwire')).sort()).toEqual([
    'client',
    'demo',
    'protocol',
    'server-sdk',
    'ui',
  ])
}, 240_000)

test('an application of the guide, beside what was installed: its page is bundled, and nobody has a token', async () => {
  const guide = 'docs/guide/app-developers.md'
  const [pack, install] = [block(guide, 'sh', '## Your own page'), block(guide, 'sh', 'in the empty folder:')]
  expect([pack, install]).toEqual(
    readDocument('packages/server/README.md')
      .match(/^npm .*\n/gm)
      ?.slice(0, 2) as [string, string],
  )
  writeFileSync(join(project, 'index.html'), block(guide, 'html', '## Your own page'))
  writeFileSync(join(project, 'server.ts'), block(guide, 'ts', '## Your own page'))
  writeFileSync(join(project, 'phone.ts'), block('README.md', 'ts', '**3. Call**'))
  const command = block(guide, 'sh', 'as `RINGWIRE_KEY_ID` and')
  const child = spawn('sh', ['-c', command], {
    cwd: project,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
    env: environment({ PORT: '0', RINGWIRE_KEY_ID: 'none', RINGWIRE_KEY_SECRET: 'none' }),
  })
  const exited = new Promise<void>((resolve) => child.on('exit', () => resolve()))
  try {
    const [words] = await once(child.stdout, 'data')
    const [, origin = ''] = /Open (.*?)sign-in\/ann/.exec(String(words)) ?? []
    const page = await (await fetch(origin)).text()
    const [, script = ''] = /<script [^>]*src="([^"]+)"/.exec(page) ?? []
    expect(await (await fetch(new URL(script, origin))).text()).toContain('RTCPeerConnection')
    expect((await fetch(new URL('/call-token', origin), { method: 'POST' })).status).toBe(401)
  } finally {
    signalGroup(child.pid!, 'SIGTERM')
    await exited
  }
}, 240_000)

test('npx ringwire version and --help', async () => {
  const version = await run(project, ['npx', 'ringwire', 'version'])
  expect(version.out).toMatch(/^ringwire \d+\.\d+\.\d+ \(Bun \d/)
  const help = await run(project, ['npx', 'ringwire', '--help'])
  for (const command of ['serve', 'keys', 'token', 'config']) expect(help.out).toContain(command)
}, 240_000)

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
}, 240_000)
