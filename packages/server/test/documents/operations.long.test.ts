import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { blocks, projectRoot } from '@ringwire/testkit/documents'
import { until } from '@ringwire/testkit/patience'
import { freePort } from '@ringwire/testkit/ports'
import { makeTemporaryDirectory, startProcess } from '@ringwire/testkit/process'
import { systemProgram } from '@ringwire/testkit/system'
import { openTerminals } from './terminals.ts'

/* The commands of docs/operations.md, as they stand there, from the executable to the first graph: in a folder that has what
   the project's has, on ports of this test. */

const { path, remove } = await makeTemporaryDirectory()
const ports: Record<string, string> = {}

const page = blocks('docs/operations.md', '## One executable', '## Behind a reverse proxy')
const commands = page.filter(({ language }) => language === 'sh').map(({ text }) => text)
const [make = '', serve = '', ben = '', ann = '', look = '', prometheus = '', ask = '', ...more] = commands

beforeAll(async () => {
  for (const port of ['8080', '9464', '9091']) ports[port] = String(await freePort())
  cpSync(join(projectRoot, 'deploy', 'prometheus'), join(path, 'deploy', 'prometheus'), { recursive: true })
  const config = join(path, 'deploy', 'prometheus', 'prometheus.yaml')
  writeFileSync(config, onOwnPorts(readFileSync(config, 'utf8')))
  mkdirSync(join(path, 'dist'))
})
afterAll(async () => {
  await stop()
  await remove()
})

function onOwnPorts(text: string): string {
  return text.replace(/\b(8080|9464|9091)\b/g, (port) => ports[port] ?? '').replaceAll('/tmp/', `${path}/`)
}

const { type, stay, run, stop } = openTerminals(path, onOwnPorts, () => ({ RINGWIRE_PORT: ports['8080'] ?? '' }))

test('the page has these blocks, and this file runs all of them', () => {
  expect(commands.map((text) => /^(npm|RINGWIRE_\w+|dist\/\w+ \w+|printf|curl|prometheus)/.exec(text)?.[0])).toEqual([
    'npm',
    'RINGWIRE_ADMIN_PORT',
    'dist/ringwire keys',
    'printf',
    'curl',
    'prometheus',
    'curl',
  ])
  expect(more).toEqual([])
})

test('npm run build makes the executable', async () => {
  const [build = '', start] = make.split('\n')
  expect(start).toBe('dist/ringwire serve')
  const shell = startProcess(['sh', '-ec', `${build.replace(/ +#.*/, '')} -- ${join(path, 'dist', 'ringwire')}`])
  expect(await shell.exited, shell.output).toBe(0)
}, 240_000)

test('a first call', async () => {
  const service = stay(serve)
  await service.waitFor(/Ringwire listens on http:\/\/127\.0\.0\.1:\d+\n/)
  const callee = type(ben)
  await callee.waitFor(/auth\.ok/)
  const caller = type(ann)
  expect([await caller.exited, await callee.exited], caller.output + callee.output).toEqual([0, 0])
  expect(caller.output).toContain('call.accepted')
  expect(callee.output).toContain('call.ended')
  expect(await run(look)).toContain('ringwire_calls_ended_total{status="ended",end_reason="hangup"} 1')
}, 240_000)

test('a first graph', async () => {
  // What Debian installs is not in every PATH.
  stay(prometheus.replace(/^prometheus/, systemProgram('prometheus')))
  const api = `http://127.0.0.1:${ports['9091']}/api/v1`
  // biome-ignore lint/suspicious/noExplicitAny: its answers are its own.
  const points = async (): Promise<any> => {
    const now = Date.now() / 1_000
    const range = `query=ringwire_calls_ended_total&start=${now - 900}&end=${now}&step=5`
    const answer = await fetch(`${api}/query_range?${range}`)
      .then((response) => response.json())
      .catch(() => undefined)
    return (answer as { data?: { result?: { values: [number, string][] }[] } })?.data?.result?.[0]?.values
  }
  await until('the graph has a point', async () => (await points()) !== undefined, 60_000)
  expect((await points())[0][1]).toBe('1')
  expect(JSON.parse(await run(ask)).data.result).toMatchObject([
    { metric: { job: 'ringwire', status: 'ended', end_reason: 'hangup' }, value: [expect.anything(), '1'] },
  ])
  // It reads the alerts, too.
  const rules = await (await fetch(`${api}/rules`)).json()
  expect(rules.data.groups[0].rules).toHaveLength(4)
}, 240_000)
