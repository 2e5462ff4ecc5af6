import { statusAfter } from '../check/facts.ts'
import type { Entry, Frame, Recording, Snapshot } from '../recording.ts'
import { markOf } from '../relay-text.ts'

type Mutable<T> = T extends readonly (infer U)[]
  ? Mutable<U>[]
  : T extends object
    ? { -readonly [K in keyof T]: Mutable<T[K]> }
    : T

/** A recording that may be written in. */
export type Draft = Mutable<Recording>
export type DraftTrace = Draft['traces'][number]
export type DraftEntry = DraftTrace['entries'][number]
export type DraftFrame = Mutable<Frame>

export function draftOf(recording: Recording): Draft {
  return structuredClone(recording) as Draft
}

/** A frame in a trace. */
export interface Spot {
  readonly trace: DraftTrace
  readonly index: number
  readonly frame: DraftFrame
  readonly at: number
}

export type Direction = Extract<Entry['kind'], 'in' | 'out'>

/** Every frame of that direction that fits, phone by phone, in the order of time. */
export function spots(draft: Draft, kind: Direction, fits: (spot: Spot) => boolean): Spot[] {
  return draft.traces.flatMap((trace) =>
    trace.entries.flatMap((entry, index) => {
      if (entry.kind !== kind) return []
      const spot = { trace, index, frame: entry.frame, at: entry.at }
      return fits(spot) ? [spot] : []
    }),
  )
}

/** What a plant needs is in the recording, or the recording is of no use. */
export function firstOf<T>(found: readonly T[], what: string): T {
  const [first] = found
  if (first === undefined) throw new Error(`the recording has no ${what}`)
  return first
}

export const isPush = ({ frame }: Spot) => frame.request_id === undefined && frame.event !== 'auth.ok'
export const isRelayPush = (spot: Spot) => isPush(spot) && spot.frame.event.startsWith('webrtc.')
export const callOf = ({ frame }: Spot) => frame.data?.call_uuid ?? ''

export const isResume = ({ frame }: Spot) => frame.event === 'auth.ok' && frame.data?.recovered === true

/** The resume was answered with a new session. */
export function refuse({ trace, frame, at }: Spot) {
  frame.data = { ...frame.data, recovered: false }
  return { user: trace.user, at }
}

/** While somebody was gone for the last time, so many long relays were sent to it, and nobody knows what became of them. */
export function missed(draft: Draft, count: number): Spot {
  const hello = firstOf(spots(draft, 'in', isResume).slice(-1), 'resume')
  const { trace, index, at } = hello
  const own = spots(draft, 'in', (spot) => spot.trace === trace && isPush(spot) && spot.index < index)
  const call = callOf(firstOf(own.slice(-1), 'push before it'))
  const { caller, callee } = callRow(draft, call)
  const peer = draft.traces.find(({ user }) => user === (caller === trace.user ? callee : caller))
  for (let i = 1; i <= count; i++) {
    const sdp = { type: 'offer', sdp: `${call} ${1_000 + i} 46000` }
    const frame = { event: 'webrtc.offer', request_id: `long.${i}`, n: 10_000 + i, data: { call_uuid: call, sdp } }
    peer?.entries.push({ kind: 'out', at: at - 1, socket: 0, frame })
  }
  return hello
}

/**
 * The same, where who sent them has several phones, or a base client: its trace is apart, its relays have no number and no
 * reply, and what it began and did is not compared with what it saw.
 */
export function missedApart(draft: Draft, count: number): Spot {
  const hello = missed(draft, count)
  const isSender = ({ entries }: DraftTrace) =>
    entries.some((entry) => entry.kind === 'out' && entry.frame.request_id?.startsWith('long.'))
  const sender = firstOf(draft.traces.filter(isSender), 'sender')
  for (const entry of sender.entries) {
    if (entry.kind !== 'out' || entry.frame.request_id?.startsWith('long.') !== true) continue
    delete entry.frame.n
    delete entry.frame.request_id
  }
  draft.traces = draft.traces.filter((trace) => trace !== sender)
  draft.tracesApart = [sender]
  draft.header.apart = [sender.user]
  return hello
}

/** The end of the part of the session that holds this frame: at the next `auth.ok` that begins anew, or a reset. */
function endOfStretch({ trace, index }: Spot): number {
  const end = trace.entries.findIndex((entry, i) => i > index && entry.kind === 'in' && isFresh(entry.frame))
  return end < 0 ? trace.entries.length : end
}

export function isFresh({ event, data }: DraftFrame): boolean {
  return event === 'session.reset' || (event === 'auth.ok' && data?.recovered !== true)
}

/** Moves the numbers of all later pushes of the same part of the session, as a service that did not notice would. */
function renumber(spot: Spot, by: number): void {
  for (const entry of spot.trace.entries.slice(spot.index + 1, endOfStretch(spot))) {
    if (entry.kind === 'in' && entry.frame.seq !== undefined) entry.frame.seq += by
  }
}

/** The push never came, and nothing shows it. */
export function lose(spot: Spot): void {
  renumber(spot, -1)
  spot.trace.entries.splice(spot.index, 1)
}

/** Another push after this one. */
export function pushAfter(spot: Spot, frame: DraftFrame): void {
  renumber(spot, 1)
  const entry = structuredClone(spot.trace.entries[spot.index]!) as DraftEntry & { kind: 'in' }
  entry.frame = { ...structuredClone(frame), seq: (spot.frame.seq ?? 0) + 1 }
  spot.trace.entries.splice(spot.index + 1, 0, entry)
}

/** The reply to a request that went out. */
export function replyTo(request: Spot): Spot | undefined {
  const { trace, index, frame } = request
  const at = trace.entries.findIndex(
    (entry, i) => i > index && entry.kind === 'in' && entry.frame.request_id === frame.request_id,
  )
  const entry = trace.entries[at]
  return entry?.kind === 'in' ? { trace, index: at, frame: entry.frame, at: entry.at } : undefined
}

export function requestsOf(draft: Draft, event: string, status: string): Spot[] {
  return spots(draft, 'out', ({ frame }) => frame.event === event).filter(
    (request) => replyTo(request)?.frame.data?.status === status,
  )
}

/** The reply is another one now. */
export function answer(reply: Spot, frame: Omit<DraftFrame, 'request_id'>): void {
  const { request_id } = reply.frame
  const entry = reply.trace.entries[reply.index]
  if (entry?.kind !== 'in') throw new Error('this is no reply')
  entry.frame = { ...frame, ...(request_id === undefined ? {} : { request_id }) }
}

/** The place where a relay came, if it did. */
export function arrivalOf(draft: Draft, request: Spot): Spot | undefined {
  const mark = markOf(request.frame)
  return spots(draft, 'in', isRelayPush).find(
    (spot) =>
      callOf(spot) === callOf(request) &&
      spot.frame.data?.from_user_id === request.trace.user &&
      markOf(spot.frame) === mark,
  )
}

export function callRow(draft: Draft, call: string) {
  return firstOf(
    draft.calls.filter(({ call_uuid }) => call_uuid === call),
    call,
  )
}

export function eventsOf(draft: Draft, call: string) {
  return draft.events.filter(({ call_uuid }) => call_uuid === call)
}

export function withoutEvents(draft: Draft, call: string, from: number): void {
  draft.events = draft.events.filter(({ call_uuid, version }) => call_uuid !== call || version < from)
}

/** Both histories follow what PostgreSQL says of a call, as they would. */
export function followHistory(draft: Draft, call: string): void {
  const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString())
  const row = draft.calls.find(({ call_uuid }) => call_uuid === call)
  for (const history of draft.histories) {
    if (row === undefined) history.records = history.records.filter(({ call_uuid }) => call_uuid !== call)
    for (const record of history.records) {
      if (record.call_uuid !== call || row === undefined) continue
      record.status = row.status as typeof record.status
      record.end_reason = row.end_reason
      record.accepted_at = iso(row.accepted_at)
      record.connected_at = iso(row.connected_at)
      record.ended_at = iso(row.ended_at)
    }
  }
}

/** What a snapshot of somebody's calls would say at an instant. */
function activeCalls(draft: Draft, user: string, at: number): Snapshot[] {
  return draft.calls.flatMap((row) => {
    const past = eventsOf(draft, row.call_uuid).filter((event) => event.at <= draft.header.startedAt + at)
    const last = past.at(-1)
    const status = past.map(statusAfter).findLast((each) => each !== undefined)
    const isOver = row.ended_at !== null && row.ended_at <= draft.header.startedAt + at
    if (last === undefined || status === undefined || isOver || (row.caller !== user && row.callee !== user)) return []
    const direction = row.caller === user ? 'outgoing' : 'incoming'
    const { call_uuid, version } = { call_uuid: row.call_uuid, version: last.version }
    return [{ call_uuid, status, version, direction, holds_place: status !== 'ringing' || direction === 'outgoing' }]
  })
}

/** The log of the session begins again after this push; the next number belongs to the new log. */
export function reset({ trace, index, frame, at }: Spot, draft: Draft): void {
  const data = { session_id: 'same', epoch: 'another', active_calls: activeCalls(draft, trace.user, at) }
  const entry = trace.entries[index]
  if (entry?.kind !== 'in') throw new Error('this is no push')
  const { socket } = entry
  trace.entries.splice(index + 1, 0, { kind: 'in', at, socket, frame: { event: 'session.reset', seq: 1, data } })
  const gone = (frame.seq ?? 0) - 1
  const spot = { trace, index: index + 1, frame, at }
  for (const later of trace.entries.slice(spot.index + 1, endOfStretch(spot))) {
    if (later.kind !== 'in') continue
    if (later.frame.seq !== undefined) later.frame.seq -= gone
    if (later.frame.event === 'auth.ok') later.frame.data = { ...later.frame.data, epoch: data.epoch }
  }
}

/** What a missed call told its callee, who asked for nothing while it rang; after the last fault. */
function missedInSilence(draft: Draft): { ring: Spot; end: Spot } {
  const whole = Math.max(...draft.header.faults.map(({ until }) => until))
  const told = (event: string) => spots(draft, 'in', (spot) => isPush(spot) && spot.frame.event === event)
  const found = told('call.ringing').flatMap((ring) => {
    const end = told('call.missed').find((each) => each.trace === ring.trace && callOf(each) === callOf(ring))
    if (end === undefined || ring.at < whole + 300) return []
    return ring.trace.entries.slice(ring.index, end.index).every(({ kind }) => kind === 'in') ? [{ ring, end }] : []
  })
  return firstOf(found, 'missed call with a quiet callee')
}

/** The callee of a missed call heard nothing of it: its socket went when it rang, and it came back `ms` after the ring was over. */
export function away(draft: Draft, ms: number): Spot {
  const { ring, end } = missedInSilence(draft)
  const { trace, index } = ring
  lose(end)
  lose(ring)
  const before = trace.entries
    .slice(0, index)
    .findLast((entry) => entry.kind === 'in' && entry.frame.event === 'auth.ok')
  if (before?.kind !== 'in') throw new Error('a push before auth.ok')
  const { socket, frame } = before
  const again = 1 + Math.max(...draft.traces.flatMap(({ entries }) => entries.map((entry) => entry.socket)))
  const backAt = end.at + ms
  for (const later of trace.entries.slice(index)) {
    if (later.socket === socket) later.socket = again
    later.at = Math.max(later.at, backAt)
  }
  const others = activeCalls(draft, trace.user, backAt).filter(({ call_uuid }) => call_uuid !== callOf(ring))
  const data = { ...frame.data, recovered: true, active_calls: others }
  trace.entries.splice(
    index,
    0,
    { kind: 'close', at: ring.at + 300, socket, code: 1006 },
    { kind: 'open', at: backAt, socket: again, node: 0 },
    { kind: 'in', at: backAt, socket: again, frame: { event: 'auth.ok', data } },
  )
  return ring
}
