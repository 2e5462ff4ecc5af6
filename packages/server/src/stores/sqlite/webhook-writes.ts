import type { Database } from 'bun:sqlite'
import { type Attempted, type Delivery, deliveryIdAt } from '../../ports/webhooks.ts'
import { dropSize, oldestLookedAt, removalKeptMs } from '../sql/kept-deliveries.ts'
import { deliveryColumns, deliveryValues } from '../sql/subscribers.ts'
import type { SqlValue } from './connection.ts'

/*
 * The work of the writer thread for webhooks: it makes deliveries of the rows that commits wrote, stores their results,
 * and removes those that nobody wants any more.
 */

/** The work of the writer thread for webhooks, besides the batches. */
export type HookErrand =
  /**
   * Where `spreads` says so, the rows that commits wrote for endpoints become deliveries; the answer is 1 if more of them
   * are left.
   */
  | { readonly type: 'settle'; readonly attempted: readonly SettledRow[]; readonly spreads: boolean }
  | { readonly type: 'putOff'; readonly endpointId: string; readonly now: number }
  | { readonly type: 'pruneHooks'; readonly deliveredBefore: number; readonly failedBefore: number }
  /** Deliveries of an endpoint that is gone, `dropSize` at the most. */
  | { readonly type: 'dropHooks'; readonly endpointId: string }
  | { readonly type: 'forgetRemovals'; readonly now: number }

/** Why it is asked for: `outcome` with the time of the next attempt. */
export type SettledRow = Omit<Attempted, 'afterMs'> & { readonly dueAt: number }

export interface HookWrites {
  hooks(errand: HookErrand): Promise<number>
}

const pruneSize = 500
/** The deliveries that are made at a time, and the steps that are looked at for them: commits of calls wait meanwhile. */
const spreadSize = 400
const spreadSteps = 200
/** So many of those that are due first at an endpoint are looked at for what waits behind another. */
export const putOffSize = 200
export const marks = (count: number) => `?${', ?'.repeat(count - 1)}`

export const insertDeliverySql = `
  INSERT INTO webhook_deliveries (${deliveryColumns}) VALUES (${marks(deliveryColumns.length)})`
export const stagedSql = 'SELECT seq, deliveries FROM webhook_steps ORDER BY seq LIMIT ?'
/** Deliveries behind a failed one are due again at its time; `+`: the index by time holds all of an endpoint. */
export const followSql = `
  UPDATE webhook_deliveries SET due_at = ?1 FROM (
    SELECT endpoint_id, subject, version FROM webhook_deliveries WHERE id = ?2
  ) AS failed
  WHERE webhook_deliveries.endpoint_id = failed.endpoint_id AND webhook_deliveries.subject = failed.subject
    AND status = 'pending' AND webhook_deliveries.version > failed.version AND +due_at < ?1`
export const putOffSql = `
  UPDATE webhook_deliveries SET due_at = late.behind FROM (
    SELECT one.id, one.due_at, (
      SELECT iif(older.attempts > 0, older.due_at, 0) FROM webhook_deliveries AS older
      WHERE older.endpoint_id = ?1 AND older.subject = one.subject AND older.status = 'pending'
        AND older.version < one.version
      ORDER BY older.version LIMIT 1
    ) AS behind
    FROM (
      SELECT id, subject, version, due_at FROM webhook_deliveries WHERE endpoint_id = ?1 AND status = 'pending' AND due_at <= ?2
      ORDER BY due_at LIMIT ?3
    ) AS one
  ) AS late WHERE webhook_deliveries.id = late.id AND late.behind > late.due_at`
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

/** The row that a commit writes for a step, as cheaply as it can be had. */
export function stagedText(deliveries: readonly Delivery[]): string {
  return JSON.stringify(deliveries.map(deliveryValues))
}

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
