import type { Database } from 'bun:sqlite'
import type { Clock } from '../../ports/clock.ts'
import { macrotask } from '../../ports/macrotask.ts'
import { type Claimed, claimMs, type DeliveryStore } from '../../ports/webhooks.ts'
import { type ClaimedRow, claimedColumns, claimedOf } from '../sql/subscribers.ts'
import { sqlFailure } from './connection.ts'
import type { Spread } from './webhook-spread.ts'
import { putOffSize } from './webhook-writes.ts'

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

/** Claims of one process: its memory knows which claim has which delivery. */
export function createClaims(
  db: Database,
  spread: Spread,
  clock: Pick<Clock, 'now'>,
): Pick<DeliveryStore, 'claim' | 'settle'> {
  /** Of each endpoint: until when a delivery is left to its claim. */
  const claimed = new Map<string, Map<string, number>>()
  /** The last claim found less than it was to: with what ended, more is spread. */
  let isShort = true
  const due = db.query<ClaimedRow, [string, number, number, number]>(claimSql)

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

  async function takeAll(wanted: ReadonlyMap<string, number>): Promise<Claimed[]> {
    const taken: Claimed[] = []
    let asked = 0
    for (const [endpointId, count] of wanted) {
      if (asked++ % claimedAtOnce === claimedAtOnce - 1) await macrotask()
      try {
        taken.push(...takeDue(endpointId, count, clock.now()))
      } catch (error) {
        if (taken.length === 0) throw sqlFailure(error)
        // The claimed deliveries go out; the others are still due.
        break
      }
    }
    return taken
  }

  function leave(id: string): void {
    for (const [endpointId, busy] of claimed) if (busy.delete(id) && busy.size === 0) claimed.delete(endpointId)
  }

  return {
    async claim(wanted) {
      const taken = await takeAll(wanted)
      const rest = lackOf(wanted, taken)
      isShort = rest.size > 0
      // If there is enough, more is not spread yet: of a call, spread deliveries come first anyway.
      if (!isShort || !spread.mayHaveMore()) return { claimed: taken, isMore: false }
      try {
        const isMore = await spread.settle([], true)
        const more = await takeAll(rest)
        return { claimed: [...taken, ...more], isMore: isMore && lackOf(rest, more).size > 0 }
      } catch (error) {
        if (taken.length === 0) throw sqlFailure(error)
        return { claimed: taken, isMore: false }
      }
    },
    async settle(attempted) {
      const now = clock.now()
      const rows = attempted.map(({ afterMs, ...one }) => ({ ...one, dueAt: now + afterMs }))
      await spread.settle(rows, isShort && spread.isStaged())
      for (const { id } of attempted) leave(id)
    },
  }
}

/** Of which endpoints how many less were taken than wanted. */
function lackOf(wanted: ReadonlyMap<string, number>, taken: readonly Claimed[]): ReadonlyMap<string, number> {
  const lack = new Map(wanted)
  for (const { endpointId } of taken) lack.set(endpointId, (lack.get(endpointId) ?? 0) - 1)
  return new Map([...lack].filter(([, count]) => count > 0))
}
