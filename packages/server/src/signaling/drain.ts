import type { Timers } from '../ports/clock.ts'
import type { Connection } from './connection.ts'

export interface DrainOptions {
  /** From the first close to the last, in ms. */
  readonly spreadMs: number
  /** After this time, in ms from the beginning, the drain waits for nobody any more. */
  readonly limitMs: number
  /** Closes when the messages that came on the socket before are done. */
  readonly part: (connection: Connection) => void
  /** Whether the session has a place, or rings as a callee. */
  readonly inCall: (sessionId: string) => Promise<boolean>
  readonly timers: Pick<Timers, 'monotonic' | 'sleep'>
  /** 0 to 1. */
  readonly random: () => number
}

interface Departure {
  readonly connection: Connection
  readonly isInCall: boolean
  /** On the monotonic clock. */
  readonly at: number
}

const tickMs = 20

/**
 * Lets sockets go one by one, each at a random moment of its own: those without calls first, so that the nodes that take
 * over are not all asked at once, and calls move last. Resolves when all are closed, or the limit is over.
 */
export async function drain(connections: readonly Connection[], options: DrainOptions): Promise<void> {
  const { part, inCall, timers, random, spreadMs, limitMs } = options
  const { monotonic } = timers
  const begin = monotonic()
  const end = begin + spreadMs
  let waiting = await plan(connections, begin, options)
  while (monotonic() < begin + limitMs && connections.some(({ isOpen }) => isOpen)) {
    const now = monotonic()
    const later: Departure[] = []
    for (const departure of waiting) {
      // If the sessions' store is away, each question takes its time.
      if (monotonic() >= begin + limitMs) break
      const { connection, isInCall, at } = departure
      if (!connection.isOpen) continue
      if (at > now) later.push(departure)
      // A call has begun meanwhile: it goes with the calls.
      else if (!isInCall && (await inCall(connection.session.sessionId))) {
        later.push({ connection, isInCall: true, at: now + random() * Math.max(0, end - now) })
      } else part(connection)
    }
    waiting = later
    await timers.sleep(tickMs)
  }
}

/** The moments are drawn for all; clients without a call get the earlier ones. */
async function plan(
  connections: readonly Connection[],
  begin: number,
  { inCall, random, spreadMs }: DrainOptions,
): Promise<Departure[]> {
  const known = await Promise.all(
    connections.map(async (connection) => ({ connection, isInCall: await inCall(connection.session.sessionId) })),
  )
  const order = known.map((each) => ({ ...each, lot: random() })).sort(byCallThenLot)
  const moments = order.map(() => begin + random() * spreadMs).sort((one, other) => one - other)
  return order.map(({ connection, isInCall }, i) => ({ connection, isInCall, at: moments[i] ?? begin }))
}

function byCallThenLot(one: { isInCall: boolean; lot: number }, other: { isInCall: boolean; lot: number }): number {
  return Number(one.isInCall) - Number(other.isInCall) || one.lot - other.lot
}
