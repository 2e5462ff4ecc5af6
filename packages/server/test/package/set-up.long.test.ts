/** The set-up of a fresh clone, with the npm of this machine: just for `npm start`, then for the tests, and both ways. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { block } from '@ringwire/testkit/documents'
import { until } from '@ringwire/testkit/patience'
import { makeTemporaryDirectory, type RunningProcess, startProcess } from '@ringwire/testkit/process'

const root = join(import.meta.dir, '..', '..', '..', '..')
const directory = await makeTemporaryDirectory()
const clone = join(directory.path, 'clone')
const modules = join(clone, 'node_modules')
const running: RunningProcess[] = []

beforeAll(() => {
  // What a clone has, with what was not committed yet.
  const listed = Bun.spawnSync(['git', 'ls-files', '--cached', '--others', '--exclude-standard'], { cwd: root })
  for (const file of listed.stdout.toString().trim().split('\n')) {
    if (existsSync(join(root, file))) cpSync(join(root, file), join(clone, file))
  }
}, 240_000)

afterAll(async () => {
  await Promise.all(running.map((process) => process.stop()))
  await directory.remove()
}, 240_000)

function start(name: string): RunningProcess {
  const env = { RINGWIRE_PORT: '0', RINGWIRE_DATA_DIR: join(directory.path, name) }
  const started = startProcess(['node', join(clone, 'scripts', 'start.mjs')], env)
  running.push(started)
  return started
}

/** A script that needs what the tests need. */
const useTools = () => startProcess(['node', join(clone, 'scripts', 'run.mjs'), 'biome', '--version'])
const has = (name: string) => existsSync(join(modules, name, 'package.json'))
const recorded = (): Record<string, { dev?: boolean }> =>
  JSON.parse(readFileSync(join(modules, '.package-lock.json'), 'utf8')).packages

/** A command of a document, in the clone. */
async function shell(command: string): Promise<string> {
  const env = { ...process.env, RINGWIRE_DATA_DIR: join(directory.path, 'data') }
  const child = Bun.spawn(['sh', '-ec', command], { cwd: clone, env, stdin: 'ignore', stdout: 'pipe' })
  const said = await new Response(child.stdout).text()
  expect(await child.exited).toBe(0)
  return said
}

test('an operator installs, and looks at the settings', async () => {
  const [install = '', check = ''] = block('docs/guide/operators.md', 'sh', '## Run it').split('\n')
  await shell(install)
  expect(has('hono') && !has('typescript')).toBe(true)
  expect(await shell(check)).toContain('RINGWIRE_DATA_DIR')
  rmSync(modules, { recursive: true })
}, 240_000)

test('npm start, twice at once: one install, of what the service needs, and both serve the demo', async () => {
  expect(block('README.md', 'sh', '## Two commands')).toStartWith('npm start ')
  expect(JSON.parse(readFileSync(join(clone, 'package.json'), 'utf8')).scripts.start).toBe('node scripts/start.mjs')
  const services = [start('one'), start('two')]
  for (const service of services) {
    // npm takes as long as the registry does.
    await Promise.race([until('the service listens', () => service.out.includes('listens')), service.exited])
    const [, url] = await service.waitFor(/Ringwire listens on (\S+)\n/)
    expect((await fetch(`${url}/demo/main.js`)).status).toBe(200)
  }
  expect(services.filter(({ err }) => err.includes('Installing'))).toHaveLength(1)
  expect(Object.values(recorded()).filter(({ dev }) => dev)).toEqual([])
  expect(['hono', 'typebox', 'playwright-core', 'typescript', 'react'].map(has)).toEqual([
    ...[true, true],
    ...[false, false, false],
  ])
}, 240_000)

test('the rest is added beside a service that runs; where that is killed, all is made anew', async () => {
  const own = statSync(join(modules, 'hono', 'package.json')).ino
  const killed = useTools()
  await Promise.race([until('the tools begin to arrive', () => has('typescript')), killed.exited])
  const npm = readFileSync(`/proc/${killed.pid}/task/${killed.pid}/children`, 'utf8').trim().split(' ').map(Number)
  for (const pid of [killed.pid, ...npm]) process.kill(pid, 'SIGKILL')
  await killed.exited
  expect(has('typescript')).toBe(true)
  expect(statSync(join(modules, 'hono', 'package.json')).ino).toBe(own)

  const again = useTools()
  expect(await again.exited).toBe(0)
  expect(again.out).toStartWith('Version: ')
  expect(again.err).toContain('Installing')
  // Nothing is left of what may have been there in part.
  expect(statSync(join(modules, 'hono', 'package.json')).ino).not.toBe(own)
  expect(['hono', 'playwright-core', 'typescript', 'react'].map(has)).toEqual([true, true, true, true])
  const third = useTools()
  expect(await third.exited).toBe(0)
  expect(third.err).toBe('')
  // And the service alone is content with it.
  const [, url] = await start('three').waitFor(/Ringwire listens on (\S+)\n/)
  expect((await fetch(`${url}/healthz`)).status).toBe(200)
  expect(has('typescript')).toBe(true)
}, 240_000)
