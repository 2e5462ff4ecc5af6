/** The app for phones as its README says: packed, installed with its lock file, type-checked, and bundled for both platforms. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeTemporaryDirectory } from '@ringwire/testkit/process'
import { env } from './support/example.ts'

const root = join(import.meta.dir, '..', '..')

let directory: Awaited<ReturnType<typeof makeTemporaryDirectory>>
let path = ''

async function run(cwd: string, ...command: string[]): Promise<void> {
  const child = Bun.spawn(command, { cwd, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const said = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  expect(await child.exited, said.join('\n')).toBe(0)
}

beforeAll(async () => {
  directory = await makeTemporaryDirectory()
  path = join(directory.path, 'examples', 'react-native')
  const isSource = (file: string) => !/\/(node_modules|dist)$/.test(file.slice(root.length))
  cpSync(join(root, 'examples', 'react-native'), path, { recursive: true, filter: isSource })
  await run(root, 'npm', 'run', 'pack', '--', join(directory.path, 'packed'))
  // Scripts of packages build native parts, which nothing here needs.
  await run(path, 'npm', 'ci', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund')
  const packed = ['protocol', 'client'].map((name) => `../../packed/ringwire-${name}-0.1.0.tgz`)
  await run(path, 'npm', 'install', '--no-save', ...packed, '--ignore-scripts', '--no-audit', '--no-fund')
}, 600_000)

afterAll(() => directory?.remove())

test('its types fit, with the settings of React Native', async () => {
  await run(path, join(root, 'node_modules', '.bin', 'tsc'), '-p', '.')
}, 240_000)

for (const platform of ['android', 'ios']) {
  test(`Metro makes one file of it for ${platform}`, async () => {
    const out = join(directory.path, `${platform}.js`)
    await run(path, 'node', 'bundle.mjs', platform, out)
    const text = readFileSync(out, 'utf8')
    // The client, media, the entry for React Native, and the native module that media goes to.
    for (const part of ['auth.ok', 'inbound-rtp', 'call.wake_cancelled', 'WebRTCModule']) expect(text).toContain(part)
  }, 400_000)
}
