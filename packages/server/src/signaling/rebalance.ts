import type { Journal } from '../observability/journal.ts'
import type { SessionLookup } from '../ports/sessions.ts'
import { createBalance } from './balance.ts'
import type { Connection } from './connection.ts'

/** A socket, as far as it matters here. */
export type Candidate = Pick<Connection, 'session' | 'isOpen' | 'isBusy' | 'openedAt'>

export interface RebalanceOptions<C extends Candidate> {
  /** RINGWIRE_REBALANCE_PER_SECOND. */
  readonly perSecond: number
  readonly connections: () => { readonly size: number; keys(): Iterable<C> }
  /** How many sockets each of the other nodes has that take clients. */
  readonly loads: () => readonly number[]
  readonly sessions: Pick<SessionLookup, 'isIdle'>
  readonly clock: { now(): number; monotonic(): number }
  readonly journal: Pick<Journal, 'rebalancing'>
  /** Sends the client of a connection to another node. */
  readonly part: (connection: C) => void
}

const everyMs = 1_000
/** A socket that has been here for less is left alone, so that nobody is sent around. In ms. */
const settledMs = 60_000
/** A burst ends when the node has closed none for this time, in ms. */
const burstMs = 60_000

/** Sends idle clients of a node that has too many of them to the other nodes, a few each second [BAL1]. */
export function createRebalance<C extends Candidate>(options: RebalanceOptions<C>): { look(): void } {
  const { sessions, clock, journal, loads, part } = options
  const balance = createBalance(options.perSecond)
  let lookedAt = Number.NEGATIVE_INFINITY
  let closedAt = Number.NEGATIVE_INFINITY

  /** Nobody waits for anything on it, and its client can come back. */
  function isIdle({ session, isOpen, isBusy, openedAt }: Candidate, now: number): boolean {
    if (!session.extended || !isOpen || isBusy || now - openedAt < settledMs) return false
    return session.expiresAt > clock.now() && sessions.isIdle(session.sessionId)
  }

  function close(most: number, now: number): number {
    let count = 0
    // The oldest come first.
    for (const connection of options.connections().keys()) {
      if (count === most) break
      if (!isIdle(connection, now)) continue
      part(connection)
      count++
    }
    return count
  }

  return {
    look() {
      const now = clock.monotonic()
      if (now - lookedAt < everyMs) return
      lookedAt = now
      const wasResting = balance.isResting(now)
      const own = options.connections().size
      const surplus = balance.surplus({ own, others: loads(), now })
      if (!wasResting && balance.isResting(now)) journal.rebalancing('rests', own)
      if (surplus === 0) return
      const count = close(surplus, now)
      balance.closed(count)
      if (count === 0) return
      if (now - closedAt > burstMs) journal.rebalancing('begins', own)
      closedAt = now
    },
  }
}
