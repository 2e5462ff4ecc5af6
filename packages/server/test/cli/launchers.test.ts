/** What npm and npx start must not outlive them. With the npm of this machine, and real signals. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '@ringwire/testkit/patience'
import { runtimeSettings } from '../../bin/runtime-settings.mjs'
import { launcher } from './command.ts'

const root = join(import.meta.dir, '..', '..', '..', '..')

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'ringwire-launched-'))
})
afterEach(async () => {
  for (const { pid } of processes()) process.kill(pid, 'SIGKILL')
  await until('all are gone', () => processes().length === 0)
  rmSync(dataDir, { recursive: true, force: true })
})

/** Every process that was started for this test, with its arguments. */
function processes(): { pid: number; args: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => read(`/proc/${pid}/environ`).includes(dataDir))
    .map((pid) => ({ pid: Number(pid), args: read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ') }))
    .filter(({ args }) => args !== '')
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

const environmentOf = (pid: number) => read(`/proc/${pid}/environ`).split('\0')

function pidOf(pattern: RegExp): number {
  const found = processes().find(({ args }) => pattern.test(args))
  if (found === undefined) throw new Error(`no ${pattern} in ${JSON.stringify(processes())}`)
  return found.pid
}

/** Runs a command line in the repository until the service says that it listens. */
async function start(command: string[], env: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn(command, {
    cwd: root,
    env: { PATH: process.env.PATH ?? '', HOME: dataDir, RINGWIRE_DATA_DIR: dataDir, RINGWIRE_PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let out = ''
  const decoder = new TextDecoder()
  for await (const bytes of child.stdout) {
    out += decoder.decode(bytes, { stream: true })
    const url = /Ringwire listens on (\S+)\n/.exec(out)?.[1]
    if (url !== undefined) return url
  }
  throw new Error(`it never listened: ${out}`)
}

const isServed = (url: string) =>
  fetch(`${url}/healthz`).then(
    () => true,
    () => false,
  )

const npx = { command: ['npx', 'ringwire', 'serve'], npm: /^npm exec/, launcher: /^node \S+\/ringwire / }
const npm = { command: ['npm', 'start'], npm: /^npm start/, launcher: /^node scripts\/start\.mjs/ }

for (const [name, { command, ...patterns }] of Object.entries({ npx, 'npm start': npm })) {
  describe(name, () => {
    for (const [who, signal] of [
      // The shell between npm and the launcher gets it, and passes on nothing.
      ['npm', 'SIGTERM'],
      ['npm', 'SIGKILL'],
      ['launcher', 'SIGKILL'],
    ] as const) {
      test(`${signal} to ${who === 'npm' ? name : 'what it started'} leaves nothing behind`, async () => {
        const url = await start(command)
        process.kill(pidOf(patterns[who]), signal)
        await until('nothing of it is left', () => processes().length === 0)
        expect(await isServed(url)).toBe(false)
      }, 240_000)
    }
  })
}

describe('the settings of the runtime', () => {
  test.each([npx, npm])(
    'are set by $command',
    async ({ command }) => {
      await start(command)
      const environment = environmentOf(pidOf(/main\.ts serve/))
      for (const [name, value] of Object.entries(runtimeSettings)) expect(environment).toContain(`${name}=${value}`)
    },
    240_000,
  )

  test('may be set by whoever starts it', async () => {
    await start(['node', launcher, 'serve'], { MIMALLOC_PURGE_DELAY: '0' })
    const environment = environmentOf(pidOf(/main\.ts serve/))
    expect(environment).toContain('MIMALLOC_PURGE_DELAY=0')
    expect(environment).toContain('BUN_JSC_useWarmUpMarkedBlocks=0')
  }, 240_000)
})

test('after a kill, the port and the data directory are free', async () => {
  const url = await start(npx.command)
  process.kill(pidOf(npx.npm), 'SIGKILL')
  await until('nothing of it is left', () => processes().length === 0)
  const serve = [process.execPath, 'packages/server/src/main.ts', 'serve']
  expect(await start(serve, { RINGWIRE_PORT: new URL(url).port })).toBe(url)
}, 240_000)

describe('in the background', () => {
  for (const [name, line] of [
    ['the launcher', `nohup node ${launcher} serve &`],
    ['npx', 'nohup npx ringwire serve &'],
    ['npx of a shell that stays a while', 'nohup npx ringwire serve & until [ -e "$HOME/go" ]; do sleep 0.1; done'],
  ] as const) {
    test(`${name} with nohup lives on when its shell is gone, and stops on SIGTERM to the service`, async () => {
      const url = await start(['sh', '-c', line])
      writeFileSync(join(dataDir, 'go'), '')
      await until('the shell is gone', () => !processes().some(({ args }) => args.startsWith('sh -c nohup')))
      // Longer than the pause between two looks at the parents.
      await Bun.sleep(1_200)
      expect(await isServed(url)).toBe(true)
      process.kill(pidOf(/main\.ts serve/), 'SIGTERM')
      await until('nothing of it is left', () => processes().length === 0)
    }, 240_000)
  }
})
