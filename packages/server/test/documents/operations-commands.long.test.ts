import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@ringwire/testkit/client'
import { blocks, projectRoot, readDocument } from '@ringwire/testkit/documents'
import { until } from '@ringwire/testkit/patience'
import { freePort } from '@ringwire/testkit/ports'
import { makeTemporaryDirectory, type RunningProcess } from '@ringwire/testkit/process'
import { startTurnServer, type TurnServer } from '@ringwire/testkit/turn'
import { migrate, migrationFiles } from '../../src/stores/postgres/migrations.ts'
import { readMigrations } from '../../src/stores/sql/migration-files.ts'
import { createTraceIds } from '../../src/traces/ids.ts'
import { Postgres } from '../support/postgres.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { openTerminals } from './terminals.ts'

/* The blocks of docs/operations.md, as they stand there and in their order, from the reverse proxy to the end. What stands
   before is run by operations.long.test.ts. */

const page = 'docs/operations.md'
const [first, rest] = [blocks(page, '', '## Behind a reverse proxy'), blocks(page, '## Behind a reverse proxy')]

/** What no test can run, why, and what looks at it instead. */
const standIns: readonly [program: string, why: string, text: string][] = [
  ['npm', 'operations.long.test.ts builds the executable', '[ "$*" = "run build" ] && echo >dist/ringwire'],
  ['sudo', 'no test asks for a password: the commands behind it are run', 'exec "$@"'],
  ['systemctl', 'no systemd runs: systemd.test.ts holds the unit against it', 'echo "$@" >>"$SYSTEMCTL"'],
]

const { path, remove } = await makeTemporaryDirectory()
const work = join(path, 'clone')
const stage = {} as { postgres: Postgres; redis: RedisServer; turn: TurnServer }
const secret = 'a-secret-of-more-than-32-characters'
const adminToken = 'a-token-that-only-tests-know'
/** What stands in the document for something of one's own, and what it is here. */
const placeholders: [given: string, here: string][] = []
/** A service with the data directory of the clone, and the environment of the commands that run with it. */
let env: Record<string, string> = {}
/** Workers on PostgreSQL and Redis, on their own ports. */
let shared: Record<string, string> = {}

beforeAll(async () => {
  for (const made of ['clone/dist', 'bin', 'etc', 'opt', 'units', 'backups'])
    mkdirSync(join(path, made), { recursive: true })
  for (const name of ['node_modules', 'package.json', 'packages', 'deploy'])
    symlinkSync(join(projectRoot, name), join(work, name))
  for (const [name, , text] of standIns) {
    writeFileSync(join(path, 'bin', name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(path, 'bin', name), 0o755)
  }
  const [postgres, redis, turn] = await Promise.all([Postgres.start(), startRedis(), startTurnServer()])
  Object.assign(stage, { postgres, redis, turn })
  const [port, admin, sharedPort, sharedAdmin] = await Promise.all([0, 0, 0, 0].map(() => freePort()))
  const common = {
    PATH: `${join(path, 'bin')}:${process.env.PATH}`,
    ...{ npm_config_offline: 'true', npm_config_update_notifier: 'false', npm_config_cache: join(path, 'npm') },
    ...{ SYSTEMCTL: join(path, 'systemctl'), RINGWIRE_ADMIN_TOKEN: adminToken },
  }
  env = {
    ...{ ...common, RINGWIRE_PORT: String(port), RINGWIRE_ADMIN_PORT: String(admin) },
    RINGWIRE_BOOTSTRAP_KEYS: `shop-backend:${secret}:shop;shop-other:${secret}:shop`,
  }
  shared = { ...common, RINGWIRE_PORT: String(sharedPort), RINGWIRE_ADMIN_PORT: String(sharedAdmin) }
  placeholders.push(
    ['@db.example.com/calls?sslmode=verify-full', `@127.0.0.1:${postgres.port}/calls`],
    ['DATABASE_URL=…', `DATABASE_URL=${urlOf('ringwire_service')}`],
    ['REDIS_URL=…', `REDIS_URL=${redis.url}`],
    ['RINGWIRE_JWT_SECRETS=…', `RINGWIRE_JWT_SECRETS=k1:${'A'.repeat(43)}`],
    ['/etc/systemd/system/', `${path}/units/`],
    ['/etc/ringwire', `${path}/etc`],
    ['/opt/ringwire', `${path}/opt`],
    ['/backups/', `${path}/backups/`],
    [':9464/', `:${admin}/`],
    // Which node fails is that with Redis.
    [':8080/', `:${sharedPort}/`],
  )
}, 240_000)
afterAll(async () => {
  await stop()
  await Promise.all([stage.postgres?.dispose(), stage.redis?.stop(), stage.turn?.stop()])
  await remove()
})

const urlOf = (role: string) => `postgres://${role}@127.0.0.1:${stage.postgres.port}/calls`
const here = (text: string) => placeholders.reduce((done, [given, own]) => done.replaceAll(given, own), text)

const { type, stay, run, stop } = openTerminals(work, here, () => env)

/** The same command once more, without npm. */
const direct = (text: string) => text.replace('npx ringwire', 'node_modules/.bin/ringwire')

/** A service, as the last command of a block. */
async function serve(text: string, more?: Record<string, string>): Promise<RunningProcess> {
  const running = stay(text, more)
  await running.waitFor(/Ringwire listens on/)
  return running
}

/** As a psql does: one statement after the other. */
async function runSql(text: string, url: string): Promise<void> {
  for (const statement of text.split(';\n')) if (statement.trim() !== '') await stage.postgres.query(statement, url)
}

/** Their names, and where they are on the disk. */
const indexesOf = (url: string): Promise<{ name: string; file: number }[]> =>
  stage.postgres.query("SELECT relname AS name, relfilenode::int AS file FROM pg_class WHERE relkind = 'i'", url)

const own = (port = 'RINGWIRE_PORT') => `http://127.0.0.1:${env[port]}`

const issue = (keyId: string) =>
  fetch(`${own()}/v1/call/session-token`, {
    method: 'POST',
    headers: { 'X-SVC-Product-Key-ID': keyId, 'X-SVC-Product-Secret': secret },
    body: JSON.stringify({
      ...{ user_id: 'ann', role: 'customer', display_name: 'Ann', allowed_peer_role: 'agent' },
      ...{ context_type: 'order', context_id: 'order-1' },
    }),
  })
/** Ann's token of this key, and her socket with it. */
async function connect(keyId: string): Promise<{ token: string; client: Client }> {
  const { token } = (await (await issue(keyId)).json()) as { token: string }
  const client = new Client({ url: own(), token })
  await client.next('auth.ok')
  return { token, client }
}
const historyOf = (token: string) =>
  fetch(`${own()}/v1/calls/history`, { headers: { Authorization: `Bearer ${token}` } })

const asOperator = (asked: string, init: RequestInit = {}) =>
  fetch(`${own('RINGWIRE_ADMIN_PORT')}/admin/api/${asked}`, {
    ...init,
    headers: { Authorization: `Bearer ${adminToken}` },
  })
const productOf = async () =>
  (await (await asOperator('products/shop/product')).json()) as Readonly<Record<string, unknown>>

let service: RunningProcess
let ben: RunningProcess
let callUuid = ''
let readiness = ''

/** Each block by its beginning, and what the document says of it. */
const steps: readonly [begins: string, step: (text: string) => Promise<unknown>][] = [
  ['CREATE ROLE ringwire_owner', (text) => runSql(text, stage.postgres.url())],
  [
    "DATABASE_URL='postgres://ringwire_owner",
    async (text) => {
      // It makes the tables, of which there are none.
      await run(text)
      const sql = "SELECT count(*)::int AS n FROM pg_tables WHERE tableowner = 'ringwire_owner'"
      const [row] = await stage.postgres.query(sql, urlOf('ringwire_owner'))
      expect(row?.n).toBeGreaterThan(20)
    },
  ],
  [
    'REVOKE ALL ON DATABASE calls',
    async (text) => {
      await runSql(text, urlOf('ringwire_owner'))
      const changed = stage.postgres.query('CREATE TABLE more (x integer)', urlOf('ringwire_service'))
      expect(String(await changed.catch((error) => error))).toContain('permission denied')
    },
  ],
  [
    '-- Before 0020_timeline_collation.sql',
    async (text) => {
      const url = await stage.postgres.database()
      const [older = '', newer = ''] = text.split(/^(?=-- After)/m)
      const migrateTo = (last: number) =>
        migrate(
          url,
          1,
          readMigrations(migrationFiles).filter(({ number }) => number <= last),
        )
      /** The migrations take the indexes over, also where they rename them: no file is written anew. */
      const takesOver = async (statements: string, upgrade: () => Promise<unknown>) => {
        await runSql(statements, url)
        const built = (await indexesOf(url)).filter(({ name }) => statements.includes(`CONCURRENTLY ${name} `))
        expect(built).toHaveLength(statements.split(';').length - 1)
        await upgrade()
        const files = (await indexesOf(url)).map(({ file }) => file)
        expect(built.filter(({ file }) => !files.includes(file))).toEqual([])
      }
      await migrateTo(19)
      await takesOver(older, () => migrateTo(28))
      await takesOver(newer, () => run('node_modules/.bin/ringwire keys list', { DATABASE_URL: url }))
    },
  ],
  [
    'npx ringwire backup',
    async (text) => {
      // npm passes no signal on in every case: this one ends before the next one starts.
      service = await serve('node_modules/.bin/ringwire serve')
      const { token } = (await (await issue('shop-other')).json()) as { token: string }
      await run(text)
      const again = type(direct(text))
      expect([await again.exited, again.err]).toEqual([1, expect.stringContaining(`${path}/backups/2026-01-31`)])
      await service.stop()
      // A data directory, with the keys and what tokens are signed with.
      const copy = join(path, 'backups', '2026-01-31')
      const restored = await serve('node_modules/.bin/ringwire serve', { RINGWIRE_DATA_DIR: copy })
      expect((await historyOf(token)).status).toBe(200)
      await restored.stop()
    },
  ],
  [
    'umask 077',
    async (text) => {
      service = await serve(text, { RINGWIRE_TURN_URLS: stage.turn.url })
      const file = join(path, 'etc', 'turn-secret')
      expect(statSync(file).mode & 0o077).toBe(0)
      await stage.turn.restart([readFileSync(file, 'utf8').trim()])
    },
  ],
  [
    'npx ringwire keys disable',
    async (text) => {
      const { token, client } = await connect('shop-backend')
      await run(text)
      expect((await client.closed).code).toBe(4403)
      expect([(await issue('shop-backend')).status, (await historyOf(token)).status]).toEqual([401, 401])
      expect((await issue('shop-other')).status).toBe(200)
    },
  ],
  [
    'npx ringwire products set shop --media relay',
    async (text) => {
      await run(text)
      await until('tokens say relay', async () => (await (await issue('shop-other')).text()).includes('"relay"'))
      await run(direct(text).replace('relay', 'all'))
      await until('tokens do not', async () => !(await (await issue('shop-other')).text()).includes('"relay"'))
    },
  ],
  [
    'npx ringwire products set shop --presence peers',
    async (text) => {
      await run(text)
      expect(await productOf()).toMatchObject({ presence: 'peers', media: 'all' })
    },
  ],
  [
    'npx ringwire participant erase',
    async (text) => {
      const { token, client } = await connect('shop-other')
      // Without a terminal the command cannot ask a person.
      const asks = type(direct(text).replace('--yes', ''))
      expect([await asks.exited, asks.err]).toEqual([2, expect.stringContaining('--yes')])
      expect((await historyOf(token)).status).toBe(200)
      const key = { RINGWIRE_KEY_ID: 'shop-other', RINGWIRE_KEY_SECRET: secret }
      expect(await run(text, key)).toStartWith('customer/ann is erased')
      await client.closed
      expect((await historyOf(token)).status).toBe(401)
    },
  ],
  [
    'npx ringwire jwt-key',
    async (text) => {
      const file = join(path, 'etc', 'k2.pem')
      const entry = (await run(text)).trim()
      expect(entry).toMatch(new RegExp(`^k[0-9a-f]{8}:file:${file}$`))
      expect(statSync(file).mode & 0o077).toBe(0)
      await run('node_modules/.bin/ringwire config check', { RINGWIRE_JWT_SECRETS: `k1:${'A'.repeat(43)},${entry}` })
    },
  ],
  [
    'npx ringwire turn check',
    async (text) => {
      const known = readFileSync(join(path, 'etc', 'turn-secret'), 'utf8').trim()
      const turn = { RINGWIRE_TURN_URLS: stage.turn.url, RINGWIRE_TURN_SECRET: known }
      expect(await run(text, turn)).toContain('good')
      const both = type(direct(text), { ...turn, RINGWIRE_TURN_SECRET: `${known},one-that-no-server-knows` })
      expect([await both.exited, both.err]).toEqual([1, expect.stringContaining('1 of 2 failed')])
      expect(both.out).toMatch(/first secret +good[\s\S]*second secret +(?!good)\S/)
    },
  ],
  [
    'npx ringwire phone --product shop --user ann',
    async (text) => expect(await run(`echo quit | ${text}`)).toContain('auth.ok'),
  ],
  [
    'npx ringwire phone --product shop --user ben',
    async (text) => {
      ben = type(`printf 'wait call.ringing\\naccept\\nwait call.ended\\nquit\\n' | ${text}`)
      await ben.waitFor(/auth\.ok/)
    },
  ],
  [
    "printf 'invite ben",
    async (text) => {
      const out = await run(text)
      expect(await ben.exited).toBe(0)
      callUuid = /"call_uuid":\s*"([^"]+)"/.exec(out)?.[1] ?? ''
      expect([out, callUuid]).toEqual([
        expect.stringContaining('call.accepted'),
        expect.stringMatching(/^[0-9a-f-]{36}$/),
      ])
    },
  ],
  [
    'npm run build',
    async (text) => {
      await run(text)
      const unit = readFileSync(join(path, 'units', 'ringwire.service'), 'utf8')
      const [, started = ''] = /^ExecStart=(\S+) serve$/m.exec(unit) ?? []
      expect(statSync(here(started)).mode & 0o777).toBe(0o755)
      const [, settings = ''] = /^EnvironmentFile=-(\S+)\/environment$/m.exec(unit) ?? []
      expect(existsSync(here(settings))).toBe(true)
      expect(readFileSync(join(path, 'systemctl'), 'utf8')).toBe('daemon-reload\nenable --now ringwire\n')
    },
  ],
  [
    'DATABASE_URL=… REDIS_URL=…',
    async (text) => {
      // The role of the service is enough.
      await serve(text, shared)
      expect((await fetch(`http://127.0.0.1:${shared.RINGWIRE_PORT}/readyz`)).status).toBe(200)
    },
  ],
  [
    "printf '%s\\0%s\\0%s' shop customer ann",
    async (text) => {
      // The line of the call above is found by what the command prints.
      const hash = (await run(text)).trim()
      const lines = service.err.split('\n').filter((line) => line.includes(hash))
      expect(lines.some((line) => line.includes('"call ended"') && line.includes(callUuid))).toBe(true)
    },
  ],
  [
    'curl -s -H "Authorization',
    async (text) => {
      expect(JSON.parse(await run(text))).toMatchObject({ success: true, troubles: [] })
      // A change needs one header more.
      expect((await asOperator('keys', { method: 'POST', body: '{"products":["shop"]}' })).status).toBe(403)
    },
  ],
  [
    'npx ringwire audit',
    async (text) => {
      const said = await run(text)
      for (const action of ['participant.erase', 'product.change']) expect(said).toContain(action)
      expect(said).not.toContain('key.')
      expect(await run(direct(text).replace(/ --product \w+/, ''))).toContain('key.disable')
    },
  ],
  [
    "printf 'ringwire trace",
    async (text) => {
      const { traceId } = createTraceIds(1).of({ product: 'shop', callUuid })
      expect((await run(text.replace('0a1b2c3d-…', callUuid))).trim()).toBe(traceId)
    },
  ],
  [
    'curl -s http://127.0.0.1:8080/readyz',
    async (text) => {
      await stage.redis.kill()
      await until('the node says so', async () => {
        readiness = (await run(text)).trim()
        return readiness.includes('"ok":false')
      })
    },
  ],
  ['{"ok":false', async (text) => expect(readiness).toBe(text.trim())],
]

test('every block of the page is here, in its order, or in operations.long.test.ts', () => {
  const fences = readDocument(page).match(/^[ >]*(?:```|~~~)/gm) ?? []
  expect(fences).toHaveLength(2 * (first.length + rest.length))
  expect([...new Set(first.map(({ language }) => language))]).toEqual(['sh'])
  const starts = rest.map(({ text }, i) => {
    const begins = steps[i]?.[0]
    return begins !== undefined && text.startsWith(begins) ? begins : text
  })
  expect(starts).toEqual(steps.map(([begins]) => begins))
})

for (const [i, [begins, step]] of steps.entries())
  test(`${begins} …`, async () => void (await step(rest[i]?.text ?? '')), 120_000)
