import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { until } from '@ringwire/testkit/patience'
import { SQL } from 'bun'
import { openPostgres } from '../../src/stores/postgres/open.ts'
import { databaseFile } from '../../src/stores/sqlite/data-dir.ts'
import { moveFor } from './move.ts'
import { fill, fillLarge } from './stores.ts'

const move = moveFor()
const { migrate, countCalls } = move

/** `ringwire migrate` as a process that can be killed. */
function start() {
  const main = new URL('../../src/main.ts', import.meta.url).pathname
  return Bun.spawn([process.execPath, main, 'migrate'], {
    env: { PATH: process.env.PATH ?? '', RINGWIRE_DATA_DIR: move.box.dataDir, DATABASE_URL: move.url },
    stdio: ['ignore', 'ignore', 'ignore'],
  })
}

describe('ringwire migrate, interrupted', () => {
  const gate = 4711
  /** Waits for the gate before a call is written, or when the transaction is committed. */
  async function closeGate(
    where: 'a call' | 'the commit',
  ): Promise<{ reached(): Promise<void>; open(): Promise<void> }> {
    await (await openPostgres({ url: move.url })).close()
    const [timing, condition] =
      where === 'a call'
        ? ['BEFORE INSERT', "WHEN (NEW.call_uuid LIKE '%2af8')"]
        : ['AFTER INSERT', "WHEN (NEW.call_uuid LIKE '%0001')"]
    const kind = where === 'a call' ? 'TRIGGER' : 'CONSTRAINT TRIGGER'
    const deferred = where === 'a call' ? '' : 'DEFERRABLE INITIALLY DEFERRED'
    const holder = new SQL({ url: move.url, max: 1 })
    await holder
      .unsafe(`
      CREATE FUNCTION wait_here() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_advisory_xact_lock(${gate}); RETURN NEW; END $$;
      CREATE ${kind} wait_here ${timing} ON calls ${deferred} FOR EACH ROW ${condition} EXECUTE FUNCTION wait_here()`)
      .simple()
    await holder.unsafe(`SELECT pg_advisory_lock(${gate})`)
    return {
      async reached() {
        const waiting = `SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory' AND objid = ${gate} AND NOT granted`
        await until('it waits at the gate', async () => (await move.server.query(waiting, move.url))[0].n > 0)
      },
      async open() {
        await holder.close()
      },
    }
  }

  /** `ringwire migrate` in a process of its own, killed when it is at the gate. */
  async function killAt(where: 'a call' | 'the commit'): Promise<void> {
    const { reached, open } = await closeGate(where)
    const child = start()
    await reached()
    // Nobody can write to the directory meanwhile.
    const beside = await move.box.run('products set shop --busy allow')
    expect([beside.code, beside.err]).toEqual([1, expect.stringContaining('locked')])
    child.kill('SIGKILL')
    await child.exited
    await open()
  }

  test('by kill -9 in the middle: nothing was copied; run again it copies all', async () => {
    await fillLarge(move.box.dataDir, 20_000)
    await killAt('a call')
    const { code, out } = await migrate('--json')
    expect([code, JSON.parse(out)]).toMatchObject([0, { copied: true, calls: 20_010 }])
    expect(await countCalls()).toBe(20_010)
  }, 240_000)

  test('by kill -9 while it commits: run again it finds all of it there', async () => {
    await fillLarge(move.box.dataDir, 1000)
    await killAt('the commit')
    await until('the calls are there', async () => (await countCalls()) > 0)
    const { code, out } = await migrate('--json')
    expect([code, JSON.parse(out)]).toMatchObject([0, { copied: false, calls: 1010 }])
  })

  test('by the end of its connection: it says so, and nothing was copied', async () => {
    await fillLarge(move.box.dataDir, 20_000)
    const { reached, open } = await closeGate('a call')
    const migrating = migrate()
    await reached()
    await move.server.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ringwire migrate' AND datname = current_database()",
      move.url,
    )
    expect(await migrating).toMatchObject({ code: 1, out: '', err: expect.stringContaining('Nothing was copied') })
    await open()
    expect(await countCalls()).toBe(0)
    expect((await migrate()).code).toBe(0)
  }, 240_000)
})

test('40,000 calls of 260 MiB go through little memory', async () => {
  const rss = async () => {
    const child = start()
    expect(await child.exited).toBe(0)
    return (child.resourceUsage()?.maxRSS ?? 0) / 2 ** 20
  }
  await fill(move.box.dataDir, 10)
  const small = await rss()
  await move.toAnother()
  await fillLarge(move.box.dataDir, 40_000)
  expect(Bun.file(join(move.box.dataDir, databaseFile)).size / 2 ** 20).toBeGreaterThan(250)
  const large = await rss()
  expect(large - small).toBeLessThan(200)
}, 240_000)
