import { Database } from 'bun:sqlite'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { connectPair, type Pair } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { created, ended, ringing, touched } from '../../src/ports/call-store.fixture.ts'
import { commitSql, encodeBatch, writeOf } from '../../src/stores/postgres/batch.ts'
import { migrate, migrationFiles } from '../../src/stores/postgres/migrations.ts'
import { type Migration, readMigrations } from '../../src/stores/sql/migration-files.ts'
import { openSqlite } from '../../src/stores/sqlite/open.ts'
import { type Box, createBox } from '../cli/command.ts'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { setProduct } from '../support/products.ts'
import { inviteOf, recordOf, request } from '../support/sessions.ts'

/** Builds of two versions on one database: what the next one adds must not stop this one. */
const known = readMigrations(migrationFiles)
const tables = ['calls', 'call_events', 'product_keys', 'product_key_secrets', 'product_settings', 'schema_migrations']
const later = (offset: number, name: string, sql: string): Migration => {
  const number = known.length + offset
  return { number, name: `${String(number).padStart(4, '0')}_${name}.sql`, sql }
}

/** A column more in every table, and the function that writes calls knows it. */
const commitName = /FROM (\w+)\(/.exec(commitSql)?.[1] ?? ''
const body = new RegExp(`CREATE FUNCTION ${commitName}\\([\\s\\S]*?\\n\\$\\$;`).exec(
  known.map(({ name }) => readFileSync(new URL(name, migrationFiles), 'utf8')).join('\n'),
)?.[0]
const next = later(
  1,
  'notes',
  `${tables.map((table) => `ALTER TABLE ${table} ADD COLUMN note text;`).join('\n')}
   CREATE INDEX calls_by_note ON calls (note);
   ${body
     ?.replace('CREATE FUNCTION', 'CREATE OR REPLACE FUNCTION')
     .replaceAll('end_reason text', 'end_reason text, note text')
     .replaceAll(/end_reason(?=\n)/g, 'end_reason, note')
     .replaceAll(/(\w)\.end_reason, note/g, '$1.end_reason, $1.note')}`,
)
const breaking = later(2, 'breaking_names', 'ALTER TABLE calls RENAME COLUMN note TO remark;')

let server: Databases
let url: string
let service: Service
beforeAll(async () => {
  server = await openDatabases()
})
beforeEach(async () => {
  url = await server.database()
  service = await new Service({ DATABASE_URL: url, RINGWIRE_WS_RATE: 'off' }).start()
})
afterEach(() => service.dispose())
afterAll(() => server.dispose())

/** Calls from the invite to the end, one after another, until told to stop; answers how many. */
async function callOn(pair: Pair & { calleeId: string }, goesOn: () => boolean): Promise<number> {
  const { caller, callee, calleeId } = pair
  let calls = 0
  for (; goesOn(); calls++) {
    const data = { call_uuid: crypto.randomUUID() }
    const isIt = (message: { data: { call_uuid: string } }) => message.data.call_uuid === data.call_uuid
    for (const [client, event, body] of [
      [caller, 'call.invite', inviteOf(calleeId, data)],
      [callee, 'call.accept', data],
      [callee, 'call.connected', data],
      [caller, 'call.end', data],
    ] as const) {
      const reply = await request(client, event, body)
      if (reply?.event === 'call.error') throw new Error(`${event}: ${reply.error?.code}`)
    }
    await callee.next('call.ended', isIt)
  }
  return calls
}

/** A call that a process of the next version writes: this one rings it, goes on with it, and leaves alone what it does not know. */
async function goOnWithCallOfNextVersion(): Promise<void> {
  const callee = { product: 'shop', role: 'agent', userId: `callee-${crypto.randomUUID()}` }
  const caller = { product: 'shop', role: 'customer', userId: `caller of ${callee.userId}` }
  const now = Date.now()
  const call = ringing(caller, callee, { startedAt: now, ringExpiresAt: now + 45_000 })
  const values = encodeBatch([writeOf([created(call)], undefined, () => undefined)])
  const [creates = ''] = values
  values[0] = creates?.replace('[{', '[{"note":"of the next version",') ?? null
  const texts = values.map((value) => (value === null ? 'NULL' : `'${value.replaceAll("'", "''")}'`))
  const statement = commitSql.replace(/\$(\d)/g, (_, n) => texts[n - 1] ?? '')
  expect((await server.query(statement, url))[0].refused).toBe('{}')
  const wish = { user_id: callee.userId, role: 'agent' }
  const client = await service.connect(wish)
  await client.next('call.ringing')
  const about = { call_uuid: call.callUuid }
  for (const event of ['call.accept', 'call.end']) {
    expect((await request(client, event, about))?.event).not.toBe('call.error')
  }
  expect((await recordOf(service, wish, call.callUuid)).status).toBe('ended')
  const [row] = await server.query(`SELECT note FROM calls WHERE call_uuid = '${call.callUuid}'`, url)
  expect(row.note).toBe('of the next version')
}

const errors = () => service.log.split('\n').filter((line) => line.includes('"level":"error"'))

describe('a rolling upgrade', () => {
  test('this build goes on while the next one migrates and writes, and starts again on its schema', async () => {
    const pairs = await Promise.all(Array.from({ length: 8 }, () => connectPair(service)))
    await setProduct(service, 'shop', '--busy', 'allow')
    let goesOn = true
    const counts = pairs.map(() => 0)
    const calling = Promise.all(
      pairs.map((pair, index) =>
        callOn(pair, () => {
          counts[index] = (counts[index] ?? 0) + 1
          return goesOn
        }),
      ),
    )
    const more = async () => {
      const before = [...counts]
      // Two more: one of them began after what was done before.
      while (counts.some((count, index) => count < (before[index] ?? 0) + 2))
        await Promise.race([Bun.sleep(5), calling])
    }
    await more()
    await migrate(url, Date.now(), [...known, next])
    await more()

    await goOnWithCallOfNextVersion()

    // Settings and keys are read by connections that knew the tables before.
    await setProduct(service, 'shop', '--busy', 'reject')
    await more()
    goesOn = false
    const made = (await calling).reduce((sum, count) => sum + count, 0)
    expect((await server.query("SELECT count(*)::int AS n FROM calls WHERE status = 'ended'", url))[0].n).toBe(made + 1)
    expect(errors()).toEqual([])

    await service.kill()
    await service.start()
    const again = await connectPair(service)
    let last = true
    const once = () => {
      const goesOnce = last
      last = false
      return goesOnce
    }
    expect(await callOn(again, once)).toBe(1)
  })

  test('after a breaking migration this build does not start: one line says why', async () => {
    await service.kill()
    await migrate(url, Date.now(), [...known, next, breaking])
    const box: Box = createBox()
    try {
      for (const command of ['serve', 'keys list']) {
        const { code, out, err } = await box.run(command, { env: { DATABASE_URL: url } })
        expect([code, out]).toEqual([1, ''])
        expect(err).toContain(
          `newer than this version of Ringwire, which knows the schema up to ${known.length}: since`,
        )
        expect(err).toContain(`${breaking.name} it needs a newer version.`)
      }
    } finally {
      await box.clean()
    }
  })
})

test('a data directory to which the next version added something is opened by this one', async () => {
  const box = createBox()
  try {
    const open = () => openSqlite({ dataDir: box.dataDir, synchronous: 'NORMAL', exclusive: true })
    await (await open()).close()
    const db = new Database(`${box.dataDir}/ringwire.db`)
    for (const table of tables) db.run(`ALTER TABLE ${table} ADD COLUMN note TEXT`)
    db.run("INSERT INTO schema_migrations VALUES (99, '0099_notes.sql', 'x', 0, NULL)")
    db.close()
    const { calls, products, close } = await open()
    const call = ringing()
    await calls.transition(call, () => ({ steps: [created(call)] }))
    const written = new Database(`${box.dataDir}/ringwire.db`)
    const noteOf = () => written.query<{ note: string }, []>('SELECT note FROM calls').get()?.note
    written.run("UPDATE calls SET note = 'of the next version'")
    for (const step of [touched(call, 'again'), ended(call)]) {
      const { version } = (await calls.load(call)) ?? call
      const steps = [{ ...step, call: { ...step.call, version: version + 1 } }]
      await calls.transition(call, () => ({ steps }))
      expect(noteOf()).toBe('of the next version')
    }
    written.close()
    await products.putKey({ keyId: 'k', secretHash: new Uint8Array(32), products: ['shop'], origin: 'cli' }, 1)
    await products.changeSettings('shop', {
      busy: 'reject',
      revealBusy: true,
      ringTimeoutMs: null,
      media: 'all',
      presence: 'off',
    })
    expect(await calls.load(call)).toMatchObject({ version: 3, status: 'ended' })
    expect(await products.settings('shop')).toMatchObject({ busy: 'reject' })
    await close()
  } finally {
    await box.clean()
  }
})
