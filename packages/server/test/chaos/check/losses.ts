import { type FaultRecord, type Frame, type Header, isRelay, type Trace } from '../recording.ts'
import { lengthOf, textOf } from '../relay-text.ts'
import { type Facts, sideOf } from './facts.ts'
import { clockSlackMs, evictionShowsMs, type Report } from './findings.ts'
import { outcomeOf, type Reading, read, type SeenState, type Stretch } from './reading.ts'

/** A loss that was declared: a resume that was refused, or a log that began again under a socket. */
export interface Loss {
  readonly user: string
  readonly state: SeenState
  /** What explains it; undefined: nothing does. */
  readonly reason: string | undefined
}

/** A relay that went out, and may have got into its receiver's log. */
interface Sent {
  readonly sender: string
  readonly frame: Frame
  readonly firstAt: number
}

/** Somebody's session, what was sent to it, and what else is known. */
interface Case {
  readonly reading: Reading
  readonly sent: readonly Sent[]
  readonly facts: Facts
  readonly header: Header
}

/**
 * A log is lost with the node that holds it, and has a limit of size and of time; nothing else explains a loss [RES1,
 * RES2, RES4].
 * `apart`: what people with several phones, or with base clients, saw: what they sent fills the logs of others, too.
 */
export function lossesOf(readings: readonly Reading[], apart: readonly Trace[], facts: Facts, header: Header): Loss[] {
  const relays = [
    ...readings.flatMap(sentIn),
    ...apart.flatMap((trace) => [...sentIn(read(trace)), ...unnumbered(trace)]),
  ]
  const relaysTo = Map.groupBy(relays, (relay) => receiverOf(relay, facts))
  return readings.flatMap((reading) => lossesIn({ reading, sent: relaysTo.get(reading.user) ?? [], facts, header }))
}

function sentIn({ user, requests }: Reading): Sent[] {
  return requests.flatMap((request) => {
    const { frame, firstAt } = request
    return isRelay(frame) && outcomeOf(request) !== 'refused' ? [{ sender: user, frame, firstAt }] : []
  })
}

/** The relays of a base client: they have no number, and nobody answers them. */
function unnumbered({ user, entries }: Trace): Sent[] {
  return entries.flatMap((entry) => {
    if (entry.kind !== 'out' || entry.frame.n !== undefined || !isRelay(entry.frame)) return []
    return [{ sender: user, frame: entry.frame, firstAt: entry.at }]
  })
}

export function checkLosses(losses: readonly Loss[], report: Report): void {
  for (const { user, state, reason } of losses) {
    const what = state.kind === 'new' ? 'recovered: false' : 'session.reset'
    if (reason === undefined) report('resume', `${what} for nothing`, { user, at: state.at })
  }
}

function lossesIn(known: Case): Loss[] {
  const { header, reading } = known
  const { user, states } = reading
  const losses: Loss[] = []
  let blows = blowsTo(user, header)
  for (const state of states) {
    if (state.kind === 'recovered') continue
    if (state.ends !== undefined) {
      const blow = blows.find((each) => each.from <= state.at && state.at <= lastSign(each))
      const reason = blow?.kind ?? limitReached(state, state.ends, known)
      losses.push({ user, state, reason })
      // It cost that log; the one that begins now is a later one.
      blows = blows.filter((each) => each !== blow)
    }
    blows = blows.filter((each) => !isBefore(each, state, header))
  }
  return losses
}

/**
 * What takes a log away. One node has it in memory: it goes with the process. Several have it in Redis: it counts as lost
 * after a restart, whatever is on the disk (docs/decisions/0007-redis.md), and is lost when it is deleted. Nothing else:
 * where a node is killed, terminated, stopped or cut from Redis, or Redis stands still, the log is where it was, and its
 * session goes on, on whichever node (docs/operations.md). What a node that dies forgets of requests costs no log [EXT4].
 */
export function blowsTo(user: string, { nodes, faults, crashes }: Header): FaultRecord[] {
  const ends: FaultRecord[] = crashes.map(({ node, at }) => {
    return { kind: 'node crashed', target: `node-${node}`, from: at, until: at }
  })
  const taking =
    nodes === 1
      ? ['node killed', 'node killed before delivery', 'node terminated', 'node crashed']
      : ['Redis killed', 'Redis emptied']
  return [...faults, ...ends]
    .filter(({ kind, evicted }) => (evicted === undefined ? taking.includes(kind) : evicted.user === user))
    .sort((a, b) => a.from - b.from)
}

/** A log that was lost under a socket is found in this time, where its node reaches Redis, in ms. */
const findingMs = 5_000

/** A log that is gone may show itself whenever its session comes back; one key may be made up for before anybody misses it. */
function lastSign({ evicted, until }: FaultRecord): number {
  return evicted === undefined ? Number.POSITIVE_INFINITY : until + evictionShowsMs + findingMs
}

/**
 * Whether a blow was over when the log began of which a state tells. The log of a new session begins after its socket was
 * opened; a log after `session.reset` when its node had found out all that there was to find out.
 */
function isBefore({ until: end }: FaultRecord, { kind, at, openedAt, node }: SeenState, { faults }: Header): boolean {
  if (kind === 'new') return end <= openedAt
  const away = faults.filter(({ target }) => target === 'Redis' || target === `node-${node}`)
  let found = end + findingMs
  for (const { from, until } of away.sort((a, b) => a.from - b.from))
    if (until >= end && from <= found) found = Math.max(found, until + findingMs)
  return found <= at
}

/** The size of a log [RES1], but for notices of the calls themselves, which are few. */
const kept = { events: 512 - 64, units: 1024 * 1024 - 64 * 1024 }
/** What a relay has beside its text. */
const envelopeUnits = 300

/** A session can be resumed for a limited time, and its log has a limited size [RES1]. */
function limitReached(state: SeenState, ended: Stretch, known: Case): string | undefined {
  const { at, kind } = state
  if (kind === 'new' && at - goneAt(state, known) > known.header.resumeWindowMs) return 'after the resume window'
  // It took the places of this one, and what was waiting there: no resume of this one is exact after that [PLACE2].
  if (kind === 'new' && state.begunElsewhere) return 'another session of this phone began'
  const missed = missedBy(state, ended, known)
  const units = missed.reduce((sum, { frame }) => sum + lengthOf(frame) + envelopeUnits, 0)
  return missed.length > kept.events || units > kept.units ? 'more missed than a log keeps' : undefined
}

/** A node that stands still is soon dead to the others, and its sockets with it, whatever their clients see. */
const noticedMs = 10_000

/** When a phone lost the socket that it had before, as the service has it: the earliest that it may be. */
function goneAt({ at }: SeenState, { reading, header }: Case): number {
  const until = reading.online.findLast(({ from }) => from < at)?.until ?? at
  const node = reading.states.findLast((state) => state.at < at)?.node
  const still = header.faults.filter(({ kind, target, from, until: whole }) => {
    const isHere = target === 'nodes' || target === `node-${node}`
    return /^(all )?nodes? stopped/.test(kind) && isHere && from < until && until < whole + noticedMs
  })
  return Math.min(until, ...still.map(({ from }) => from))
}

/** Relays that may have been in the log when it ended, after the last push that its phone saw. */
function missedBy({ at, index }: SeenState, { from, pushes }: Stretch, known: Case): Sent[] {
  const { reading, sent, facts, header } = known
  const seen = reading.stretches.flatMap((stretch) => stretch.pushes).filter((push) => push.index < index)
  const came = Map.groupBy(
    seen.filter(({ frame }) => isRelay(frame)),
    ({ frame }) => nameOf(frame, frame.data?.from_user_id),
  )
  const lastAt = pushes.findLast(({ frame }) => frame.seq !== undefined)?.at ?? from
  return sent.filter(({ sender, frame, firstAt }) => {
    const endedAt = facts.get(frame.data?.call_uuid ?? '')?.row.ended_at ?? Number.POSITIVE_INFINITY
    const isOpen = firstAt <= at && endedAt + clockSlackMs > header.startedAt + lastAt
    const hasCome = came.get(nameOf(frame, sender))?.pop() !== undefined
    return isOpen && !hasCome
  })
}

/** Of several phones of one person each has a counter of its own, so two relays may have one name. */
function nameOf(frame: Frame, sender: string | undefined): string {
  return `${frame.data?.call_uuid} ${sender} ${textOf(frame)}`
}

function receiverOf({ frame, sender }: Sent, facts: Facts): string | undefined {
  const fact = facts.get(frame.data?.call_uuid ?? '')
  const side = fact === undefined ? undefined : sideOf(fact, sender)
  return side === undefined ? undefined : fact?.row[side === 'caller' ? 'callee' : 'caller']
}
