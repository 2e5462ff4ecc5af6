import type { Outage } from '../call/call.ts'
import type { Cancel, Clock, Jumps, Timers } from '../ports/clock.ts'
import { type Nodes, outageMs, type PeerNode, type Uptime } from '../ports/nodes.ts'
import { createDatabaseClock } from './database-clock.ts'
import { beatLimitMs, beatMs, type Heartbeats } from './heartbeats.port.ts'
import { createSeenNodes, type SeenNodesOptions } from './seen-nodes.ts'

export interface MembersOptions extends Omit<SeenNodesOptions, 'monotonic'> {
  readonly heartbeats: Heartbeats
  /** Whether this node has Redis now: once it serves, people can come back to it. */
  readonly isReady: () => boolean
  /** How many sockets this node has; null while it takes no clients [BAL1]. */
  readonly sockets: () => number | null
  /** No call lasts longer, so an outage that was over before that stops no lost clock any more. In ms [END3]. */
  readonly keptMs: number
  readonly onError: (error: unknown) => void
  /** Their monotonic clock is this machine's: it may stand still with the machine. */
  readonly timers: Timers
}

export interface Members extends Pick<Nodes, 'self' | 'isDead' | 'others' | 'loads'> {
  /** The other nodes that have sessions in their memory: nodes of the previous version do not. */
  owners(): readonly string[]
  /** The nodes that are known to serve, without this one, and what each says of its sockets. */
  peers(): readonly PeerNode[]
  /** The process of a node was found dead: it is dead at once, until it says that it lives. */
  fell(node: string): void
  readonly uptime: Uptime
  /** The database's clock: the same for all nodes, whatever their own say. */
  readonly clock: Clock
  /** The sum of the jumps of the database's clock, as the nodes have agreed. */
  readonly jumps: Jumps
  /** Resolves when the others can know of this node. */
  start(): Promise<void>
  /** People can come back to this node from now on: just before it listens. Resolves when the others can know that. */
  serve(): Promise<void>
  /** Says that this node has left. */
  stop(): Promise<void>
}

/** Nobody is served better by a start that gives up on a database that is slow. */
const startLimitMs = 10_000

/** The nodes that serve on one database, by their heartbeats there. */
export function createMembers(options: MembersOptions): Members {
  const { heartbeats, self, isReady, sockets, keptMs, onError, timers } = options
  const clock = createDatabaseClock(timers)
  const { monotonic } = clock
  const nodes = createSeenNodes({ ...options, monotonic })
  const outages = createOutages(keptMs)
  const { jumps, agree } = createAgreement(heartbeats, outages.move)
  let isServing = false
  /** When a node, and when this one, was last seen to serve with both stores. */
  let servedAt = Number.NEGATIVE_INFINITY
  let readyAt = Number.NEGATIVE_INFINITY
  let sentAt = Number.NEGATIVE_INFINITY
  let stopBeating: Cancel | undefined

  async function beat(limitMs = beatLimitMs): Promise<void> {
    const began = timers.monotonic()
    const sent = monotonic()
    sentAt = sent
    const ready = isServing && isReady()
    // If this node had both stores all the time there was no outage, whatever the clock of the database does.
    const from = outages.from()
    const wasAway = sent - readyAt > outageMs
    const said = { node: self, ready, wasAway, outagesFrom: from, keptMs, sockets: ready ? sockets() : null }
    const { others, ...beaten } = await heartbeats.beat(said, limitMs)
    const moreMs = agree(beaten.jumpedMs)
    clock.learn(beaten.now, sent, monotonic(), others, moreMs)
    // Those that were asked for have moved with the clock: the next beat reads them all.
    if (moreMs === 0) outages.learn(beaten.outages, from, beaten.now)
    servedAt = Math.max(servedAt, sent - (beaten.readyAgeMs ?? Number.POSITIVE_INFINITY))
    if (ready) readyAt = sent
    nodes.learn(others, { began, sent, received: monotonic() })
  }

  return {
    self,
    clock: { now: () => Math.round(clock.now()), monotonic },
    jumps,
    uptime: {
      outages() {
        const awayMs = monotonic() - servedAt
        // Before the end of a start is known, it does not say when an outage ended.
        if (awayMs <= outageMs || !isServing) return outages.known()
        return [...outages.known(), { from: clock.now() - awayMs, to: Number.POSITIVE_INFINITY }]
      },
      // Every beat looks.
      doubt() {},
    },
    isDead: nodes.isDead,
    others: () => nodes.living().map(([name]) => name),
    loads: () => nodes.living().flatMap(([, { sockets }]) => sockets ?? []),
    peers: () => nodes.living().map(([node, { sockets }]) => ({ node, sockets: sockets ?? null })),
    owners: () => nodes.living().flatMap(([name, { ownsSessions }]) => (ownsSessions ? [name] : [])),
    fell: nodes.fell,
    async start() {
      await beat(startLimitMs)
      await clock.sample(() => heartbeats.now(startLimitMs))
      stopBeating = timers.every(beatMs, () => {
        // Beats that a pause held up come all at once: one is enough.
        if (monotonic() - sentAt > beatMs / 2) beat().catch(onError)
      })
    },
    async serve() {
      isServing = true
      // If this beat fails, the outage goes on until the next one.
      await beat(startLimitMs).catch(onError)
    },
    async stop() {
      stopBeating?.()
      await heartbeats.leave(self, beatLimitMs).catch(onError)
      await heartbeats.close()
    },
  }
}

/** What the clock of the database has jumped. `onMore`: the nodes have agreed that it is more than this one knew, in ms. */
function createAgreement(heartbeats: Pick<Heartbeats, 'jump'>, onMore: (ms: number) => void) {
  let jumpedMs: number | undefined

  /** By how much that is more than this node knew. */
  function agree(sum: number): number {
    const moreMs = sum - (jumpedMs ?? sum)
    jumpedMs = sum
    if (moreMs !== 0) onMore(moreMs)
    return moreMs
  }

  const jumps: Jumps = {
    of: 'database',
    sum: () => jumpedMs ?? 0,
    async add(ms, known) {
      agree(await heartbeats.jump(known + ms, known, beatLimitMs))
    },
  }
  return { jumps, agree }
}

/** The outages that are over, as the database says. */
function createOutages(keptMs: number) {
  let outages: readonly Outage[] = []
  /** Outages that began before this are all known; the last one before now may be written down again. */
  let knownFrom = 0
  return {
    known: () => outages,
    from: () => knownFrom,
    /** The clock that they were written by has jumped. */
    move(ms: number): void {
      outages = outages.map(({ from, to }) => ({ from: from + ms, to: to + ms }))
      knownFrom = 0
    },
    /** `read` began at `since` or later. After the database's clock was put back, that may be before the last known one. */
    learn(read: readonly Outage[], since: number, databaseNow: number): void {
      const known = outages.filter(({ from, to }) => from < since && to >= databaseNow - keptMs)
      outages = [...known, ...read]
      knownFrom = outages.findLast(({ from }) => from <= databaseNow)?.from ?? 0
    },
  }
}
