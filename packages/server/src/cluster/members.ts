import type { Outage } from '../call/call.ts'
import type { Cancel, Clock, Timers } from '../ports/clock.ts'
import { isReplacedBy } from '../ports/node-name.ts'
import { type NodeDeath, type Nodes, outageMs, type Uptime } from '../ports/nodes.ts'
import { forgetOldest } from '../ports/oldest.ts'
import type { Deaths } from './deaths.ts'
import type { Heartbeats, OtherNode } from './heartbeats.port.ts'

export interface MembersOptions {
  readonly heartbeats: Heartbeats
  /** Names this run of this node: no other has had the name. */
  readonly self: string
  /** Nodes that were found dead, by either store: one that counts on lives. */
  readonly deaths: Pick<Deaths, 'said' | 'has'>
  /** Whether the other store, where nodes say that they live, too, is sure to have no word of one [END3]. */
  readonly isGone: (node: string) => boolean
  /** Whether one said lately in that store that it lives. */
  readonly saysItLives: (node: string) => boolean
  /** Whether this node has the other store now: once it serves, people can come back to it. */
  readonly isReady: () => boolean
  /** How many sockets this node has; null while it takes no clients [BAL1]. */
  readonly sockets: () => number | null
  /** No call lasts longer: what was over before that stops no lost clock any more, in ms [END3]. */
  readonly keptMs: number
  /** A node is known to be dead that was not before. */
  readonly onDeath: (death: NodeDeath) => void
  readonly onError: (error: unknown) => void
  /** Their monotonic clock is this machine's: it may stand still with the machine. */
  readonly timers: Timers
}

export interface Members extends Pick<Nodes, 'self' | 'isDead' | 'others' | 'loads'> {
  /** Those of the others that have sessions in their memory: nodes of the version before do not. */
  owners(): readonly string[]
  /** The process of a node was found dead: it is dead at once, until it says that it lives. */
  fell(node: string): void
  readonly uptime: Uptime
  /** The database's clock: the same for all nodes, whatever their own say. */
  readonly clock: Clock
  /** Resolves when the others can know of this node. */
  start(): Promise<void>
  /** People can come back to this node from now on: just before it listens. Resolves when the others can know that. */
  serve(): Promise<void>
  /** Says that this node has left. */
  stop(): Promise<void>
}

const beatMs = 1_000
/** A beat that takes longer is none. */
const beatLimitMs = 2_000
/** Nobody is served better by a start that gives up on a database that is slow. */
const startLimitMs = 10_000
/** Whose count stands still for so long, while this node's own goes on, is silent here. */
const deadMs = 5_000
/** Samples of the database's clock of which the one with the shortest way is believed. */
const samples = 16
/** Two samples that are further apart than the ways there and back explain, by so much, are of two clocks. */
const jumpMs = 200
/** A clock whose best sample took no longer is known well enough to serve by it, in ms. */
const wellKnownMs = 50
const mostMissing = 1_000

interface Seen {
  beats: number
  hasLeft: boolean
  readonly ownsSessions: boolean
  sockets: number | null
  /** It has counted since this node began to look, or had just before. */
  wasHeard: boolean
  /** When its count was first seen at what it is, on the monotonic clock. */
  since: number
  /** The database's word for how long ago that was, as it was first seen. */
  ageMs: number
}

/** The nodes that serve on one database, by their heartbeats there. */
export function createMembers(options: MembersOptions): Members {
  const { heartbeats, self, deaths, isGone, saysItLives, isReady, sockets, keptMs, onDeath, onError, timers } = options
  const seen = new Map<string, Seen>()
  const dead = new Set<string>()
  const offsets: { readonly offset: number; readonly way: number }[] = []
  let offset = 0
  /** For how long this machine's monotonic clock is known to have stood still, in ms. */
  let stood = 0
  const monotonic = () => timers.monotonic() + stood
  /** When this machine and the database last agreed on how time passes, and everybody's count then. */
  let agreed: { readonly at: number; readonly beats: ReadonlyMap<string, number> } = { at: 0, beats: new Map() }
  /** The last beat did not agree. Nobody may have counted since the one before: another beat shows whose clock it was. */
  let inDoubt = false
  let outages: readonly Outage[] = []
  /** Those that began before are all known; the last one before now may be written down again. */
  let outagesFrom = 0
  let isServing = false
  /** When a node, and when this one, was last seen to serve with both stores. */
  let servedAt = Number.NEGATIVE_INFINITY
  let readyAt = Number.NEGATIVE_INFINITY
  /** Since when this node's own beats have come without a gap. */
  let since = 0
  let beatAt = Number.NEGATIVE_INFINITY
  let sentAt = Number.NEGATIVE_INFINITY
  let stopBeating: Cancel | undefined
  let lookedAt = Number.NEGATIVE_INFINITY
  /** Names that no look has shown, and when somebody asked for them first. */
  const missing = new Map<string, number>()

  async function beat(limitMs = beatLimitMs): Promise<void> {
    const began = timers.monotonic()
    const sent = monotonic()
    sentAt = sent
    const ready = isServing && isReady()
    // Where this node had both stores all the time there was no outage, whatever the clock of the database does.
    const from = outagesFrom
    const wasAway = sent - readyAt > outageMs
    const said = { node: self, ready, wasAway, outagesFrom: from, keptMs, sockets: ready ? sockets() : null }
    const { others, ...beaten } = await heartbeats.beat(said, limitMs)
    learnClock(beaten.now, sent, monotonic(), others)
    const now = monotonic()
    learnOutages(beaten.outages, from, beaten.now)
    servedAt = Math.max(servedAt, sent - (beaten.readyAgeMs ?? Number.POSITIVE_INFINITY))
    if (ready) readyAt = sent
    // Who could not look does not know for how long the others stood still.
    if (now - beatAt > 2 * beatMs + beatLimitMs) {
      since = now
      for (const each of seen.values()) each.since = now
    }
    const lookMs = now - beatAt
    beatAt = now
    lookedAt = sent
    for (const other of others) learnOther(other, began, now, lookMs)
    for (const [name, each] of seen) {
      if (!dead.has(name) && (each.hasLeft || isReplaced(name) || isSilent(name, each, now))) {
        dead.add(name)
        onDeath({ node: name, hasLeft: each.hasLeft, isPast: !each.wasHeard })
      }
    }
  }

  /** What was read from `since` on; by a clock that was put back the next one may begin before the last that is known. */
  function learnOutages(read: readonly Outage[], since: number, databaseNow: number): void {
    const known = outages.filter(({ from, to }) => from < since && to >= databaseNow - keptMs)
    outages = [...known, ...read]
    outagesFrom = outages.findLast(({ from }) => from <= databaseNow)?.from ?? 0
  }

  /** In both stores: one that is cut from this one alone serves. */
  function isSilent(name: string, { since }: Seen, now: number): boolean {
    return now - since > deadMs && isGone(name)
  }

  /** Its node runs again. */
  function isReplaced(name: string): boolean {
    return isReplacedBy(name, self) || [...seen.keys()].some((other) => isReplacedBy(name, other))
  }

  function learnOther(other: OtherNode, began: number, now: number, lookMs: number): void {
    const { name, beats, hasLeft, ageMs, ownsSessions, sockets } = other
    const known = seen.get(name)
    missing.delete(name)
    if (known === undefined) {
      const wasHeard = !hasLeft && ageMs <= deadMs
      seen.set(name, { beats, hasLeft, ownsSessions, sockets, wasHeard, since: now, ageMs })
    } else if (known.beats !== beats || known.hasLeft !== hasLeft) {
      // It counted on since the last look, also where the database's clock says that it was long before.
      Object.assign(known, { beats, hasLeft, sockets, wasHeard: true, since: now, ageMs: Math.min(ageMs, lookMs) })
      // This count may be from before its process was found dead.
      if (!hasLeft) deaths.said(name, began - ageMs)
      if (!hasLeft && !isReplaced(name) && !deaths.has(name)) dead.delete(name)
    }
  }

  /** The answer was made somewhere between the question and now: the shorter the way, the nearer the middle is to it. */
  function learnClock(databaseNow: number, sent: number, received: number, others: readonly OtherNode[]): void {
    const half = (received - sent) / 2
    const moved = databaseNow - (sent + half) - offset
    const isOther = offsets.some(
      (each) => Math.abs(databaseNow - (sent + half) - each.offset) > half + each.way / 2 + jumpMs,
    )
    if (isOther && stoodStill(moved, received - agreed.at, others)) {
      // What the others did meanwhile took its time: this machine did not see it pass.
      stood += moved
      learnClock(databaseNow, sent + moved, received + moved, others)
      return
    }
    if (isOther && !inDoubt && moved > 0 && others.length > 0) {
      inDoubt = true
      return
    }
    // The database's clock jumped, or it is another database by now: what it said before says nothing any more.
    if (isOther) offsets.length = 0
    offsets.push({ offset: databaseNow - (sent + received) / 2, way: received - sent })
    if (offsets.length > samples) offsets.shift()
    offset = bestSample().offset
    inDoubt = false
    agreed = { at: received, beats: new Map(others.map(({ name, beats }) => [name, beats])) }
  }

  function bestSample() {
    return offsets.reduce((best, each) => (each.way < best.way ? each : best))
  }

  /** Whether others counted on for as long as the database says, rather than for as long as this machine's clock says. */
  function stoodStill(moved: number, elapsed: number, others: readonly OtherNode[]): boolean {
    const counted = others.map(({ name, beats }) => beats - (agreed.beats.get(name) ?? beats))
    return Math.max(0, ...counted) * beatMs > elapsed + moved / 2 && moved > 0
  }

  const living = () => [...seen].filter(([name, { ageMs }]) => !dead.has(name) && ageMs <= deadMs)

  return {
    self,
    clock: { now: () => Math.round(monotonic() + offset), monotonic },
    uptime: {
      outages() {
        const awayMs = monotonic() - servedAt
        // Before the end of a start is known, nobody's end is told by it.
        if (awayMs <= outageMs || !isServing) return outages
        return [...outages, { from: monotonic() + offset - awayMs, to: Number.POSITIVE_INFINITY }]
      },
      // Every beat looks.
      doubt() {},
    },
    isDead(node) {
      if (node === self) return false
      const known = seen.get(node)
      // One that stood still, and goes on, says so there before the next look shows it here.
      if (known !== undefined) return dead.has(node) && (known.hasLeft || isReplaced(node) || !saysItLives(node))
      const now = monotonic()
      const askedAt = missing.get(node) ?? now
      missing.set(node, askedAt)
      forgetOldest(missing, mostMissing)
      // One that left no trace: its call is older than a day, or the database's. One that has just started the next look shows.
      return lookedAt > askedAt && now - since > deadMs && now - beatAt < deadMs && isGone(node)
    },
    others: () => living().map(([name]) => name),
    loads: () => living().flatMap(([, { sockets }]) => sockets ?? []),
    owners: () => living().flatMap(([name, { ownsSessions }]) => (ownsSessions ? [name] : [])),
    fell(node) {
      const known = seen.get(node)
      if (known === undefined || dead.has(node)) return
      dead.add(node)
      onDeath({ node, hasLeft: known.hasLeft, isPast: false })
    },
    async start() {
      await beat(startLimitMs)
      // One answer of a database that is busy may be off by half of the time that it took, and what begins by a wrong clock
      // would take the right one for a jump.
      for (let n = 0; n < samples && bestSample().way > wellKnownMs; n++) {
        const sent = monotonic()
        learnClock(await heartbeats.now(startLimitMs), sent, monotonic(), [])
      }
      stopBeating = timers.every(beatMs, () => {
        // Those that a pause held up come all at once: one is enough.
        if (monotonic() - sentAt > beatMs / 2) beat().catch(onError)
      })
    },
    async serve() {
      isServing = true
      // Where it is not taken the next one is; until then the outage goes on.
      await beat(startLimitMs).catch(onError)
    },
    async stop() {
      stopBeating?.()
      try {
        await heartbeats.leave(self, beatLimitMs)
      } catch (error) {
        onError(error)
      }
      await heartbeats.close()
    },
  }
}
