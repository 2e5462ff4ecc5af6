// Over 350 lines: it is one model, the states of a call with all that they share.
import type { Capability } from '@ringwire/protocol/capabilities'
import type { OverStatus } from '@ringwire/protocol/end-reasons'

/** A participant is (product, role, user_id) [ID1]. */
export interface Participant {
  readonly product: string
  readonly role: string
  readonly userId: string
}

/** A participant as one string, equal exactly where the three parts are equal; it says itself where it ends. */
export function participantKey(participant: Participant): string {
  if (participant !== lastOne) {
    const { product, role, userId } = participant
    lastKey = `${product.length}:${role.length}:${userId.length}:${product}${role}${userId}`
    lastOne = participant
  }
  return lastKey
}

/** Whose key was asked for last. A connection asks for one again and again, and every new text has to be hashed anew. */
let lastOne: Participant | undefined
let lastKey = ''

export function sameParticipant(a: Participant, b: Participant): boolean {
  return a.userId === b.userId && a.role === b.role && a.product === b.product
}

/** A call is named by its product and its call_uuid, which is always in lower case here [UUID1]. */
export interface CallRef {
  readonly product: string
  readonly callUuid: string
}

/** A call as one string: the uuid has a fixed length, so nothing is ambiguous. */
export function callKey(ref: CallRef): string {
  return ref.callUuid + ref.product
}

/** The call of a key. */
export function refOf(key: string): CallRef {
  return { callUuid: key.slice(0, uuidLength), product: key.slice(uuidLength) }
}

const uuidLength = 36

export type Side = 'caller' | 'callee'
export function otherSide(side: Side): Side {
  return side === 'caller' ? 'callee' : 'caller'
}

/** One of the two people of a call, as the call remembers them. */
export interface Party {
  readonly userId: string
  readonly role: string
  /** The callee's name is known once it accepted. */
  readonly displayName: string | null
}

/**
 * The place of one side of a call [PLACE1]. `settled` says that its holder has itself sent something about the call;
 * until then the place passes on to a session that does [PLACE2]. `since` is when it fell vacant, in ms since the epoch;
 * `closed`: its holder's client closed the socket itself [END5]. `awaitedMs`: the service closed the socket with 1012. It tells
 * the other side of the absence only if the client is not back this many milliseconds after `since` [PEER1].
 */
interface PlaceBase {
  readonly sessionId: string
  readonly deviceId: string | null
  readonly node: string
  readonly settled: boolean
  /** Capabilities that the holder's client listed when it connected; absent if it listed nothing [EXT6]. */
  readonly can?: readonly Capability[]
}
export type Place =
  | (PlaceBase & { readonly state: 'held' })
  | (PlaceBase & {
      readonly state: 'vacant'
      readonly since: number
      readonly closed?: true
      readonly awaitedMs?: number
    })

/** Of a call that is being transferred: the uuid of the call that rings for it, and the side that asked for that [XFER1]. */
export interface Transferring {
  readonly to: string
  readonly by: Side
}

/**
 * Of a call that began as a transfer: the uuid of the call before it, the person who asked for the transfer, and when the
 * first call began, in ms since the epoch. The caller's token must have been valid at that instant [WS5].
 */
export interface Transferred {
  readonly from: string
  readonly by: Party
  readonly firstStartedAt: number
  /** Of a consultation: the same for the callee, who was in a call with the same person. */
  readonly secondStartedAt?: number
}

/** Of a call to a group. Until one of its members accepts, the callee's user_id is blank [GROUP1]. */
export interface CallGroup {
  readonly name: string
  /** The user_ids of those at whom it rings, or rang; of the callee's role. What is kept of an answered call: see `endOf`. */
  readonly members: readonly string[]
  /** Of these, those who declined. */
  readonly declined: readonly string[]
  /** Those who left the group while it rang. The events of the call name them, so an erasure has to find it [SRV2]. */
  readonly left?: readonly string[]
  /** Until it is over: whose turn it is, where the members ring one after another. Then it may ring at all members in time. */
  readonly turns?: Turns
}

/** Of a call that rings at one member of a group after another [GROUP1]. Instants are in ms since the epoch. */
export interface Turns {
  /** At whom it rings, by user_id; null: at nobody, until the next turn begins. */
  readonly member: string | null
  /** When the turn is over, or the next one begins. */
  readonly until: number
  /** How long a turn is, in ms. */
  readonly memberRingMs: number
  /** Where in the list of members the rest of the round begins. A round goes through the list once. */
  readonly next: number
  /** How many turns have begun. */
  readonly count: number
  /** Whether it rang at somebody in this round. */
  readonly hasRung: boolean
  /** At whom it has rung, each once. */
  readonly rang: readonly string[]
}

/** A clock, and by how many ms it had jumped in all. See `Jumps`. */
export interface CallClock {
  readonly of: string
  readonly jumpedMs: number
}

interface CallBase extends CallRef {
  /** 1 for a new call, one more with every transition. */
  readonly version: number
  readonly caller: Party
  readonly callee: Party
  readonly contextType: string
  readonly contextId: string
  readonly callType: string
  readonly metadata: Readonly<Record<string, unknown>> | null
  /** Of a call that the backend redirected: the fingerprint of whom the client called [HOOK5]. */
  readonly redirectedFrom?: string
  /** While it is being transferred: the call that rings for it at the target, and the side that transfers it [XFER1]. */
  readonly transferring?: Transferring
  /** It ended because it was transferred: the call that goes on instead, by its uuid. */
  readonly transferredTo?: string
  /** It began as a transfer. */
  readonly transferred?: Transferred
  /** It was made to a group. */
  readonly group?: CallGroup
  /** By what its deadlines were written; absent: by a clock that has not jumped [END3]. */
  readonly clock?: CallClock
  /** Instants are milliseconds since the epoch. */
  readonly startedAt: number
  readonly ringTimeoutMs: number
  readonly ringExpiresAt: number
}

/*
 *            invite          accept            connected
 *   (none) ─────────▶ ringing ─────▶ accepted ─────────▶ connected
 *                        │               │                   │
 *     rejected ◀─ reject ┤               ├─ cancel ▶ cancelled
 *    cancelled ◀─ cancel ┤               └─ end ───┬─────────┘
 *       missed ◀─ timeout┘                         ▼
 *   busy (an invite that the product refuses)    ended
 */
export interface RingingCall extends CallBase {
  readonly status: 'ringing'
  readonly callerPlace: Place
  /** Sessions of the callee that said they are busy. */
  readonly silenced: readonly string[]
}

export interface AnsweredCall extends CallBase {
  readonly status: 'accepted' | 'connected'
  readonly callerPlace: Place
  readonly calleePlace: Place
  readonly acceptedAt: number
  readonly connectedAt: number | null
}

export interface OverCall extends CallBase {
  readonly status: OverStatus
  /** The places as they were at the end: final notices go there. */
  readonly callerPlace: Place
  readonly calleePlace: Place | null
  readonly acceptedAt: number | null
  readonly connectedAt: number | null
  readonly endedAt: number
  /** One of `endReasons`, or what a client gave [END2]. */
  readonly endReason: string
}

export type LiveCall = RingingCall | AnsweredCall
export type Call = LiveCall | OverCall

export function isLive(call: Call): call is LiveCall {
  return call.status === 'ringing' || call.status === 'accepted' || call.status === 'connected'
}

export function isAnswered(call: Call): call is AnsweredCall {
  return call.status === 'accepted' || call.status === 'connected'
}

/**
 * The other call of a transfer, for as long as what happens to the one decides about the other, too [XFER1]: the call that
 * rings at the target, or the one that is being transferred.
 */
export function linkOf(call: Call): CallRef | undefined {
  if (!isLive(call)) return undefined
  const callUuid = call.status === 'ringing' ? call.transferred?.from : call.transferring?.to
  return callUuid === undefined ? undefined : { product: call.product, callUuid }
}

/** The call that a transfer made of this one, or is to make of it [XFER1]. */
export function nextOf({ product, transferring, transferredTo }: Call): CallRef | undefined {
  const callUuid = transferring?.to ?? transferredTo
  return callUuid === undefined ? undefined : { product, callUuid }
}

/** Two answered calls became this one: it was answered from its first version on, and rang nowhere [XFER1]. */
export function wasJoined({ transferred }: Pick<Call, 'transferred'>): boolean {
  return transferred?.secondStartedAt !== undefined
}

/** The side on which a participant takes part, if any. */
export function sideOf(call: Call, participant: Participant): Side | undefined {
  if (call.product !== participant.product) return undefined
  if (isParty(call.caller, participant)) return 'caller'
  if (isParty(call.callee, participant)) return 'callee'
  return undefined
}

function isParty(party: Party, participant: Participant): boolean {
  return party.userId === participant.userId && party.role === participant.role
}

/** Whether a call to a group rings, or rang, at somebody: one of them may have answered it, or none [GROUP1]. */
export function isMember({ product, callee, group }: Call, participant: Participant): boolean {
  if (group === undefined || product !== participant.product || callee.role !== participant.role) return false
  return group.members.includes(participant.userId) || group.declined.includes(participant.userId)
}

/** The side on which a participant has to do with a call: it takes part, or the call rings, or rang, at it. */
export function sideAbout(call: Call, participant: Participant): Side | undefined {
  return sideOf(call, participant) ?? (isMember(call, participant) ? 'callee' : undefined)
}

/** Whether a call names a participant in any way: it has to do with it, or transferred it to the two who are in it. */
export function isNamedIn(call: Call, participant: Participant): boolean {
  const { product, transferred } = call
  const isTransferrer = transferred !== undefined && isParty(transferred.by, participant)
  return (isTransferrer && product === participant.product) || sideAbout(call, participant) !== undefined
}

/** Whether a call rings at a participant now. */
export function ringsAt(call: Call, participant: Participant): boolean {
  if (call.status !== 'ringing') return false
  if (call.group === undefined) return sideOf(call, participant) === 'callee'
  const { declined, turns } = call.group
  if (turns !== undefined && turns.member !== participant.userId) return false
  return isMember(call, participant) && !declined.includes(participant.userId)
}

/** Those at whom a call rings, or rang until it was answered or over: without those who declined, and in turns one only. */
export function rungBy(call: Call): readonly Participant[] {
  const { product, callee, group } = call
  if (group === undefined) return [participantOf(call, 'callee')]
  const { turns } = group
  const rung = membersLeft(group).filter((userId) => turns === undefined || turns.member === userId)
  const members = rung.map((userId) => ({ product, role: callee.role, userId }))
  // From the end on the one who answered is not among the members.
  return isLive(call) || call.acceptedAt === null ? members : [participantOf(call, 'callee'), ...members]
}

/** The members of a called group who did not decline. */
export function membersLeft({ members, declined }: CallGroup): readonly string[] {
  return members.filter((userId) => !declined.includes(userId))
}

export function participantOf(call: Call, side: Side): Participant {
  const party = side === 'caller' ? call.caller : call.callee
  return { product: call.product, role: party.role, userId: party.userId }
}

/** A blank user_id, which nobody can have, stands for an erased participant [SRV2]. */
const isErased = ({ userId }: Party) => userId === ''

/**
 * The place of a side; the callee's side has none while the call rings [PLACE1], and an erased participant has none any
 * more [SRV2].
 */
export function placeOf(call: Call, side: Side): Place | null {
  if (isErased(call[side])) return null
  if (side === 'caller') return call.callerPlace
  return call.status === 'ringing' ? null : call.calleePlace
}

/** Whether a participant has a place in a live call: it called, or answered. Whether somebody is there does not matter. */
export function takesPartIn(call: LiveCall, participant: Participant): boolean {
  const side = sideOf(call, participant)
  return side !== undefined && placeOf(call, side) !== null
}

/** Vacant, because its holder's client closed the socket itself. */
export function isClosed(place: Place): place is Extract<Place, { readonly state: 'vacant' }> {
  return place.state === 'vacant' && place.closed === true
}

type Awaited = Extract<Place, { readonly state: 'vacant' }> & { readonly awaitedMs: number }

/** Vacant, because the service told its holder's client to come back. */
export function isAwaited(place: Place): place is Awaited {
  return place.state === 'vacant' && place.awaitedMs !== undefined
}

/** A time in which nobody could come back: no node served, or a store was away. In ms since the epoch. */
export interface Outage {
  readonly from: number
  /** Infinity: it goes on. */
  readonly to: number
}

/** How long things last, in milliseconds [RING1, END3]. */
export interface CallDurations {
  readonly callerLostMs: number
  readonly peerLostMs: number
  readonly maxDurationMs: number
  /** When lost clocks did not run: oldest first, and none within another. */
  readonly outages?: readonly Outage[]
}

/** The next instant at which time by itself changes the call, if there is one. */
export function nextDeadline(call: Call, durations: CallDurations): number | undefined {
  if (!isLive(call)) return undefined
  const places = isAnswered(call) ? [call.callerPlace, call.calleePlace] : [call.callerPlace]
  const awaited = places.filter(isAwaited).map((place) => awaitedUntil(place, durations))
  const turns = call.status === 'ringing' ? call.group?.turns : undefined
  return Math.min(deadlineOf(call, durations), ...awaited, turns?.until ?? Number.POSITIVE_INFINITY)
}

/** When time ends the call. A live call always has one: nothing rings or goes on for ever. */
export function deadlineOf(call: LiveCall, durations: CallDurations): number {
  if (call.status === 'ringing') {
    const { callerPlace } = call
    if (callerPlace.state === 'held') return call.ringExpiresAt
    return Math.min(call.ringExpiresAt, lostAt(callerPlace.since, durations.callerLostMs, durations.outages))
  }
  const { callerPlace, calleePlace } = call
  let deadline = call.acceptedAt + durations.maxDurationMs
  for (const place of [callerPlace, calleePlace]) {
    if (place.state !== 'vacant') continue
    deadline = Math.min(deadline, lostAt(place.since, durations.peerLostMs, durations.outages))
  }
  // Two people who close their tabs have hung up; one who reloads is back sooner [END5].
  if (!isClosed(callerPlace) || !isClosed(calleePlace)) return deadline
  const since = Math.max(callerPlace.since, calleePlace.since)
  return Math.min(deadline, lostAt(since, durations.callerLostMs, durations.outages))
}

/** When the other side hears that this one is away. It is a clock like the lost ones: it stands still in an outage. */
export function awaitedUntil({ since, awaitedMs }: Awaited, { outages }: CallDurations): number {
  return lostAt(since, awaitedMs, outages)
}

/**
 * When a lost clock runs out. It stands still in an outage. After the first one it starts again in full; after later ones it
 * goes on where it stood, so that a store that comes and goes keeps no dead call alive [END3].
 */
export function lostAt(since: number, lostMs: number, outages: readonly Outage[] = []): number {
  let due = since + lostMs
  let isFirst = true
  for (const { from, to } of outages) {
    if (to <= since) continue
    if (from >= due) break
    due = isFirst ? to + lostMs : due + to - from
    isFirst = false
  }
  return due
}
