import type { Database } from 'bun:sqlite'
import { mentionOf } from '../../call/erase.ts'
import type { Clock } from '../../ports/clock.ts'
import { macrotask } from '../../ports/macrotask.ts'
import { type Claimed, claimMs, type WebhookEndpoint, type WebhookStore } from '../../ports/webhooks.ts'
import { eraseDeliveries } from '../sql/erasure.ts'
import { type DeliveryStatus, dropInSteps, dropSteps, ofStatuses } from '../sql/kept-deliveries.ts'
import { createKnownEndpoints, type EndpointCounts } from '../sql/known-endpoints.ts'
import {
  type ClaimedRow,
  claimedColumns,
  claimedOf,
  type DeliveryRow,
  deliveryValues,
  type EndpointRow,
  endpointColumns,
  endpointOf,
  endpointValues,
  recordColumns,
  recordOf,
  type Subscribers,
} from '../sql/subscribers.ts'
import { attempt, type SqlValue, sqlFailure } from './connection.ts'
import { createDeliveryRows, type EraseWrites } from './erasure.ts'
import { inPages, rowsOfPage } from './pages.ts'
import type { RowStatement, RowWrites } from './row-writes.ts'
import { type HookWrites, insertDeliverySql, marks, putOffSize, type SettledRow } from './webhook-writes.ts'

/**
 * Whether commits may have written for endpoints what is not spread yet: after a start they may. One flag, for the commits
 * and the deliveries of one process.
 */
export interface Staged {
  isAny: boolean
}

/** The deliveries that a claim looks at beside those that it takes. `putOff` moves the ones that wait behind another. */
const claimLookedAt = putOffSize
/** Endpoints that are claimed for before sockets have their turn. */
const claimedAtOnce = 10
export const claimSql = `
  SELECT ${claimedColumns} FROM (
    SELECT ${claimedColumns}, due_at FROM webhook_deliveries
    WHERE endpoint_id = ? AND status = 'pending' AND due_at <= ? ORDER BY due_at LIMIT ?
  ) AS one
  WHERE NOT EXISTS (
    SELECT 1 FROM webhook_deliveries AS older
    WHERE older.endpoint_id = one.endpoint_id AND older.subject = one.subject AND older.status = 'pending'
      AND older.version < one.version
  ) ORDER BY due_at LIMIT ?`
/** How often endpoints were changed and removed. */
const countsSql = 'SELECT changed, removed FROM webhook_revision'
export const changedSql = `
  SELECT ${endpointColumns}, revision FROM webhook_endpoints
  WHERE (revision, id) > (?, ?) ORDER BY revision, id LIMIT ${rowsOfPage}`
/** Steps from endpoint to endpoint through the index of what is pending. */
export const dueSql = `
  WITH RECURSIVE waiting (endpoint_id) AS (
    SELECT min(endpoint_id) FROM webhook_deliveries WHERE status = 'pending' AND endpoint_id > ?1
    UNION ALL
    SELECT (SELECT min(endpoint_id) FROM webhook_deliveries WHERE status = 'pending' AND endpoint_id > waiting.endpoint_id)
    FROM waiting WHERE waiting.endpoint_id IS NOT NULL LIMIT ${rowsOfPage}
  )
  SELECT endpoint_id, EXISTS (
    SELECT 1 FROM webhook_deliveries AS one
    WHERE one.endpoint_id = waiting.endpoint_id AND one.status = 'pending' AND one.due_at <= ?2
  ) AS is_due FROM waiting WHERE endpoint_id IS NOT NULL`
export const deliveriesSql = (status?: DeliveryStatus) => `
  ${ofStatuses(
    (one) => `
  SELECT ${recordColumns} FROM webhook_deliveries WHERE endpoint_id = ?1 AND status = '${one}' AND id < ?2`,
    status,
  )} ORDER BY id DESC LIMIT ?3`
const retrySql = `
  UPDATE webhook_deliveries SET status = 'pending', due_at = ? WHERE endpoint_id = ? AND id = ? AND status <> 'pending'`
/** Endpoints, and deliveries of one process: who is at which one is in its memory. */
export function createWebhookStore(
  db: Database,
  writes: HookWrites & EraseWrites & RowWrites,
  subscribers: Subscribers,
  staged: Staged,
  clock: Pick<Clock, 'now'>,
): WebhookStore {
  /** Of each endpoint: until when a delivery is left to whoever claimed it. */
  const claimed = new Map<string, Map<string, number>>()
  /** The last claim found less than it was to: with what ended, more is spread. */
  let isShort = true
  /** Spreads under way: what they write is not there yet. */
  let spreading = 0
  let refreshing: Promise<readonly WebhookEndpoint[]> = Promise.resolve([])
  const ends = db.query<{ oldest: number | null; newest: number | null }, []>(
    // Each by itself is a look at one end of the table.
    'SELECT (SELECT min(seq) FROM webhook_steps) AS oldest, (SELECT max(seq) FROM webhook_steps) AS newest',
  )
  const counts = db.query<EndpointCounts, []>(countsSql)
  const changed = db.query<EndpointRow & { revision: number }, [number, string]>(changedSql)
  const known = createKnownEndpoints(subscribers)
  const ofProduct = db.query<EndpointRow, [string]>(
    `SELECT ${endpointColumns} FROM webhook_endpoints WHERE product = ? ORDER BY created_at, id`,
  )
  const one = db.query<EndpointRow & { revision: number }, [string, string]>(
    `SELECT ${endpointColumns}, revision FROM webhook_endpoints WHERE product = ? AND id = ?`,
  )
  const removals = db.query<{ endpoint_id: string }, []>('SELECT endpoint_id FROM webhook_removals')
  const due = db.query<ClaimedRow, [string, number, number, number]>(claimSql)
  const waiting = db.query<{ endpoint_id: string; is_due: number }, [string, number]>(dueSql)
  const writeRows = (...statements: RowStatement[]) => writes.rows({ type: 'rows', statements, isLight: false })

  function takeDue(endpointId: string, count: number, now: number): Claimed[] {
    const busy = claimed.get(endpointId) ?? new Map<string, number>()
    for (const [id, until] of busy) if (until <= now) busy.delete(id)
    const most = count + busy.size
    const found = due.all(endpointId, now, most + claimLookedAt, most).filter(({ id }) => !busy.has(id))
    const taken = found.slice(0, count).map(claimedOf)
    for (const { id } of taken) busy.set(id, now + claimMs)
    if (busy.size > 0) claimed.set(endpointId, busy)
    else claimed.delete(endpointId)
    return taken
  }

  function leave(id: string): void {
    for (const [endpointId, busy] of claimed) if (busy.delete(id) && busy.size === 0) claimed.delete(endpointId)
  }

  /** True where more is to be spread. What is committed while it is under way is spread by the next one. */
  async function write(attempted: readonly SettledRow[], spreads: boolean): Promise<boolean> {
    if (spreads) {
      staged.isAny = false
      spreading++
    }
    try {
      const isMore = (await writes.hooks({ type: 'settle', attempted, spreads })) === 1
      staged.isAny ||= isMore
      return isMore
    } catch (error) {
      staged.isAny ||= spreads
      throw error
    } finally {
      if (spreads) spreading--
    }
  }

  /** All that was committed before it was called, and no more: calls go on meanwhile. */
  async function spreadAll(): Promise<void> {
    const last = await attempt(() => ends.get()?.newest ?? null)
    if (last === null) return
    for (let isMore = true; isMore; ) {
      isMore = (await write([], true)) && (await attempt(() => (ends.get()?.oldest ?? last) <= last))
    }
  }

  /** What is left of removed endpoints, so many steps of each at the most; answers how many deliveries went. */
  async function dropRemoved(most?: number): Promise<number> {
    let count = 0
    for (const { endpoint_id: endpointId } of await attempt(() => removals.all()))
      count += await dropInSteps(() => writes.hooks({ type: 'dropHooks', endpointId }), most)
    await writes.hooks({ type: 'forgetRemovals', now: clock.now() })
    return count
  }

  async function claimNow(wanted: ReadonlyMap<string, number>): Promise<Claimed[]> {
    const taken: Claimed[] = []
    let asked = 0
    for (const [endpointId, count] of wanted) {
      if (asked++ % claimedAtOnce === claimedAtOnce - 1) await macrotask()
      try {
        taken.push(...takeDue(endpointId, count, clock.now()))
      } catch (error) {
        if (taken.length === 0) throw sqlFailure(error)
        // What was claimed goes out; the others are still due.
        break
      }
    }
    return taken
  }

  async function read(): Promise<readonly WebhookEndpoint[]> {
    const now = await attempt(() => counts.get())
    if (now === null) throw new Error('webhook_revision is empty')
    const since = known.since(now)
    if (since === undefined) return known.list
    // What changes while pages are read has a later revision: the next look reads it again.
    const rows = await inPages(
      { revision: since + 1, id: '' },
      ({ revision, id }) => changed.all(revision, id),
      ({ revision, id }) => ({ revision, id }),
    )
    return known.take(now, rows)
  }

  return {
    // One after another: an earlier one must not replace what a later one has read.
    refresh() {
      refreshing = refreshing.then(read, read)
      return refreshing
    },
    endpointsOf: (product) => attempt(() => ofProduct.all(product).map(endpointOf)),
    async addEndpoint(endpoint) {
      const values = endpointValues(endpoint)
      const columns = values.map(([column]) => column)
      await writeRows([
        `INSERT INTO webhook_endpoints (${columns}) VALUES (${marks(columns.length)})`,
        ...values.map(([, value]) => sqlValueOf(value)),
      ])
    },
    async changeEndpoint(product, id, changes) {
      const values = endpointValues(changes)
      // A column that is set to itself: what is not given stays.
      const set = ['id = id', ...values.map(([column]) => `${column} = ?`)]
      const sql = `UPDATE webhook_endpoints SET ${set} WHERE product = ? AND id = ? AND revision = ?`
      const given = values.map(([, value]) => sqlValueOf(value))
      // Written only over what was read: then the answer is what this change has stored, whoever else changes the endpoint.
      for (;;) {
        const row = await attempt(() => one.get(product, id))
        if (row === null) return undefined
        if ((await writeRows([sql, ...given, product, id, row.revision])) > 0) return { ...endpointOf(row), ...changes }
      }
    },
    async removeEndpoint(product, id) {
      await spreadAll()
      const removed = await writeRows(
        ['DELETE FROM webhook_endpoints WHERE product = ? AND id = ?', product, id],
        ['INSERT INTO webhook_removals (endpoint_id, removed_at) SELECT ?, ? WHERE changes() > 0', id, clock.now()],
      )
      if (removed === 0) return false
      await dropInSteps(() => writes.hooks({ type: 'dropHooks', endpointId: id }), dropSteps)
      return true
    },
    async add(deliveries) {
      await writeRows(...deliveries.map((one): RowStatement => [insertDeliverySql, ...deliveryValues(one)]))
    },
    async due() {
      const now = clock.now()
      const rows = await inPages(
        '',
        (after) => waiting.all(after, now),
        ({ endpoint_id }) => endpoint_id,
      )
      return rows.flatMap(({ endpoint_id, is_due }) => (is_due === 1 ? [endpoint_id] : []))
    },
    async claim(wanted) {
      const taken = await claimNow(wanted)
      const rest = lackOf(wanted, taken)
      isShort = rest.size > 0
      // Where there is enough, more is not spread yet: of a call, what is spread comes first anyway.
      if (!isShort || (!staged.isAny && spreading === 0)) return { claimed: taken, isMore: false }
      try {
        const isMore = await write([], true)
        const more = await claimNow(rest)
        return { claimed: [...taken, ...more], isMore: isMore && lackOf(rest, more).size > 0 }
      } catch (error) {
        if (taken.length === 0) throw sqlFailure(error)
        return { claimed: taken, isMore: false }
      }
    },
    async settle(attempted) {
      const now = clock.now()
      const rows = attempted.map(({ afterMs, ...one }) => ({ ...one, dueAt: now + afterMs }))
      await write(rows, isShort && staged.isAny)
      for (const { id } of attempted) leave(id)
    },
    async putOff(endpointIds) {
      let count = 0
      // Each for itself: commits of calls wait for one of them, not for all.
      for (const endpointId of endpointIds)
        count += await writes.hooks({ type: 'putOff', endpointId, now: clock.now() })
      return count > 0
    },
    async deliveries({ endpointId, status, limit, before = '~' }) {
      // A list is read also while nothing can be written.
      await spreadAll().catch(() => {})
      return attempt(() => {
        const listed = db.query<DeliveryRow, [string, string, number]>(deliveriesSql(status))
        return listed.all(endpointId, before, limit).map(recordOf)
      })
    },
    retry: async (endpointId, id) => (await writeRows([retrySql, clock.now(), endpointId, id])) > 0,
    async erase(participant, onErased = () => {}) {
      await spreadAll()
      await dropRemoved()
      const ids = ofProduct.all(participant.product).map(({ id }) => id)
      return eraseDeliveries(createDeliveryRows(db, writes, mentionOf(participant)), ids, participant, onErased)
    },
    async prune(deliveredBefore, failedBefore) {
      // Also what is for endpoints that are gone.
      await spreadAll()
      const old = await writes.hooks({ type: 'pruneHooks', deliveredBefore, failedBefore })
      return old + (await dropRemoved(1))
    },
  }
}

/** Of which endpoints how many less were taken than wanted. */
function lackOf(wanted: ReadonlyMap<string, number>, taken: readonly Claimed[]): ReadonlyMap<string, number> {
  const lack = new Map(wanted)
  for (const { endpointId } of taken) lack.set(endpointId, (lack.get(endpointId) ?? 0) - 1)
  return new Map([...lack].filter(([, count]) => count > 0))
}

const sqlValueOf = (value: SqlValue | boolean): SqlValue => (typeof value === 'boolean' ? Number(value) : value)
