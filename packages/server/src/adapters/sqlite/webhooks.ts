import type { Database } from 'bun:sqlite'
import { mentionOf } from '../../call/erase.ts'
import type { Clock } from '../../ports/clock.ts'
import {
  type Attempted,
  type Claimed,
  claimMs,
  type Delivery,
  deliveryIdAt,
  type WebhookStore,
} from '../../ports/webhooks.ts'
import { eraseDeliveries } from '../sql/erasure.ts'
import {
  type DeliveryStatus,
  dropInSteps,
  dropSize,
  dropSteps,
  ofStatuses,
  oldestLookedAt,
  removalKeptMs,
} from '../sql/kept-deliveries.ts'
import { createKnownEndpoints, type EndpointCounts } from '../sql/known-endpoints.ts'
import {
  type ClaimedRow,
  claimedColumns,
  claimedOf,
  type DeliveryRow,
  deliveryColumns,
  deliveryValues,
  type EndpointRow,
  endpointColumns,
  endpointOf,
  endpointValues,
  recordColumns,
  recordOf,
  type Subscribers,
} from '../sql/subscribers.ts'
import { type SqlValue, sqlFailure } from './connection.ts'
import { createDeliveryRows, type EraseWrites } from './erasure.ts'

/** What the writer thread does for webhooks, beside the batches. */
export type HookErrand =
  /** Where `spreads` says so, what commits wrote for endpoints becomes deliveries; the answer is 1 where more of it is left. */
  | { readonly type: 'settle'; readonly attempted: readonly SettledRow[]; readonly spreads: boolean }
  | { readonly type: 'putOff'; readonly endpointId: string; readonly now: number }
  | { readonly type: 'pruneHooks'; readonly deliveredBefore: number; readonly failedBefore: number }
  /** Deliveries of an endpoint that is gone, `dropSize` at the most. */
  | { readonly type: 'dropHooks'; readonly endpointId: string }
  | { readonly type: 'forgetRemovals'; readonly now: number }

/** Why it is asked for: `outcome` with the time of the next attempt. */
type SettledRow = Omit<Attempted, 'afterMs'> & { readonly dueAt: number }

export interface HookWrites {
  hooks(errand: HookErrand): Promise<number>
}

/**
 * Whether commits may have written for endpoints what is not spread yet: after a start they may. One flag, for the commits
 * and the deliveries of one process.
 */
export interface Staged {
  isAny: boolean
}

const pruneSize = 500
/** So many deliveries are made at a time, and a step's more, of so many steps: commits of calls wait for them. */
const spreadSize = 400
const spreadSteps = 200
/** So many of those that are due first at an endpoint are looked at for what waits behind another. */
const putOffSize = 200
const marks = (count: number) => `?${', ?'.repeat(count - 1)}`

export const insertDeliverySql = `
  INSERT INTO webhook_deliveries (${deliveryColumns}) VALUES (${marks(deliveryColumns.length)})`
export const stagedSql = 'SELECT seq, deliveries FROM webhook_steps ORDER BY seq LIMIT ?'
export const claimSql = `
  SELECT ${claimedColumns} FROM webhook_deliveries AS one
  WHERE endpoint_id = ? AND status = 'pending' AND due_at <= ? AND NOT EXISTS (
    SELECT 1 FROM webhook_deliveries AS older
    WHERE older.endpoint_id = one.endpoint_id AND older.subject = one.subject AND older.status = 'pending'
      AND older.version < one.version
  ) ORDER BY due_at LIMIT ?`
/** How often endpoints were changed and removed. */
const countsSql = 'SELECT changed, removed FROM webhook_revision'
export const changedSql = `
  SELECT ${endpointColumns} FROM webhook_endpoints WHERE revision > ? ORDER BY created_at, id`
/** Steps from endpoint to endpoint through the index of what is pending. */
export const dueSql = `
  WITH RECURSIVE waiting (endpoint_id) AS (
    SELECT min(endpoint_id) FROM webhook_deliveries WHERE status = 'pending'
    UNION ALL
    SELECT (SELECT min(endpoint_id) FROM webhook_deliveries WHERE status = 'pending' AND endpoint_id > waiting.endpoint_id)
    FROM waiting WHERE waiting.endpoint_id IS NOT NULL
  )
  SELECT endpoint_id FROM waiting WHERE endpoint_id IS NOT NULL AND EXISTS (
    SELECT 1 FROM webhook_deliveries AS one
    WHERE one.endpoint_id = waiting.endpoint_id AND one.status = 'pending' AND one.due_at <= ?
  )`
/** What waits behind one that failed is due again with that one; `+`: no index by time, which all of an endpoint is in. */
export const followSql = `
  UPDATE webhook_deliveries SET due_at = ?1 FROM (
    SELECT endpoint_id, subject, version FROM webhook_deliveries WHERE id = ?2
  ) AS failed
  WHERE webhook_deliveries.endpoint_id = failed.endpoint_id AND webhook_deliveries.subject = failed.subject
    AND status = 'pending' AND webhook_deliveries.version > failed.version AND +due_at < ?1`
export const putOffSql = `
  UPDATE webhook_deliveries SET due_at = late.behind FROM (
    SELECT one.id, (
      SELECT iif(older.attempts > 0, older.due_at, 0) FROM webhook_deliveries AS older
      WHERE older.endpoint_id = ?1 AND older.subject = one.subject AND older.status = 'pending'
        AND older.version < one.version
      ORDER BY older.version LIMIT 1
    ) AS behind
    FROM (
      SELECT id, subject, version FROM webhook_deliveries WHERE endpoint_id = ?1 AND status = 'pending' AND due_at <= ?2
      ORDER BY due_at LIMIT ?3
    ) AS one
  ) AS late WHERE webhook_deliveries.id = late.id AND late.behind > ?2`
export const deliveriesSql = (status?: DeliveryStatus) => `
  ${ofStatuses(
    (one) => `
  SELECT ${recordColumns} FROM webhook_deliveries WHERE endpoint_id = ?1 AND status = '${one}' AND id < ?2`,
    status,
  )} ORDER BY id DESC LIMIT ?3`
export const pruneSql = `
  DELETE FROM webhook_deliveries WHERE rowid IN (
    SELECT rowid FROM webhook_deliveries WHERE status = ? AND status <> 'pending' AND ended_at < ? LIMIT ?
  )`
/**
 * A pending delivery that has ended before has one more attempt, which a backend asked for. A pending delivery that is older
 * than every failed one is found by its id.
 */
export const pruneLeftSql = `
  DELETE FROM webhook_deliveries WHERE rowid IN (
    SELECT row FROM (
      SELECT rowid AS row, status, ended_at, created_at, due_at FROM webhook_deliveries WHERE id < ?1
      ORDER BY id LIMIT ${oldestLookedAt}
    ) WHERE status = 'pending' AND iif(ended_at IS NULL, created_at, due_at) < ?2 LIMIT ?3
  )`
export const dropSql = `
  DELETE FROM webhook_deliveries WHERE rowid IN (
    SELECT rowid FROM webhook_deliveries WHERE endpoint_id = ? LIMIT ${dropSize}
  )`
export const forgetRemovalsSql = `
  DELETE FROM webhook_removals WHERE removed_at < ?
    AND NOT EXISTS (SELECT 1 FROM webhook_deliveries AS d WHERE d.endpoint_id = webhook_removals.endpoint_id)`

/** What a commit writes of a step, as cheaply as it can be had. */
export function stagedText(deliveries: readonly Delivery[]): string {
  return JSON.stringify(deliveries.map(deliveryValues))
}

/** Endpoints, and deliveries of one process: who is at which one is in its memory. */
export function createWebhookStore(
  db: Database,
  writes: HookWrites & EraseWrites,
  subscribers: Subscribers,
  staged: Staged,
  clock: Pick<Clock, 'now'>,
): WebhookStore {
  /** Until when a delivery is left to whoever claimed it. */
  const claimed = new Map<string, { readonly endpointId: string; readonly until: number }>()
  /** The last claim found less than it was to: with what ended, more is spread. */
  let isShort = true
  /** Spreads under way: what they write is not there yet. */
  let spreading = 0
  const ends = db.query<{ oldest: number | null; newest: number | null }, []>(
    // Each by itself is a look at one end of the table.
    'SELECT (SELECT min(seq) FROM webhook_steps) AS oldest, (SELECT max(seq) FROM webhook_steps) AS newest',
  )
  const counts = db.query<EndpointCounts, []>(countsSql)
  const changed = db.query<EndpointRow, [number]>(changedSql)
  const known = createKnownEndpoints(subscribers)
  const ofProduct = db.query<EndpointRow, [string]>(
    `SELECT ${endpointColumns} FROM webhook_endpoints WHERE product = ? ORDER BY created_at, id`,
  )
  const removeEndpoint = db.query<unknown, [string, string]>(
    'DELETE FROM webhook_endpoints WHERE product = ? AND id = ?',
  )
  const noteRemoval = db.query<unknown, [string, number]>(
    'INSERT INTO webhook_removals (endpoint_id, removed_at) VALUES (?, ?)',
  )
  const removals = db.query<{ endpoint_id: string }, []>('SELECT endpoint_id FROM webhook_removals')
  const insert = db.query<unknown, SqlValue[]>(insertDeliverySql)
  const due = db.query<ClaimedRow, [string, number, number]>(claimSql)
  const waiting = db.query<{ endpoint_id: string }, [number]>(dueSql)
  const retry = db.query<unknown, [number, string, string]>(
    `UPDATE webhook_deliveries SET status = 'pending', due_at = ?
     WHERE endpoint_id = ? AND id = ? AND status <> 'pending'`,
  )

  function takeDue(endpointId: string, count: number, now: number): Claimed[] {
    const busy = new Set([...claimed].flatMap(([id, one]) => (one.endpointId === endpointId ? [id] : [])))
    const found = due.all(endpointId, now, count + busy.size).filter(({ id }) => !busy.has(id))
    return found.slice(0, count).map(claimedOf)
  }

  function attempt<T>(action: () => T): T | Promise<T> {
    try {
      return action()
    } catch (error) {
      return Promise.reject(sqlFailure(error))
    }
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

  function claimNow(wanted: ReadonlyMap<string, number>): Claimed[] {
    const now = clock.now()
    for (const [id, { until }] of claimed) if (until <= now) claimed.delete(id)
    const taken = [...wanted].flatMap(([endpointId, count]) => takeDue(endpointId, count, now))
    for (const { id, endpointId } of taken) claimed.set(id, { endpointId, until: now + claimMs })
    return taken
  }

  return {
    refresh: () =>
      attempt(() => {
        const now = counts.get()
        if (now === null) throw new Error('webhook_revision is empty')
        const since = known.since(now)
        return since === undefined ? known.list : known.take(now, changed.all(since))
      }),
    endpointsOf: (product) => attempt(() => ofProduct.all(product).map(endpointOf)),
    addEndpoint: (endpoint) =>
      attempt(() => {
        const values = endpointValues(endpoint)
        const columns = values.map(([column]) => column)
        db.query<unknown, SqlValue[]>(
          `INSERT INTO webhook_endpoints (${columns}) VALUES (${marks(columns.length)})`,
        ).run(...values.map(([, value]) => sqlValueOf(value)))
      }),
    changeEndpoint: (product, id, changes) =>
      attempt(() => {
        const values = endpointValues(changes)
        // A column that is set to itself: what is not given stays.
        const set = ['id = id', ...values.map(([column]) => `${column} = ?`)]
        const row = db
          .query<EndpointRow, SqlValue[]>(
            `UPDATE webhook_endpoints SET ${set} WHERE product = ? AND id = ? RETURNING ${endpointColumns}`,
          )
          .get(...values.map(([, value]) => sqlValueOf(value)), product, id)
        return row === null ? undefined : endpointOf(row)
      }),
    async removeEndpoint(product, id) {
      await spreadAll()
      const remove = db.transaction(() => {
        if (removeEndpoint.run(product, id).changes === 0) return false
        noteRemoval.run(id, clock.now())
        return true
      })
      if (!(await attempt(() => remove.immediate()))) return false
      await dropInSteps(() => writes.hooks({ type: 'dropHooks', endpointId: id }), dropSteps)
      return true
    },
    add: (deliveries) =>
      attempt(() => {
        const add = db.transaction(() => {
          for (const delivery of deliveries) insert.run(...deliveryValues(delivery))
        })
        add.immediate()
      }),
    due: () => attempt(() => waiting.all(clock.now()).map(({ endpoint_id }) => endpoint_id)),
    async claim(wanted) {
      const taken = await attempt(() => claimNow(wanted))
      const rest = lackOf(wanted, taken)
      isShort = rest.size > 0
      // Where there is enough, more is not spread yet: of a call, what is spread comes first anyway.
      if (!isShort || (!staged.isAny && spreading === 0)) return { claimed: taken, isMore: false }
      try {
        const isMore = await write([], true)
        const more = claimNow(rest)
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
      for (const { id } of attempted) claimed.delete(id)
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
    retry: (endpointId, id) => attempt(() => retry.run(clock.now(), endpointId, id).changes > 0),
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

/** Makes deliveries of what commits wrote, within a transaction; true where more is left. */
export function createSpreading(db: Database): () => boolean {
  const oldest = db.query<{ seq: number; deliveries: string }, [number]>(stagedSql)
  const insert = db.query<unknown, SqlValue[]>(insertDeliverySql)
  const remove = db.query<unknown, [number]>('DELETE FROM webhook_steps WHERE seq <= ?')
  return () => {
    const steps = oldest.all(spreadSteps)
    let done = 0
    for (let count = 0; done < steps.length && count < spreadSize; done++) {
      const deliveries = JSON.parse(steps[done]?.deliveries ?? '[]') as SqlValue[][]
      for (const values of deliveries) insert.run(...values)
      count += deliveries.length
    }
    const last = steps[done - 1]
    if (last !== undefined) remove.run(last.seq)
    return done < steps.length || done === spreadSteps
  }
}

/**
 * Of the writer thread: each errand is one transaction. Answers how many rows it wrote; where it spreads, whether more is
 * left.
 */
export function createHookWriter(db: Database): (errand: HookErrand) => number {
  const settle = db.query<unknown, SqlValue[]>(
    `UPDATE webhook_deliveries
     SET status = ?, due_at = ?, ended_at = ?, attempts = attempts + 1, response_status = ?, response = ?
     WHERE id = ? AND status = 'pending'`,
  )
  const spread = createSpreading(db)
  const putOff = db.query<unknown, [string, number, number]>(putOffSql)
  const follow = db.query<unknown, [number, string]>(followSql)
  const release = db.query<unknown, [number, string]>('UPDATE webhook_deliveries SET due_at = ? WHERE id = ?')
  const prune = db.query<unknown, [string, number, number]>(pruneSql)
  const pruneLeft = db.query<unknown, [string, number, number]>(pruneLeftSql)
  const drop = db.query<unknown, [string]>(dropSql)
  const forgetRemovals = db.query<unknown, [number]>(forgetRemovalsSql)

  function settleOne({ id, outcome, dueAt, at, responseStatus, response }: SettledRow): void {
    const isOver = outcome !== 'pending'
    if (outcome === 'released') return void release.run(dueAt, id)
    settle.run(outcome, isOver ? null : dueAt, isOver ? at : null, responseStatus, response, id)
    if (!isOver) follow.run(dueAt, id)
  }

  const run = db.transaction((errand: HookErrand) => {
    if (errand.type === 'settle') {
      for (const one of errand.attempted) settleOne(one)
      return errand.spreads && spread() ? 1 : 0
    }
    if (errand.type === 'putOff') return putOff.run(errand.endpointId, errand.now, putOffSize).changes
    if (errand.type === 'dropHooks') return drop.run(errand.endpointId).changes
    if (errand.type === 'forgetRemovals') return forgetRemovals.run(errand.now - removalKeptMs).changes
    const { failedBefore } = errand
    return (
      prune.run('delivered', errand.deliveredBefore, pruneSize).changes +
      prune.run('failed', failedBefore, pruneSize).changes +
      pruneLeft.run(deliveryIdAt(failedBefore), failedBefore, pruneSize).changes
    )
  })
  return (errand) => run.immediate(errand)
}
