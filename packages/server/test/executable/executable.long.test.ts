/** The executable that `npm run build` makes: run where there is nothing else, neither a runtime nor files of the project. */

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { acceptedCall, candidate, connectPair } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { makeTemporaryDirectory, type RunningProcess, startProcess } from '@ringwire/testkit/process'
import { Service } from '@ringwire/testkit/service'
import { makePageFile, type PageFile } from '../../../demo/src/backend/page-files.ts'
import { runtimeSettings } from '../../bin/runtime-settings.mjs'
import * as operators from '../../src/operators/page-files.ts'
import { adminUrlOf, metricsOf } from '../admin/observed.ts'
import { loadSqlite, recordings } from '../fixtures/load.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { openRedisDatabases, type RedisDatabases } from '../support/redis.ts'
import { workersOf } from '../support/workers.ts'

const root = join(import.meta.dir, '..', '..', '..', '..')
const directory = await makeTemporaryDirectory()
const executable = join(directory.path, 'ringwire')
const bare = { PATH: '', HOME: '' }

/** The service as the executable, with an empty PATH. */
class Executable extends Service {
  protected override readonly command: readonly string[]

  constructor(env: Record<string, string> = {}, before: readonly string[] = []) {
    super({ ...bare, ...env })
    this.command = [...before, executable]
  }
}

const running: { dispose(): Promise<void> }[] = []

async function start(env: Record<string, string> = {}, before: readonly string[] = []): Promise<Service> {
  const service = new Executable(env, before)
  running.push(service)
  return service.start()
}

const run = (args: readonly string[], env: Record<string, string> = {}): RunningProcess =>
  startProcess([executable, ...args], { ...bare, ...env })

beforeAll(async () => {
  const build = startProcess([process.execPath, join(root, 'scripts', 'build.ts'), executable])
  expect(await build.exited, build.output).toBe(0)
}, 240_000)
afterAll(async () => {
  await Promise.all(running.map((service) => service.dispose()))
  await directory.remove()
})

/** A call from the invite to the history. */
async function call(service: Service): Promise<void> {
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  pair.caller.send('webrtc.ice_candidate', candidate(callUuid, 1))
  expect((await pair.callee.next('webrtc.ice_candidate')).data.candidate.candidate).toBe('candidate:1')
  pair.callee.send('call.end', { call_uuid: callUuid })
  await pair.caller.next('call.ended')
  const { data } = await service.history(await service.token({ user_id: pair.calleeId, role: 'agent' }))
  expect(data).toMatchObject([{ call_uuid: callUuid, status: 'ended' }])
}

describe('the executable', () => {
  test('one file is all that it needs: a call, a backup, the end', async () => {
    expect(readdirSync(directory.path)).toEqual(['ringwire'])
    const service = await start()
    await call(service)
    const copy = join(service.dataDir, 'copy')
    const backup = run(['backup', copy], { RINGWIRE_DATA_DIR: service.dataDir })
    expect(await backup.exited, backup.output).toBe(0)
    expect(readdirSync(copy)).toContain('ringwire.db')
    expect(await service.terminate()).toBe(0)
  })

  test("it sets the runtime's settings, where nobody has, and stays the process that was started", async () => {
    for (const given of [{}, { MIMALLOC_PURGE_DELAY: '0' }]) {
      const service = await start(given)
      // The pid is that of the process that the test started.
      const environment = readFileSync(`/proc/${service.pid}/environ`, 'utf8').split('\0')
      const set = { ...runtimeSettings, ...given }
      for (const [name, value] of Object.entries(set)) expect(environment).toContain(`${name}=${value}`)
      expect(await service.terminate()).toBe(0)
    }
  })

  test('it brings the demo', async () => {
    const service = await start({ RINGWIRE_DEMO: '1' })
    const page = await fetch(`${service.url}/demo/`)
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
    const names = [...(await page.text()).matchAll(/(?:src|href)="([\w-]+\.(?:js|css|svg))"/g)].map(([, name]) => name)
    expect(names).toContain('main.js')
    for (const name of names) {
      const [built, source] = [await fetch(`${service.url}/demo/${name}`), makePageFile(name as PageFile)]
      expect(await built.text()).toBe(await source)
    }
  })

  test("it brings the operator's page", async () => {
    const service = await start({ RINGWIRE_ADMIN_PORT: '0', RINGWIRE_ADMIN_TOKEN: 'a-token-that-only-tests-know' })
    const url = await adminUrlOf(service)
    for (const name of Object.keys(operators.pageFiles) as operators.PageFile[])
      expect(await (await fetch(`${url}/admin/${name}`)).text()).toBe(await operators.makePageFile(name))
  })

  test('its version and its help', async () => {
    const [version, help] = [run(['--version']), run(['--help'])]
    expect(await Promise.all([version.exited, help.exited])).toEqual([0, 0])
    expect(version.out).toMatch(/^ringwire \d+\.\d+\.\d+ \(Bun \d+\.\d+\.\d+\)\n$/)
    expect(help.out).toStartWith('Usage: ringwire ')
  })

  test('as process 1, as in a container, it ends on SIGTERM', async () => {
    const service = await start({}, ['/usr/bin/unshare', '--fork', '--pid', '--kill-child', '--mount-proc'])
    await call(service)
    const [child] = (await Bun.file(`/proc/${service.pid}/task/${service.pid}/children`).text()).trim().split(' ')
    process.kill(Number(child), 'SIGTERM')
    expect(await service.ended).toBe(0)
  })

  for (const version of recordings.sqlite) {
    test(`a database of ${version} is brought up to date`, async () => {
      const service = new Executable()
      running.push(service)
      loadSqlite(service.dataDir, version)
      await service.start()
      await call(service)
    })
  }

  test('a port in use, and a data directory that cannot be made, are said in a line', async () => {
    const service = await start()
    const { port } = new URL(service.url)
    const second = run(['serve'], { RINGWIRE_PORT: port, RINGWIRE_DATA_DIR: join(directory.path, 'second') })
    expect(await second.exited).not.toBe(0)
    expect(second.err).toContain(`Ringwire did not start on 127.0.0.1:${port}`)
    const nowhere = run(['serve'], { RINGWIRE_PORT: '0', RINGWIRE_DATA_DIR: '/dev/null/data' })
    expect(await nowhere.exited).not.toBe(0)
    expect(nowhere.err).toContain('/dev/null/data')
    for (const { err } of [second, nowhere]) expect(err).not.toContain(root)
  })
})

describe('a data directory that the executable may not use', () => {
  const nobody = 65_534
  const asNobody =
    process.getuid?.() === 0
      ? ['/usr/bin/setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups', '--']
      : []

  /** Starts it as an account without rights; it has to end by itself, with one line for people. */
  async function refusal(dataDir: string): Promise<string> {
    const env = { ...bare, RINGWIRE_PORT: '0', RINGWIRE_DATA_DIR: dataDir }
    const service = startProcess([...asNobody, executable, 'serve'], env)
    running.push({ dispose: () => service.stop('SIGKILL') })
    expect(await service.exited).toBe(1)
    expect(service.out).toBe('')
    return service.err.split('\n').find((line) => /^(Ringwire did not start|The data directory) /.test(line)) ?? ''
  }

  /** A directory in which the service has run; all of it belongs to the account without rights. */
  async function used(name: string): Promise<string> {
    const dataDir = join(directory.path, name)
    const service = startProcess([executable, 'serve'], { ...bare, RINGWIRE_PORT: '0', RINGWIRE_DATA_DIR: dataDir })
    await service.waitFor(/Ringwire listens on/)
    await service.stop()
    if (asNobody.length > 0) {
      for (const path of [dataDir, ...readdirSync(dataDir).map((file) => join(dataDir, file))]) {
        chownSync(path, nobody, nobody)
      }
    }
    return dataDir
  }

  beforeAll(() => chmodSync(directory.path, 0o755))

  test('an empty one that cannot be written to', async () => {
    const dataDir = join(directory.path, 'empty')
    mkdirSync(dataDir, { mode: 0o555 })
    expect(await refusal(dataDir)).toContain(`this account may not write to ${dataDir}`)
  })

  test('a database that may only be read, or not even that', async () => {
    const dataDir = await used('read-only')
    for (const mode of [0o444, 0o000]) {
      chmodSync(join(dataDir, 'ringwire.db'), mode)
      expect(await refusal(dataDir)).toContain(`EACCES: permission denied, access '${dataDir}/ringwire.db'`)
    }
  })

  test('a directory that became one to be read, with everything in it', async () => {
    const dataDir = await used('closed')
    chmodSync(dataDir, 0o555)
    expect(await refusal(dataDir)).toContain(`this account may not write to ${dataDir}`)
  })

  test('a database that is none, and one of a newer version', async () => {
    const dataDir = await used('broken')
    const file = join(dataDir, 'ringwire.db')
    const db = new Database(file)
    db.run(
      "INSERT INTO schema_migrations (number, name, checksum, applied_at) VALUES (9999, '9999_breaking_tomorrow.sql', '', 0)",
    )
    db.close()
    expect(await refusal(dataDir)).toContain('9999_breaking_tomorrow.sql')
    writeFileSync(file, 'this is no database, and was one once\n'.repeat(100))
    expect(await refusal(dataDir)).toContain(`${file}: file is not a database`)
  })
})

describe('the executable on PostgreSQL and Redis', () => {
  let postgres: Databases
  let redis: RedisDatabases
  beforeAll(async () => {
    ;[postgres, redis] = await Promise.all([openDatabases(), openRedisDatabases()])
  })
  afterAll(async () => {
    await Promise.all([postgres.dispose(), redis.stop()])
  })

  test('several workers are this file again', async () => {
    const service = await start({
      DATABASE_URL: await postgres.database(),
      REDIS_URL: await redis.database(),
      RINGWIRE_JWT_SECRETS: `test:${'a-secret-of-more-than-32-characters'.repeat(2)}`,
      RINGWIRE_NODE_ID: 'm',
      RINGWIRE_WORKERS: '2',
      RINGWIRE_ADMIN_PORT: '0',
    })
    await until('two workers', () => workersOf(service.pid).size === 2)
    expect((await metricsOf(service)).get('ringwire_workers{state="answering"}')).toBe(2)
    await call(service)
    expect(await service.terminate()).toBe(0)
  })
})
