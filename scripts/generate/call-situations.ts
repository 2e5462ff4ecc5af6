/** Calls and commands for the printed table: two people, two sessions each. Every answer is what `decide` says. */
import {
  type Call,
  type CallDurations,
  isLive,
  type LiveCall,
  nextDeadline,
  type OverCall,
  type Participant,
  placeOf,
  type Side,
} from '../../packages/server/src/call/call.ts'
import type { Actor, CallCommand, Decision } from '../../packages/server/src/call/command.ts'
import { decide, lateRelayMs } from '../../packages/server/src/call/decide.ts'
import { decideInvite, type InviteCommand } from '../../packages/server/src/call/invite.ts'
import { ownDeviceMs } from '../../packages/server/src/call/places.ts'
import { loadConfig } from '../../packages/server/src/config/config.ts'

/** A request, its author, and its outcome. */
export interface Row {
  readonly request: string
  readonly by: string
  readonly side: Side | undefined
  readonly before: Call
  readonly decision: Decision
}

export const start = Date.UTC(2026, 2, 2, 9, 5)
export const participants = {
  caller: { product: 'shop', role: 'customer', userId: 'ann' },
  callee: { product: 'shop', role: 'agent', userId: 'ben' },
  other: { product: 'shop', role: 'agent', userId: 'eve' },
} as const satisfies Record<string, Participant>

export function session(participant: Participant, n: number): Actor {
  const sessionId = `${participant.userId}-${n}`
  return { participant, sessionId, deviceId: `${sessionId}-device`, node: 'node', displayName: participant.userId }
}

/** Durations as they are without any configuration. */
export function defaultDurations(): CallDurations & { ringTimeoutMs: number } {
  const loaded = loadConfig({})
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
  const { callerLostMs, peerLostMs, maxCallMs, ringTimeoutMs } = loaded.config
  return { callerLostMs, peerLostMs, maxDurationMs: maxCallMs, ringTimeoutMs }
}
const durations = defaultDurations()

export function inviteOf(actor: Actor, callee: Participant, callUuid: string): InviteCommand {
  return {
    actor,
    callee: { userId: callee.userId, role: callee.role },
    callUuid,
    freshUuid: '00000000-0000-4000-8000-00000000ffff',
    contextType: 'order',
    contextId: '1042',
    callType: 'audio',
    ringTimeoutMs: durations.ringTimeoutMs,
    metadata: null,
    rate: { ok: true },
    maxRinging: 5,
    busy: 'allow',
  }
}

const caller = session(participants.caller, 1)
const callee = session(participants.callee, 1)
const otherOf = { caller: session(participants.caller, 2), callee: session(participants.callee, 2) }
const rung = [callee.sessionId, otherOf.callee.sessionId]

export function must<C extends Call>(decision: Decision, is: (call: Call) => call is C): C {
  if (!decision.ok || !is(decision.call)) throw new Error('the situation cannot be built')
  return decision.call
}
const live = (call: Call): call is LiveCall => isLive(call)
const over = (call: Call): call is OverCall => !isLive(call)

export function ringingCall(from: Actor, to: Participant, callUuid: string): LiveCall {
  return must(decideInvite({ sameUuid: undefined, live: [] }, inviteOf(from, to, callUuid), start), live)
}
export function answeredBy(call: LiveCall, actor: Actor): LiveCall {
  return must(decide(call, { type: 'accept', actor }, start + 4000, durations), live)
}

/** The live call in each of its states. */
export function liveCalls(): Record<LiveCall['status'], LiveCall> {
  const ringing = ringingCall(caller, participants.callee, '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55')
  const accepted = answeredBy(ringing, callee)
  const connected = must(decide(accepted, { type: 'connected', actor: callee }, start + 5000, durations), live)
  return { ringing, accepted, connected }
}

/** A call that is over, for every way of being over. */
export function overCalls(): OverCall[] {
  const { ringing, accepted } = liveCalls()
  const now = start + 6000
  const busy = decideInvite(
    {
      sameUuid: undefined,
      live: [answeredBy(ringingCall(session(participants.other, 1), participants.callee, 'x'), callee)],
    },
    { ...inviteOf(caller, participants.callee, 'y'), busy: 'reject' },
    start,
  )
  const refused = busy.steps.at(-1)?.call
  if (refused === undefined || !over(refused)) throw new Error('the situation cannot be built')
  return [
    must(decide(accepted, { type: 'end', actor: caller, reason: null }, now, durations), over),
    must(decide(ringing, { type: 'reject', actor: callee, reason: null, rung }, now, durations), over),
    must(decide(ringing, { type: 'cancel', actor: caller, reason: null }, now, durations), over),
    must(decide(ringing, { type: 'time' }, start + durations.ringTimeoutMs, durations), over),
    refused,
  ]
}

/** Verbs as clients send them. */
const verbs: readonly { request: string; command: (actor: Actor) => CallCommand }[] = [
  { request: 'call.accept', command: (actor) => ({ type: 'accept', actor }) },
  { request: 'call.reject', command: (actor) => ({ type: 'reject', actor, reason: null, rung }) },
  { request: 'call.reject, reason busy', command: (actor) => ({ type: 'reject', actor, reason: 'busy', rung }) },
  { request: 'call.cancel', command: (actor) => ({ type: 'cancel', actor, reason: null }) },
  { request: 'call.end', command: (actor) => ({ type: 'end', actor, reason: null }) },
  { request: 'call.connected', command: (actor) => ({ type: 'connected', actor }) },
  { request: 'webrtc.*', command: (actor) => ({ type: 'relay', actor }) },
]

/** A session and its call, in words. */
interface Speaker {
  readonly by: string
  readonly side: Side
  readonly actor: Actor
  readonly call: Call
}

/** Every kind of session that can ask something of a live call. */
function speakers(call: LiveCall): Speaker[] {
  const sides: readonly Side[] = ['caller', 'callee']
  return sides.flatMap((side): Speaker[] => {
    const place = placeOf(call, side)
    if (place === null) {
      const silencedOther = decide(
        call,
        { type: 'reject', actor: otherOf.callee, reason: 'busy', rung },
        start,
        durations,
      )
      return [
        { by: 'callee', side, actor: callee, call },
        { by: 'callee, after the other sessions said busy', side, actor: callee, call: must(silencedOther, live) },
      ]
    }
    const holder = side === 'caller' ? caller : callee
    const back = { ...holder, sessionId: `${holder.sessionId}-again` }
    const second = { ...otherOf[side], deviceId: holder.deviceId }
    const loss = { type: 'lose', sessionId: place.sessionId, node: place.node } as const
    const vacated = must(decide(call, loss, start + 5500, durations), live)
    const vacatedLongAgo = must(decide(call, loss, start + 5600 - ownDeviceMs, durations), live)
    const arrived = must(decide(vacated, { type: 'arrive', actor: back }, start + 5500, durations), live)
    return [
      { by: side, side, actor: holder, call },
      { by: `${side}, another session`, side, actor: otherOf[side], call },
      { by: `${side}, another session (place vacant)`, side, actor: second, call: vacated },
      { by: `${side}, another session (place unsettled)`, side, actor: second, call: arrived },
      { by: `${side}, another device (place vacant)`, side, actor: otherOf[side], call: vacated },
      {
        by: `${side}, another device (place vacant for ${seconds(ownDeviceMs)})`,
        side,
        actor: otherOf[side],
        call: vacatedLongAgo,
      },
    ]
  })
}

/** All requests of clients to a live call. */
export function requestRows(call: LiveCall): Row[] {
  return verbs.flatMap(({ request, command }) =>
    speakers(call).map(({ by, side, actor, call: before }) => ({
      request,
      by,
      side,
      before,
      decision: decide(before, command(actor), start + 5600, durations),
    })),
  )
}

/** The same for a call that is over; `webrtc.*` also when it comes late. */
export function lateRows(call: OverCall): Row[] {
  const sides: readonly Side[] = ['caller', 'callee']
  const requests = [
    ...verbs.map((verb) => ({ ...verb, now: call.endedAt + 1000 })),
    {
      request: `webrtc.*, ${seconds(lateRelayMs)} after the end`,
      command: (actor: Actor): CallCommand => ({ type: 'relay', actor }),
      now: call.endedAt + lateRelayMs,
    },
  ]
  return requests.flatMap(({ request, command, now }) =>
    sides.map((side) => ({
      request,
      by: side,
      side,
      before: call,
      decision: decide(call, command(side === 'caller' ? caller : callee), now, durations),
    })),
  )
}

/** Changes of a live call that nobody requests. */
export function serviceRows(call: LiveCall): Row[] {
  const rows: Row[] = []
  const add = (request: string, by: string, before: Call, command: CallCommand, now: number) =>
    rows.push({ request, by, side: undefined, before, decision: decide(before, command, now, durations) })
  const due = (of: Call) => nextDeadline(of, durations) ?? start
  const sides: readonly Side[] = ['caller', 'callee']
  for (const side of sides) {
    const place = placeOf(call, side)
    if (place === null) continue
    const holder = side === 'caller' ? caller : callee
    const loss = { type: 'lose', sessionId: place.sessionId, node: place.node } as const
    const lost = must(decide(call, loss, start + 5500, durations), live)
    add('the connection is lost', side, call, loss, start + 5500)
    const back = { ...holder, sessionId: `${holder.sessionId}-again` }
    add('the device connects again, as a new session', side, lost, { type: 'arrive', actor: back }, start + 5600)
    add('the same session comes back', side, lost, { type: 'arrive', actor: holder }, start + 5600)
    const elsewhere = { ...holder, node: 'another node' }
    const took = decide(call, { type: 'arrive', actor: elsewhere }, start + 5500, durations)
    add(
      'the same session comes back on another node, its loss unseen',
      side,
      call,
      { type: 'arrive', actor: elsewhere },
      start + 5500,
    )
    add('the node that it left sees the loss', side, must(took, live), loss, start + 5600)
    const named = { type: 'arrive', actor: back, resumes: holder.sessionId } as const
    add('a new session names the lost one', side, lost, named, start + 5600)
    add(
      'another device connects',
      `${side} (place vacant)`,
      lost,
      { type: 'arrive', actor: otherOf[side] },
      start + 5600,
    )
    add(`the place was vacant for ${seconds(due(lost) - start - 5500)}`, side, lost, { type: 'time' }, due(lost))
  }
  const limit = call.status === 'ringing' ? 'ring timeout' : 'longest call'
  const length = call.status === 'ringing' ? durations.ringTimeoutMs : durations.maxDurationMs
  add(`${limit} (${seconds(length)})`, '', call, { type: 'time' }, due(call))
  add('its backend ends the call', '', call, { type: 'stop', note: null }, start + 5600)
  add('the service starts again', '', call, { type: 'restart', nodes: [] }, start + 5600)
  add('a node starts again, others hold the places', '', call, { type: 'restart', nodes: [caller.node] }, start + 5600)
  return rows
}

function seconds(ms: number): string {
  return ms % 3_600_000 === 0 ? `${ms / 3_600_000} h` : `${ms / 1000} s`
}
