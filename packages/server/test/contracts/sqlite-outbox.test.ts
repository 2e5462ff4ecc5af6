import { Database } from 'bun:sqlite'
import { leftIn, openHarness } from '../../src/stores/sqlite/open.fixture.ts'
import { type OutboxProcessHarness, registerOutboxContract, registerOutboxProcessContract } from './outbox.ts'

/** The numbers from 1 to a parameter. */
const numbersSql = `(
  WITH RECURSIVE numbers (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM numbers WHERE value < ?)
  SELECT value FROM numbers
)`

registerOutboxContract('SQLite', openOutbox)
registerOutboxProcessContract('SQLite', openOutbox)

async function openOutbox(): Promise<OutboxProcessHarness> {
  let now = 0
  const harness = await openHarness({ monotonic: () => now })
  const query = <T>(use: (db: Database) => T): T => {
    const db = new Database(harness.database, { readwrite: true })
    try {
      return use(db)
    } finally {
      db.close()
    }
  }
  return {
    store: harness.store,
    forge: harness.forge,
    outbox: () => harness.stores().outbox,
    // No other process has one.
    other: () => harness.stores().outbox,
    rows: async () => leftIn(harness.database),
    async pass(ms) {
      now += ms
    },
    async dropCall({ callUuid }) {
      query((db) => {
        const of = 'FROM calls WHERE call_uuid = ?'
        db.query(`DELETE FROM call_events WHERE call_id = (SELECT id ${of})`).run(callUuid)
        db.query(`DELETE ${of}`).run(callUuid)
      })
    },
    async fill(count) {
      query((db) => {
        const last = db.query<{ id: number }, []>('SELECT coalesce(max(id), 0) AS id FROM calls').get()?.id ?? 0
        db.query(
          `INSERT INTO calls (
             product, call_uuid, caller_role, caller_user_id, callee_role, callee_user_id, context_type, context_id,
             call_type, started_at, ring_timeout_ms, version, status, ring_expires_at, caller_place, ended_at, end_reason
           )
           SELECT 'clinic', 'filled-' || (? + value), 'r', 'a', 'r', 'b', 't', 'c', 'audio', 0, 1, 1, 'ended', 1, '{}', 0, 'x'
           FROM ${numbersSql}`,
        ).run(last, count)
        db.query(
          "INSERT INTO call_events (call_id, version, type, at) SELECT id, 1, 'ended', 0 FROM calls WHERE id > ?",
        ).run(last)
        db.query('INSERT INTO outbox (seq) SELECT seq FROM call_events WHERE call_id > ?').run(last)
      })
    },
    reopen: harness.reopen,
    child: () => ['sqlite', harness.dataDir],
    close: harness.close,
  }
}
