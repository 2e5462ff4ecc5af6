import { type Left, leaseMs, type Outbox } from '../../ports/outbox.ts'
import type { StepRows } from '../sql/step-rows.ts'
import type { Connections, Row, SqlParameter } from './connections.ts'
import type { Look } from './glances.ts'

/** No row gets its id this long before its commit: a step is one statement, which the server ends after `limitMs`. In ms. */
const lateMs = 10_000
/** Nothing may depend on that rule: this often everything is looked at, in ms. */
const wholeMs = 600_000

export const claimSql = `
  SELECT claimed.id::float8 AS row, claimed.version, product, call_uuid, ended_at::float8 AS ended_at
  FROM claim_steps($1::text::bigint, $2::int, $3::float8 * interval '1 ms') AS claimed
  LEFT JOIN calls ON calls.id = claimed.call_id ORDER BY claimed.id`
export const leftOfSql = `
  SELECT id::float8 AS row, version FROM outbox
  WHERE call_id = (SELECT calls.id FROM calls WHERE call_uuid = $1 AND product = $2)
  ORDER BY version`
export const removeSql = 'DELETE FROM outbox WHERE id = ANY ($1::text::bigint[])'
export const releaseSql = `
  UPDATE outbox SET free_at = clock_timestamp() + $2::float8 * interval '1 ms' WHERE id = ANY ($1::text::bigint[])`
export const oldestSql = `
  SELECT call_events.at::float8 AS at FROM outbox JOIN call_events USING (call_id, version)
  WHERE outbox.id > $1::text::bigint ORDER BY outbox.id LIMIT 1`
/** The first row, and whether a claim may find any: the same that it looks at itself. */
export const waitingSql = `
  SELECT
    (SELECT id::float8 FROM outbox WHERE id > $1::text::bigint ORDER BY outbox.id LIMIT 1) AS first,
    EXISTS (
      SELECT FROM outbox WHERE id > $1::text::bigint
        AND (free_at <= clock_timestamp() OR free_at > clock_timestamp() + interval '1 minute')
    ) AS is_any_free`

/**
 * The outbox of several processes. The index of its ids holds every row that was removed until a vacuum may forget it, and
 * a backup that reads for an hour keeps all of that hour. So a claim begins at the first row that was there ten seconds
 * ago: rows before it that were not yet visible then have been committed or rolled back by now.
 */
export function createOutbox(
  connections: Connections,
  look: Look,
  stepRows: StepRows,
  now = () => performance.now(),
): Outbox {
  /** Nothing is left up to the first one; the next one will be so later. */
  let above = 0
  let next = 0
  let lookedAt = Number.NEGATIVE_INFINITY
  let wholeAt = now()

  const run = (text: string, values: readonly SqlParameter[]): Promise<Row[]> =>
    connections.run(text, values, { repeatable: true })

  /** Whether the first row is to be learned anew. */
  function moveStart(): boolean {
    const at = now()
    if (at - lookedAt < lateMs) return false
    lookedAt = at
    above = at - wholeAt < wholeMs ? next : 0
    if (above === 0) wholeAt = at
    return true
  }

  return {
    rowOf: stepRows.find,
    async leftOf({ callUuid, product }) {
      const rows = await run(leftOfSql, [callUuid, product])
      return rows.map(({ row, version }) => ({ row, version }))
    },
    async remove(rows) {
      if (rows.length > 0) await run(removeSql, [`{${rows}}`])
    },
    async claim(limit) {
      const isMoved = moveStart()
      const [{ first, is_any_free }] = await look(waitingSql, [String(above)])
      if (isMoved && first !== null) next = first - 1
      if (!is_any_free) return []
      // Sent again after a lost connection it may claim more than it answers: that is free again after the lease.
      const rows = await run(claimSql, [String(above), limit, leaseMs])
      return rows.map(leftOf)
    },
    async release(rows, afterMs) {
      if (rows.length > 0) await run(releaseSql, [`{${rows}}`, afterMs])
    },
    async oldest() {
      const [row] = await look(oldestSql, [String(above)])
      return row?.at
    },
  }
}

function leftOf({ row, version, product, call_uuid: callUuid, ended_at: endedAt }: Row): Left {
  return { row, version, call: product === null ? undefined : { product, callUuid, endedAt } }
}
