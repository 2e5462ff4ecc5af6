import { deepFreeze, start, uuidOf } from '../../src/call/call.fixture.ts'
import type { Call, CallDurations, LiveCall, Participant, Place, Side } from '../../src/call/call.ts'
import { isLive } from '../../src/call/call.ts'
import type { Actor } from '../../src/call/command.ts'
import { violated } from './machine.ts'

/** A small world: people, the sessions that they have, the calls between them, and the pushes of each session. */

export interface Setup {
  readonly people: readonly Participant[]
  /** The device of each session that one person may have at a time. */
  readonly devices: readonly (string | null)[]
  /** The nodes that serve. Each of a person's sessions begins on another one, where there are enough. */
  readonly nodes: readonly [string, string]
  readonly durations: CallDurations
  readonly ringTimeoutMs: number
  readonly maxRinging: number
  readonly busy: 'allow' | 'reject'
}

/**
 * One client and its session, if it has one. `dead`: its network is gone, and the service does not know that yet.
 */
export interface Client {
  readonly person: number
  readonly device: string | null
  readonly line: 'off' | 'live' | 'dead'
  /** The node of its session, now or last. */
  readonly node: string
  /** The node that its session left for another one, and that has not seen yet that the socket there is gone. */
  readonly behind: string | undefined
  readonly actor: Actor | undefined
  /** The session that it had: it may come back as the same, or as a new one that names it [RES1, RES2]. */
  readonly left: { readonly actor: Actor; readonly resumable: boolean } | undefined
}

/** What a session has heard about a call, as bits. */
export const rung = 1
/** It knows that the call does not ring for it any more. */
export const silent = 2
/** It knows that the call is over: nothing more may come. */
export const final = 4

export interface TrackedCall {
  readonly call: Call
  readonly caller: number
  readonly callee: number
  /** By client. */
  readonly told: readonly number[]
}

export interface World {
  readonly now: number
  readonly sessionsMade: number
  readonly callsMade: number
  readonly clients: readonly Client[]
  readonly calls: readonly TrackedCall[]
}

/** A world while an event happens to it. */
export interface Draft {
  now: number
  sessionsMade: number
  callsMade: number
  readonly clients: Client[]
  readonly calls: TrackedCall[]
}

export type Verb = 'accept' | 'connected' | 'reject' | 'busy' | 'cancel' | 'end' | 'relay' | 'take'
export const verbs: readonly Verb[] = ['accept', 'connected', 'reject', 'busy', 'cancel', 'end', 'relay', 'take']

/** What can happen. Clients and calls are named by their index. */
export type WorldEvent =
  | { readonly what: 'close' | 'die' | 'observe'; readonly client: number }
  /** Its node closes the socket, and tells the client to come back [PEER1]. */
  | { readonly what: 'drain'; readonly client: number }
  /** The same session again, on any node. `unnoted`: the calls do not know that yet. */
  | { readonly what: 'resume'; readonly client: number; readonly node: string; readonly unnoted?: true }
  /** The node that a session left sees that; the node that it came to finds that the calls do not know it. */
  | { readonly what: 'late' | 'note'; readonly client: number }
  /** A new session, which may name the one that its client had; where none is said, on the node of the first. */
  | { readonly what: 'connect'; readonly client: number; readonly names?: true; readonly node?: string }
  | { readonly what: Verb; readonly client: number; readonly call: number; readonly reason?: string }
  | {
      readonly what: 'invite'
      readonly client: number
      readonly to: number
      /** The call whose uuid it carries, or a new uuid. */
      readonly uuid: number | 'new'
      readonly rateExceeded?: boolean
      readonly isVideo?: true
      readonly busy?: 'allow' | 'reject'
    }
  /** The next deadline passes: its timer fires in time, or the sweep comes late. */
  | { readonly what: 'timer' | 'sweep' }
  /** 5 s pass in which no deadline does: another device may take what was left before them [PLACE2 c]. */
  | { readonly what: 'wait' }
  /** The service was away and lost every socket, or every one but those of a node that serves. */
  | { readonly what: 'restart'; readonly serving?: string }
  | { readonly what: 'shift'; readonly ms: number }
  /** The application backend ends a call. */
  | { readonly what: 'stop'; readonly call: number }

export function newWorld(setup: Setup): World {
  const off = { line: 'off', behind: undefined, actor: undefined, left: undefined } as const
  const clients = setup.people.flatMap((_, person) =>
    setup.devices.map((device, n): Client => ({ ...off, person, device, node: homeOf(setup, n) })),
  )
  return { now: start, sessionsMade: 0, callsMade: 0, clients, calls: [] }
}

/** The node of a client's sessions, unless they go elsewhere. */
export function homeOf(setup: Setup, client: number): string {
  return setup.nodes[(client % setup.devices.length) % setup.nodes.length]!
}

export function otherNode(setup: Setup, node: string): string {
  const [one, two] = setup.nodes
  return node === one ? two : one
}

export function draftOf(world: World): Draft {
  return { ...world, clients: [...world.clients], calls: [...world.calls] }
}

/** A new session of a client: it has heard nothing yet. */
export function openSession(draft: Draft, setup: Setup, client: number, node: string): Actor {
  const { person, device } = draft.clients[client]!
  draft.sessionsMade++
  const participant = setup.people[person]!
  const sessionId = `s${draft.sessionsMade}`
  const actor: Actor = deepFreeze({
    participant,
    sessionId,
    deviceId: device,
    node,
    displayName: participant.userId,
  })
  draft.clients[client] = { person, device, line: 'live', node, behind: undefined, actor, left: undefined }
  forgetTold(draft, client)
  return actor
}

/** The same session on another socket: it knows what it has heard [RES1]. On its node it replaces the one that was there. */
export function resumeSession(draft: Draft, client: number, node: string): Actor {
  const { actor: current, left, ...rest } = draft.clients[client]!
  const before = current ?? (left?.resumable ? left.actor : undefined)
  if (before === undefined) return violated('world', 'a session that is not there came back')
  const actor: Actor = deepFreeze({ ...before, node })
  const leaves = rest.line === 'dead' && rest.node !== node ? rest.node : rest.behind
  draft.clients[client] = {
    ...rest,
    line: 'live',
    node,
    behind: leaves === node ? undefined : leaves,
    actor,
    left: undefined,
  }
  return actor
}

/** The session has no socket any more; its knowledge goes with it, unless it can come back. */
export function closeSession(draft: Draft, client: number, resumable: boolean) {
  const { actor: current, left, ...rest } = draft.clients[client]!
  const actor = current ?? left?.actor
  draft.clients[client] = {
    ...rest,
    line: 'off',
    actor: undefined,
    left: actor === undefined ? undefined : { actor, resumable },
  }
  if (!resumable) forgetTold(draft, client)
}

/** The service starts again: nobody has a socket, but for those of a node that serves; the sessions are known there. */
export function restartUnder(draft: Draft, client: number, serving: string | undefined) {
  const { line, node, behind } = draft.clients[client]!
  const isServed = serving !== undefined && (line === 'off' || node === serving)
  if (!isServed) closeSession(draft, client, serving !== undefined)
  if (behind !== serving) draft.clients[client] = { ...draft.clients[client]!, behind: undefined }
}

function forgetTold(draft: Draft, client: number) {
  for (const [index, tracked] of draft.calls.entries()) {
    if (tracked.told[client] !== 0) draft.calls[index] = { ...tracked, told: tracked.told.with(client, 0) }
  }
}

export function tell(draft: Draft, index: number, client: number, bits: number) {
  const tracked = draft.calls[index]!
  draft.calls[index] = { ...tracked, told: tracked.told.with(client, tracked.told[client]! | bits) }
}

export function newUuid(draft: Draft): string {
  draft.callsMade++
  return uuidOf(draft.callsMade)
}

/** The client that has this session now. */
export function clientOf(world: Pick<World, 'clients'>, sessionId: string): number {
  return world.clients.findIndex((client) => client.actor?.sessionId === sessionId)
}

/** Whether the session that a place names has a socket where the place says, or had one and nobody saw it go. */
export function isThere({ actor, left, line, node, behind }: Client, place: Place): boolean {
  if ((actor ?? left?.actor)?.sessionId !== place.sessionId) return false
  return behind === place.node || (line !== 'off' && node === place.node)
}

/** The session of a client that has a log: the one that it has, or may have again. */
export function loggedSession({ actor, left }: Client): string | undefined {
  return actor?.sessionId ?? (left?.resumable ? left.actor.sessionId : undefined)
}

/** What a client gets by coming back as, or by naming, the session that it had: a place, or its pushes. */
export function leftSomething(world: Pick<World, 'clients' | 'calls'>, client: number): boolean {
  const { actor, left } = world.clients[client]!
  const sessionId = actor?.sessionId ?? left?.actor.sessionId
  if (sessionId === undefined) return false
  return world.calls.some(({ call, told }) => {
    if (!isLive(call)) return false
    const has = (side: Side) => seatIn(call, side)?.sessionId === sessionId
    return told[client] !== 0 || has('caller') || has('callee')
  })
}

/** Whether a session is connected, and a place of its own does not say so, or says that it is elsewhere. */
export function isUnnoted({ clients, calls }: Pick<World, 'clients' | 'calls'>, client: number): boolean {
  const { line, actor } = clients[client]!
  if (line !== 'live') return false
  const places = calls.flatMap(({ call }) => (isLive(call) ? [seatIn(call, 'caller'), seatIn(call, 'callee')] : []))
  return places.some(
    (place) => place?.sessionId === actor?.sessionId && (place?.state === 'vacant' || place?.node !== actor?.node),
  )
}

/** The sessions of a person that the service believes to be there. */
export function sessionsOf(world: Pick<World, 'clients'>, person: number): readonly string[] {
  return world.clients.flatMap((client) =>
    client.person === person && client.actor !== undefined ? [client.actor.sessionId] : [],
  )
}

export function personOf(setup: Setup, party: { userId: string; role: string }, product: string): number {
  const index = setup.people.findIndex(
    (person) => person.userId === party.userId && person.role === party.role && person.product === product,
  )
  return index === -1 ? violated('ID1', 'a call of a participant that nobody is') : index
}

export function sideIn(tracked: TrackedCall, person: number): Side | undefined {
  if (tracked.caller === person) return 'caller'
  return tracked.callee === person ? 'callee' : undefined
}

export function seatIn(call: Call, side: Side): Place | null {
  if (side === 'caller') return call.callerPlace
  return call.status === 'ringing' ? null : call.calleePlace
}

/**
 * Whether a session that names the call counts as the holder of its side's place: it is that, its device left it or only
 * has it by connecting, or the session that left has had 5 s to come back [PLACE2 c, PLACE3].
 */
export function mayHave(place: Place, actor: Actor, now: number): boolean {
  if (place.sessionId === actor.sessionId) return true
  const isOwnDevice = place.deviceId === actor.deviceId
  return place.state === 'vacant' ? isOwnDevice || now - place.since >= 5_000 : isOwnDevice && !place.settled
}

/** When and why time by itself ends a call; the first reason counts [RING1, END3]. */
export function dueOf(call: LiveCall, durations: CallDurations): { at: number; reason: string } {
  const limits: { at: number; reason: string }[] = []
  if (call.status === 'ringing') {
    limits.push({ at: call.ringExpiresAt, reason: 'no_answer' })
    const { callerPlace } = call
    if (callerPlace.state === 'vacant')
      limits.push({ at: callerPlace.since + durations.callerLostMs, reason: 'caller_lost' })
  } else {
    limits.push({ at: call.acceptedAt + durations.maxDurationMs, reason: 'max_duration' })
    for (const place of [call.callerPlace, call.calleePlace]) {
      if (place.state === 'vacant') limits.push({ at: place.since + durations.peerLostMs, reason: 'peer_lost' })
    }
    const closed = [call.callerPlace, call.calleePlace].flatMap((place) =>
      place.state === 'vacant' && place.closed === true ? [place.since] : [],
    )
    if (closed.length === 2) limits.push({ at: Math.max(...closed) + durations.callerLostMs, reason: 'peer_lost' })
  }
  return limits.reduce((first, limit) => (limit.at < first.at ? limit : first))
}

/** When time changes the call: the call ends, or a client that should have come back counts as away [PEER1]. */
export function changeOf(call: LiveCall, durations: CallDurations): { at: number; reason: string } {
  let next = dueOf(call, durations)
  for (const place of [call.callerPlace, seatIn(call, 'callee')]) {
    if (place?.state !== 'vacant' || place.awaitedMs === undefined) continue
    const at = place.since + place.awaitedMs
    if (at < next.at) next = { at, reason: 'absence' }
  }
  return next
}

/** The live call that is due first. */
export function nextDue(world: Pick<World, 'calls'>, durations: CallDurations) {
  let next: { index: number; at: number; reason: string } | undefined
  for (const [index, { call }] of world.calls.entries()) {
    if (!isLive(call)) continue
    const due = changeOf(call, durations)
    if (next === undefined || due.at < next.at) next = { index, ...due }
  }
  return next
}
