import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '@ringwire/testkit/patience'
import { SQL } from 'bun'
import { callLife } from '../../src/call/decide.fixture.ts'
import { liveIn } from '../../src/ports/call-store.fixture.ts'
import { participantHash } from '../../src/ports/session-id.ts'
import { hashSecret } from '../../src/products/product-auth.ts'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { keyColumns, leftColumns, plainTables, secretColumns } from '../../src/stores/sql/content.ts'
import { callColumns, eventColumns } from '../../src/stores/sql/rows.ts'
import { settingsColumns } from '../../src/stores/sql/settings-rows.ts'
import { endpointColumns } from '../../src/stores/sql/subscribers.ts'
import { databaseFile } from '../../src/stores/sqlite/data-dir.ts'
import { openSqlite } from '../../src/stores/sqlite/open.ts'
import { createBox, type Running } from '../cli/command.ts'
import { moveFor } from './move.ts'
import { callsOf, contentOf, device, fill, fillGroupCalls, liveOf } from './stores.ts'

const move = moveFor()
const { migrate, countCalls } = move

/** What is in the database, once its tables are made. */
async function withPostgres<T>(run: (stores: Awaited<ReturnType<typeof openPostgres>>) => Promise<T>): Promise<T> {
  const stores = await openPostgres({ url: move.url, readers: 1, writers: 1 })
  try {
    return await run(stores)
  } finally {
    await stores.close()
  }
}

async function bothSides() {
  const refs = await callsOf(move.box.dataDir)
  const sqlite = await openSqlite({ dataDir: move.box.dataDir, synchronous: 'NORMAL', exclusive: false })
  const there = await contentOf(sqlite, refs)
  await sqlite.close()
  const here = await withPostgres((stores) => contentOf(stores, refs))
  return { refs, there, here }
}

function countIn(rows: string): number {
  const db = new Database(join(move.box.dataDir, databaseFile))
  try {
    return db.query<{ count: number }, []>(`SELECT count(*) AS count FROM ${rows}`).get()?.count ?? -1
  } finally {
    db.close()
  }
}

describe('ringwire migrate', () => {
  test('copies every call with its events, keys with rotated secrets, settings; the source stays', async () => {
    await fill(move.box.dataDir, 200)
    expect(countIn('webhook_steps')).toBeGreaterThan(0)
    const before = await callsOf(move.box.dataDir)
    const { code, out } = await migrate('--json')
    expect(code).toBe(0)
    const { refs, there, here } = await bothSides()
    expect(here).toEqual(there)
    expect(refs).toEqual(before)
    expect(refs).toHaveLength(200)
    expect(here.known.every(({ call, steps }) => steps.length === call?.version)).toBe(true)
    const events = here.known.flatMap(({ steps }) => steps).length
    const figures = { calls: 200, live_calls: liveOf(refs), events, keys: 3, settings: 2 }
    expect(JSON.parse(out)).toEqual({ copied: true, ...figures, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) })
    await withPostgres(async ({ calls, products, webhooks, devices }) => {
      expect(await devices.of(device.participant, Date.now())).toEqual([device])
      expect(await products.revocations(0)).toEqual([
        { participant: participantHash(device.participant), before: 1_700_000_000_000, changedAt: 6 },
      ])
      const endpoints = await webhooks.refresh()
      expect(
        endpoints.map(({ product, enabled, events, oldSecretUntil }) => [product, enabled, events, oldSecretUntil]),
      ).toEqual([
        ['clinic', true, null, 1_700_000_000_000],
        ['shop', false, ['call.missed'], null],
      ])
      const endpointId = endpoints[0]?.id ?? ''
      const left = await webhooks.deliveries({ endpointId, status: undefined, limit: 10_000, before: undefined })
      expect(new Set(left.map(({ status }) => status))).toEqual(new Set(['failed', 'pending']))
      // Also what commits had written for endpoints, and nobody had looked at yet.
      expect(countIn('webhook_steps')).toBe(0)
      expect(left).toHaveLength(countIn("webhook_deliveries WHERE status <> 'delivered'"))
      expect(left.filter(({ attempts }) => attempts === 1).length).toBe(2)
      const { claimed: due } = await webhooks.claim(new Map([[endpointId, 10_000]]))
      expect(due.length).toBeGreaterThan(0)
      expect((await liveIn(calls)).length).toBe(liveOf(refs))
      const key = await products.findKey('k1', Date.now())
      expect(key?.secretHashes.map((hash) => [...hash])).toEqual([[...hashSecret('two')], [...hashSecret('one')]])
      expect((await products.findKey('k1', Date.now() + 3_600_001))?.secretHashes).toHaveLength(1)
    })
  })

  test('run again: all is there already; the second run copies nothing', async () => {
    await fill(move.box.dataDir, 30)
    const first = await migrate()
    expect(first.out).toStartWith('Copied: 30 calls (12 live), ')
    const again = await migrate()
    expect(again.code).toBe(0)
    expect(again.out).toStartWith('All of it was there already')
    expect(again.out.split('\n')[1]).toBe(first.out.split('\n')[1])
    expect(await countCalls()).toBe(30)
  })

  test('[GROUP1] [SRV2] who was rung in calls to groups is known as before, and whoever declined or left is erased', async () => {
    const members = Array.from({ length: 5 }, (_, n) => `member ${n} ${crypto.randomUUID()}`)
    await fillGroupCalls(move.box.dataDir, members)
    expect((await migrate()).code).toBe(0)
    const rowsSql = (rang: string, collation = '') => `
      SELECT user_id, call_uuid, ${rang} AS rang FROM call_members ORDER BY call_uuid${collation}, user_id${collation}`
    const db = new Database(join(move.box.dataDir, databaseFile))
    const there = db.query<object, []>(rowsSql('rang')).all()
    db.close()
    expect(there.length).toBeGreaterThanOrEqual(2 + 5 + 3)
    expect([...(await move.server.query(rowsSql('rang::int', ' COLLATE "C"'), move.url))]).toEqual(there)
    const namedIn = async (userId: string) =>
      (
        await move.server.query(
          `SELECT c.status FROM calls AS c JOIN call_events AS e ON e.call_id = c.id
          WHERE c.ended_at IS NOT NULL AND (e.by_user_id = '${userId}' OR strpos(e.notices, '${userId}') > 0)`,
          move.url,
        )
      ).length
    for (const userId of members.slice(1, 3)) {
      expect(await namedIn(userId)).toBeGreaterThan(0)
      const participant = { product: 'clinic', role: 'doctor', userId }
      expect(await withPostgres(async ({ calls }) => calls.erase(participant))).toBe(2)
      expect(await namedIn(userId)).toBe(0)
    }
  })

  test('a new database directory with keys alone', async () => {
    expect((await move.box.run('keys create --product shop --key-id only')).code).toBe(0)
    expect(await migrate()).toMatchObject({
      code: 0,
      out: expect.stringContaining('0 calls (0 live), 0 events, 1 keys'),
    })
    expect((await move.box.run('keys list', { env: { DATABASE_URL: move.url } })).out).toContain('only')
  })

  test('every column of the tables is copied', async () => {
    await (await openSqlite({ dataDir: move.box.dataDir, synchronous: 'NORMAL', exclusive: false })).close()
    await withPostgres(async () => {})
    const db = new Database(join(move.box.dataDir, databaseFile))
    const sqlite = (text: string) => db.query<{ name: string }, []>(text).all()
    const postgres = (text: string) => move.server.query(text, move.url)
    const names = (rows: { name: string }[]) => new Set(rows.map(({ name }) => name))
    const tables = {
      calls: ['id', ...callColumns],
      call_events: ['call_id', ...eventColumns],
      product_keys: keyColumns,
      product_key_secrets: secretColumns,
      product_settings: settingsColumns,
      webhook_endpoints: endpointColumns,
      webhook_deliveries: [...leftColumns, 'due_at'],
      ...plainTables,
    }
    // The first start repeats what nobody has heard [WS4], and events that were not spread become deliveries when they are
    // copied.
    const left = ['schema_migrations', 'outbox', 'webhook_revision', 'webhook_removals']
    // The counts of an erasure are for the request that is repeated: after the move the erasure begins anew [SRV2]. Triggers
    // keep `call_members` as the calls come [GROUP1].
    const all = new Set([...Object.keys(tables), ...left, 'erasures', 'call_members'])
    const inSqlite = new Set([...all, 'webhook_steps'])
    expect(names(sqlite("SELECT name FROM sqlite_schema WHERE type = 'table'"))).toEqual(inSqlite)
    const ofPostgres = "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'"
    // Who serves, and whether the database takes writes, is of now: nothing of it was before.
    expect(names(await postgres(ofPostgres))).toEqual(new Set([...all, 'nodes', 'outages', 'readiness', 'deployment']))
    for (const [table, columns] of Object.entries(tables)) {
      // Only SQLite numbers the events, whose order is that of the versions, and names entries by the numbers of calls.
      const number = table === 'call_timeline' ? 'call_id' : 'seq'
      // Which endpoints changed last is counted by each database for itself.
      const ofSqlite = `SELECT name FROM pragma_table_info('${table}') WHERE name NOT IN ('${number}', 'revision')`
      expect(names(sqlite(ofSqlite))).toEqual(new Set(columns))
      const of = `SELECT column_name AS name FROM information_schema.columns WHERE table_name = '${table}'`
      // The node that is at a delivery belongs to the moment, too; a single process has it in memory.
      expect(names(await postgres(of)).difference(new Set(['claimed_until', 'revision']))).toEqual(new Set(columns))
    }
    db.close()
  })
})

describe('is refused, and changes nothing,', () => {
  /** A try that takes longer than 1 s counts as none. */
  const staysReady = ({ url }: Running) => until('it is ready', async () => (await fetch(`${url}/readyz`)).ok)

  test('where the service runs on the data directory', async () => {
    const service = await move.box.serve()
    const refused = await migrate()
    expect([refused.code, refused.out]).toEqual([1, ''])
    expect(refused.err).toMatch(
      /^Another ringwire process \(pid \d+\) uses .*\/\. Stop it, or set RINGWIRE_DATA_DIR to another folder and RINGWIRE_PORT to another port\.\nNothing was copied/,
    )
    await staysReady(service)
  })

  test('where a service runs on the database', async () => {
    await fill(move.box.dataDir, 3)
    const other = createBox()
    try {
      const service = await other.serve({ env: { DATABASE_URL: move.url } })
      expect(await migrate()).toMatchObject({ code: 1, err: expect.stringContaining('stop it first') })
      await staysReady(service)
    } finally {
      await other.clean()
    }
    expect(await countCalls()).toBe(0)
    expect((await migrate()).code).toBe(0)
  })

  test('not where the connections of one that was stopped are just ending', async () => {
    await fill(move.box.dataDir, 3)
    const ending = new SQL({ url: move.url, max: 1, connection: { application_name: 'ringwire' } })
    await ending.connect()
    const migrating = migrate()
    // It has looked, and waits.
    const waits = "SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'ringwire migrate'"
    await until('it is connected', async () => (await move.server.query(waits, move.url))[0].n > 0)
    // Longer than a connection is waited for that asks for something.
    await Bun.sleep(2_200)
    await ending.close()
    expect(await migrating).toMatchObject({ code: 0, err: expect.stringContaining('DATABASE_URL') })
    expect(await countCalls()).toBe(3)
  }, 240_000)

  test('without a database, and without anything to copy', async () => {
    await fill(move.box.dataDir, 1)
    expect(await move.box.run('migrate')).toMatchObject({
      code: 1,
      err: expect.stringContaining('DATABASE_URL is not set'),
    })
    const empty = createBox()
    try {
      const { code, err } = await empty.run('migrate', { env: { DATABASE_URL: move.url } })
      expect([code, err]).toEqual([1, expect.stringContaining('nothing was stored there yet')])
      expect(existsSync(join(empty.dataDir, 'ringwire.db'))).toBe(false)
    } finally {
      await empty.clean()
    }
    const nowhere = 'postgres://user:the-password@127.0.0.1:1/db'
    const unreachable = await move.box.run('migrate', { env: { DATABASE_URL: nowhere } })
    expect(unreachable.code).toBe(1)
    expect(unreachable.err).toContain('Nothing was copied')
    expect(unreachable.err).not.toContain('the-password')
  })

  test('where the database holds other calls, or these have gone on', async () => {
    await fill(move.box.dataDir, 10)
    await withPostgres(async ({ calls }) => {
      for (const step of callLife()) await step(calls)
    })
    expect(await migrate()).toMatchObject({ code: 1, err: expect.stringContaining('holds calls that are not those') })
    expect(await countCalls()).toBe(1)
    await move.toAnother()
    expect((await migrate()).code).toBe(0)
    await move.server.query('UPDATE calls SET version = version WHERE id = 1', move.url)
    expect((await migrate()).code).toBe(0)
    await move.server.query("UPDATE call_events SET notices = '[]' WHERE call_id = 3 AND version = 1", move.url)
    expect((await migrate()).code).toBe(1)
    expect(await countCalls()).toBe(10)
  })

  test('where it holds other keys or settings of the same name; those of every start are replaced', async () => {
    await fill(move.box.dataDir, 3)
    const put = (keyId: string, origin: 'cli' | 'bootstrap') =>
      withPostgres(async ({ products }) => {
        await products.putKey({ keyId, secretHash: hashSecret('other'), products: ['x'], origin }, 9)
      })
    await put('k3', 'bootstrap')
    await put('mine', 'cli')
    await put('k1', 'cli')
    expect(await migrate()).toMatchObject({ code: 1, err: 'The database holds other keys of the same name: k1.\n' })
    expect(await countCalls()).toBe(0)
    await move.server.query("UPDATE product_keys SET origin = 'demo' WHERE key_id = 'k1'", move.url)
    await move.server.query("INSERT INTO product_settings VALUES ('shop', 'reject', false, NULL)", move.url)
    expect(await migrate()).toMatchObject({
      code: 1,
      err: expect.stringContaining('settings of the same product: shop'),
    })
    await move.server.query("UPDATE product_settings SET busy = 'allow'", move.url)
    expect((await migrate()).code).toBe(0)
    const { there, here } = await bothSides()
    expect(here.keys.filter(({ keyId }) => keyId !== 'mine')).toEqual(there.keys)
    expect(here.keys.map(({ keyId }) => keyId)).toContain('mine')
    expect(here.settings).toEqual(there.settings)
  })
})

describe('is refused with two lines', () => {
  /** What is wrong, and that nothing happened. */
  async function expectRefused(problem: string): Promise<void> {
    const { code, out, err } = await migrate()
    expect([code, out]).toEqual([1, ''])
    expect(err).toEndWith('\nNothing was copied. It can be run again.\n')
    expect(err.trim().split('\n')).toEqual([expect.stringContaining(problem), expect.any(String)])
  }

  test('where the encoding of the database is another', async () => {
    await fill(move.box.dataDir, 1)
    const name = new URL(move.url).pathname.slice(1)
    await move.server.query(`DROP DATABASE ${name}`)
    await move.server.query(`CREATE DATABASE ${name} ENCODING 'LATIN1' TEMPLATE template0`)
    await expectRefused('The encoding of the database is LATIN1; Ringwire needs UTF8.')
  })

  test('where either schema is of a newer version, or of another one', async () => {
    await fill(move.box.dataDir, 1)
    await withPostgres(async () => {})
    const newer = "INSERT INTO schema_migrations VALUES (99, '0099_breaking_all.sql', 'x', 1)"
    await move.server.query(newer, move.url)
    await expectRefused('since 0099_breaking_all.sql it needs a newer version')
    await move.server.query("UPDATE schema_migrations SET checksum = 'x'", move.url)
    await move.server.query('DELETE FROM schema_migrations WHERE number = 99', move.url)
    await expectRefused('The database was made by another 0001_calls_and_products.sql')
    await move.toAnother()
    const db = new Database(join(move.box.dataDir, databaseFile))
    db.run(newer)
    db.close()
    await expectRefused('since 0099_breaking_all.sql it needs a newer version')
  })

  test('where the role has no right to what has to be written', async () => {
    await fill(move.box.dataDir, 1)
    await withPostgres(async () => {})
    await move.server.query('CREATE ROLE reader LOGIN')
    await move.server.query('GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader', move.url)
    const { code, err } = await move.box.run('migrate', {
      env: { DATABASE_URL: move.url.replace('//ringwire@', '//reader@') },
    })
    expect([code, err]).toEqual([
      1,
      'PostgreSQL: permission denied for table calls (42501)\nNothing was copied. It can be run again.\n',
    ])
  })

  test('where a file of the data directory is damaged; it is named, by every command', async () => {
    const path = join(move.box.dataDir, databaseFile)
    await fill(move.box.dataDir, 50)
    const whole = await Bun.file(path).bytes()
    // The pages of the tables; the schema on the first one is whole.
    await Bun.write(path, whole.slice().fill(0xff, 4096))
    await expectRefused(`${path}: database disk image is malformed`)
    await Bun.write(path, 'no database '.repeat(1000))
    await expectRefused(`${path}: file is not a database`)
    for (const command of ['serve', 'keys list']) {
      const { code, err } = await move.box.run(command)
      expect([code, err]).toEqual([1, expect.stringContaining(`${path}: file is not a database\n`)])
    }
  })
})

describe('a copy that is not the same', () => {
  const changes = {
    'a call': 'ON calls FOR EACH ROW WHEN (NEW.metadata IS NOT NULL) EXECUTE FUNCTION change(\'{"metadata": null}\')',
    'an event': 'ON call_events FOR EACH ROW WHEN (NEW.version = 4) EXECUTE FUNCTION change(\'{"at": 1}\')',
    'a key': 'ON product_keys FOR EACH ROW EXECUTE FUNCTION change(\'{"disabled": false}\')',
    'a setting': 'ON product_settings FOR EACH ROW EXECUTE FUNCTION change(\'{"busy": "allow"}\')',
  }
  for (const [what, trigger] of Object.entries(changes)) {
    test(`is found before it counts: ${what} that was changed on its way`, async () => {
      await fill(move.box.dataDir, 10)
      await withPostgres(async () => {})
      await move.server.query(
        `CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS
           $$ BEGIN NEW := json_populate_record(NEW, TG_ARGV[0]::json); RETURN NEW; END $$`,
        move.url,
      )
      await move.server.query(`CREATE TRIGGER change BEFORE INSERT ${trigger}`, move.url)
      const { code, err } = await migrate()
      expect([code, err]).toEqual([
        1,
        expect.stringMatching(/^The (copy is|keys or settings that were copied are) not what/),
      ])
      expect(await countCalls()).toBe(0)
      expect(await move.server.query('SELECT key_id FROM product_keys', move.url)).toHaveLength(0)
    })
  }
})

test('the key of a demo comes along, and a node without RINGWIRE_DEMO refuses it', async () => {
  const { box, url } = move
  const demo = await box.serve({ env: { RINGWIRE_DEMO: '1' } })
  demo.signal('SIGTERM')
  await demo.ended
  expect((await migrate()).code).toBe(0)
  const secret = readFileSync(join(box.dataDir, 'demo-secret'), 'utf8').trim()
  const headers = { 'Content-Type': 'application/json', 'X-SVC-Product-Key-ID': 'demo', 'X-SVC-Product-Secret': secret }
  const who = { user_id: 'ann', role: 'customer', allowed_peer_role: 'agent', display_name: 'Ann' }
  const body = JSON.stringify({ ...who, context_type: 'order', context_id: '1' })
  for (const [RINGWIRE_DEMO, status] of [
    ['0', 401],
    ['1', 200],
  ] as const) {
    const service = await box.serve({ env: { DATABASE_URL: url, RINGWIRE_DEMO } })
    const answer = await fetch(`${service.url}/v1/call/session-token`, { method: 'POST', headers, body })
    expect(answer.status).toBe(status)
    service.signal('SIGTERM')
    await service.ended
  }
})

describe('JWT secrets', () => {
  test('are printed where they are asked for, and nowhere else; tokens of before stay valid elsewhere', async () => {
    await move.box.run('keys create --product shop')
    const token = JSON.parse(
      (await move.box.run('token --product shop --user ann --role customer --peer-role agent --json')).out,
    ).token
    await fill(move.box.dataDir, 1)
    const kept = readFileSync(join(move.box.dataDir, 'jwt-secrets'), 'utf8').trim()
    const migrated = await migrate()
    expect(migrated.out + migrated.err).not.toContain(kept.split(':')[1] as string)
    expect(migrated.err).toContain(join(move.box.dataDir, 'jwt-secrets'))
    for (const env of [{}, { DATABASE_URL: move.url, REDIS_URL: 'redis://127.0.0.1:1' }]) {
      const printed = await move.box.run('migrate --print-jwt-secrets', { env })
      expect(printed).toEqual({ code: 0, out: `${kept}\n`, err: '' })
    }
    const other = createBox()
    try {
      const env = { DATABASE_URL: move.url, RINGWIRE_JWT_SECRETS: kept }
      expect((await other.run(`token verify ${token}`, { env })).code).toBe(0)
      expect((await other.run(`token verify ${token}`)).code).toBe(3)
      expect((await other.run('migrate --print-jwt-secrets', { env })).out).toBe(`${kept}\n`)
    } finally {
      await other.clean()
    }
  })

  test('where no token was issued there are none, and none are made', async () => {
    expect(await move.box.run('migrate --print-jwt-secrets')).toMatchObject({ code: 3, out: '' })
    expect(existsSync(join(move.box.dataDir, 'jwt-secrets'))).toBe(false)
  })
})
