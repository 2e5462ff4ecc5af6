import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blocks as documentBlocks } from '@ringwire/testkit/documents'
import { freePort } from '@ringwire/testkit/ports'
import { Postgres } from '../support/postgres.ts'

/* The commands of docs/scaling.md, run in their order; only ports are other ones, and there is no sudo. */

const root = new URL('../../../../', import.meta.url).pathname
const directory = mkdtempSync(join(tmpdir(), 'ringwire-scaling-'))
const work = join(directory, 'clone')
const programs = join(directory, 'bin')
/** What of a clone the commands need. */
const clone = ['node_modules', 'deploy', 'package.json', 'packages']
const running: Terminal[] = []
const ports = new Map<string, string>()
let postgres: Postgres
let key = { RINGWIRE_KEY_ID: '', RINGWIRE_KEY_SECRET: '' }

/** How long is waited for what should come. A bound for failures, never a pace. */
const patienceMs = 60_000

/** A command that goes on, in a group of its own as in a terminal. */
interface Terminal {
  says(pattern: RegExp, from?: number): Promise<RegExpMatchArray>
  /** Its output so far. */
  output(): string
  /** To all of its processes, as Ctrl-C goes; resolves when it has ended. */
  signal(signal: NodeJS.Signals): Promise<void>
}

beforeAll(async () => {
  for (const port of ['6379', '8080', '8081', '8443']) ports.set(port, String(await freePort()))
  for (const made of [work, programs]) mkdirSync(made)
  for (const name of clone) symlinkSync(join(root, name), join(work, name))
  const sudo = '[ "$1 $2" = "-u postgres" ] && shift 2 && PGDATABASE=postgres exec "$@"'
  writeFileSync(join(programs, 'sudo'), `#!/bin/sh\n${sudo}\n`, { mode: 0o755 })
  postgres = await Postgres.start()
  ports.set('5432', String(postgres.port))
  await postgres.query(`CREATE ROLE "${userName()}" SUPERUSER LOGIN`)
  // As with a new PostgreSQL of Debian, all others need a password.
  const rules = ['ringwire', userName()].map((superuser) => `host all ${superuser} 127.0.0.1/32 trust`)
  const others = 'host all all 127.0.0.1/32 scram-sha-256'
  writeFileSync(join(postgres.dataDir, 'pg_hba.conf'), `${[...rules, others].join('\n')}\n`)
  await postgres.query('SELECT pg_reload_conf()')
})

afterAll(async () => {
  for (const terminal of running) await terminal.signal('SIGKILL')
  await postgres?.dispose()
  rmSync(directory, { recursive: true, force: true })
})

function userName(): string {
  return Bun.spawnSync(['id', '-un']).stdout.toString().trim()
}

/** The blocks of a step, by its bold number. */
function blocks(step: number, language = 'sh'): string[] {
  const all = documentBlocks('docs/scaling.md', `**${step}. `, `**${step + 1}. `)
  const found = all.filter((it) => it.language === language).map(({ text }) => text.trimEnd())
  if (found.length === 0) throw new Error(`step ${step} has no ${language}`)
  return found
}

function withPorts(text: string): string {
  return text.replaceAll(/\b(5432|6379|8080|8081|8443)\b/g, (port) => ports.get(port) ?? port)
}

function environment(): Record<string, string> {
  const { PATH = '', HOME = '' } = process.env
  const path = `${programs}:${PATH}`
  return { PATH: path, HOME, PGHOST: '127.0.0.1', PGPORT: String(postgres.port), ...key }
}

async function run(command: string): Promise<string> {
  const child = Bun.spawn(['sh', '-ec', withPorts(command)], { cwd: work, env: environment(), stderr: 'pipe' })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`${command}\n${out}${err}`)
  return out
}

function start(command: string): Terminal {
  const child = Bun.spawn(['setsid', 'sh', '-ec', withPorts(command)], {
    cwd: work,
    env: environment(),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  let text = ''
  let changed = Promise.withResolvers<void>()
  const wake = () => {
    changed.resolve()
    changed = Promise.withResolvers()
  }
  for (const stream of [child.stdout, child.stderr]) {
    void (async () => {
      const decoder = new TextDecoder()
      for await (const bytes of stream) {
        text += decoder.decode(bytes, { stream: true })
        wake()
      }
      wake()
    })()
  }
  const terminal: Terminal = {
    output: () => text,
    async says(pattern, from = 0) {
      const late = AbortSignal.timeout(patienceMs)
      late.addEventListener('abort', wake)
      for (;;) {
        const match = pattern.exec(text.slice(from))
        if (match !== null) return match
        if (child.exitCode !== null || late.aborted) throw new Error(`${command} never said ${pattern}:\n${text}`)
        await changed.promise
      }
    },
    async signal(signal) {
      try {
        process.kill(-child.pid, signal)
      } catch {
        // It has ended.
      }
      await child.exited
    },
  }
  running.push(terminal)
  return terminal
}

/** How far Ben has heard; all numbers until then, once and in order. */
function heardBy(call: Terminal): number {
  const heard = [...call.output().matchAll(/^ben hears (\d+)$/gm)].map(([, n]) => Number(n))
  expect(heard).toEqual(heard.map((_, i) => i + 1))
  return heard.length
}

test('one process, then two nodes: a call goes on while its nodes go and come', async () => {
  // What is there before: five minutes of the README.
  const made = await run('npx ringwire keys create --product shop')
  const field = (name: string) => new RegExp(`${name}\\s+(\\S+)`).exec(made)?.[1] ?? ''
  key = { RINGWIRE_KEY_ID: field('Key ID'), RINGWIRE_KEY_SECRET: field('Secret') }
  await run('npx ringwire token --product shop --user ann --role customer --peer-role agent')

  const [redis = ''] = blocks(1)
  await start(redis).says(/Ready to accept connections/)
  const [told = ''] = blocks(2)
  await run(told)
  const [migrate = ''] = blocks(3)
  expect(await run(migrate)).toContain('1')
  const [one = '', two = ''] = blocks(4)
  const nodes = { one: start(one), two: start(two) }
  for (const node of Object.values(nodes)) await node.says(/Ringwire listens on/)
  const [certificate = '', balance = ''] = blocks(5)
  await run(certificate)
  start(balance)
  await answers()

  const [script = ''] = blocks(6, 'ts')
  writeFileSync(join(work, 'two.ts'), withPorts(script))
  const [call = '', places = ''] = blocks(6)
  const calling = start(call)
  await calling.says(/^ben hears 2$/m)
  const where = /^(\w+)~\S+\|(\w+)~\S+$/m.exec(await run(places))
  const [, annOn, benOn] = where ?? []
  expect([annOn, benOn].sort()).toEqual(['one', 'two'])
  const otherOf = (name: string | undefined) => (name === 'one' ? 'two' : 'one')

  // The second time both are on the node that goes.
  for (let times = 0; times < 2; times++) {
    const from = calling.output().length
    const [, name = ''] = /(\w+)~/.exec(await run(places)) ?? []
    await nodes[name as 'one' | 'two'].signal('SIGINT')
    await calling.says(/^ann is back, nothing is lost$/m, from)
    const until = heardBy(calling)
    await calling.says(new RegExp(`^ben hears ${until + 2}$`, 'm'))
    heardBy(calling)
    expect(await run(places)).toStartWith(`${otherOf(name)}~`)
    nodes[name as 'one' | 'two'] = start(name === 'one' ? one : two)
    await nodes[name as 'one' | 'two'].says(/Ringwire listens on/)
    await answers()
  }
  await calling.signal('SIGINT')
  expect(calling.output()).toContain('the call is over')

  const ignored = readFileSync(join(root, '.gitignore'), 'utf8').split('\n')
  const left = readdirSync(work).filter((name) => !clone.includes(name))
  expect(left).toContain('nodes.env')
  expect(left.filter((name) => !ignored.includes(`/${name}`) && !ignored.includes(`${name}/`))).toEqual([])
}, 240_000)

/** The load balancer serves. */
async function answers(): Promise<void> {
  const url = `https://localhost:${ports.get('8443')}/readyz`
  for (const begin = performance.now(); performance.now() - begin < patienceMs; ) {
    const answer = await fetch(url, { tls: { rejectUnauthorized: false } }).catch(() => undefined)
    if (answer?.status === 200) return
    await Bun.sleep(20)
  }
  throw new Error('the load balancer does not serve')
}
