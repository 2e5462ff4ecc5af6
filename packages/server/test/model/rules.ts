import type { Call, LiveCall, Place, Side } from '../../src/call/call.ts'
import { isAnswered, isLive } from '../../src/call/call.ts'
import type { Notice, Step } from '../../src/call/effects.ts'
import { acceptedAgain } from './expected.ts'
import { violated } from './machine.ts'
import { toldOfTake } from './take-check.ts'
import {
  type Client,
  dueOf,
  mayHave,
  personOf,
  type Setup,
  seatIn,
  sideIn,
  type TrackedCall,
  type Verb,
} from './world.ts'

/** What holds for every step, whatever led to it. */

/** Who or what caused a step: a client's request about the call, its invite, its arrival; or the service. */
export interface Cause {
  readonly kind: 'request' | 'invite' | 'arrive' | 'lose' | 'time' | 'restart' | 'shift' | 'stop'
  readonly client: Client | undefined
  /** Of `lose`: the session, the node that saw it go, whether its client closed its socket, or was asked to come back. */
  readonly lost:
    | { readonly sessionId: string; readonly node: string; readonly closed: boolean; readonly awaitedMs?: number }
    | undefined
  /** Of `request`: the verb. */
  readonly verb: Verb | undefined
  /** Of `invite`: what kind of call it is for. */
  readonly callType: string | undefined
  /** Of `restart`: the node that served all the while. */
  readonly serving: string | undefined
  /** The session that who arrives says it was [RES2]. */
  readonly names: string | undefined
  readonly now: number
}

const nextStatuses: Record<Call['status'], readonly Call['status'][]> = {
  ringing: ['ringing', 'accepted', 'rejected', 'cancelled', 'missed'],
  accepted: ['accepted', 'connected', 'cancelled', 'ended'],
  connected: ['connected', 'ended'],
  ended: [],
  rejected: [],
  cancelled: [],
  missed: [],
  busy: [],
}

export function checkStep(setup: Setup, before: TrackedCall | undefined, step: Step, cause: Cause) {
  const { call, event } = step
  if (event.at !== cause.now) violated('event', 'its instant is not now')
  if (before === undefined) return checkNew(step, cause)
  const was = before.call
  if (event.type !== eventType(was, call, cause)) violated('event', `${cause.kind} is noted as ${event.type}`)
  if (call.version !== was.version + 1) violated('version', `${was.version} is followed by ${call.version}`)
  if (!isLive(was)) violated('END1', `a call that is ${was.status} became ${call.status}`)
  if (!nextStatuses[was.status].includes(call.status)) violated('call states', `${was.status} became ${call.status}`)
  for (const key of [
    'callUuid',
    'product',
    'startedAt',
    'contextType',
    'contextId',
    'callType',
    'ringTimeoutMs',
  ] as const) {
    if (call[key] !== was[key]) violated('call', `${key} changed`)
  }
  if (personOf(setup, call.caller, call.product) !== before.caller) violated('call', 'another caller')
  if (personOf(setup, call.callee, call.product) !== before.callee) violated('call', 'another callee')
  checkInstants(was, call, cause)
  for (const side of ['caller', 'callee'] as const) checkPlace(before, call, side, cause)
  checkQueues(was, step, cause)
  if (!isLive(call)) checkEnd(setup, before, was, call, cause)
  checkNotices(before, was, step, cause)
}

/** What the event of a step is called: the new status, or what happened to a place or a clock. */
function eventType(was: Call, call: Call, cause: Cause): Step['event']['type'] {
  if (call.status !== was.status) return call.status === 'ringing' ? 'invited' : call.status
  if (cause.kind === 'lose' || cause.kind === 'restart' || cause.kind === 'time') return 'place_lost'
  if (cause.kind === 'shift') return 'clock_shifted'
  if (was.status === 'ringing' && call.status === 'ringing' && was.silenced !== call.silenced) return 'silenced'
  if (cause.kind === 'arrive') return 'place_taken'
  const kept = (['caller', 'callee'] as const).every((side) => {
    const [before, after] = [seatIn(was, side), seatIn(call, side)]
    return before?.sessionId === after?.sessionId && before?.state === after?.state
  })
  return kept ? 'place_settled' : 'place_taken'
}

function checkNew({ call, event }: Step, cause: Cause) {
  if (call.version !== 1) violated('version', `a new call has version ${call.version}`)
  if (call.status !== 'ringing' && call.status !== 'busy') violated('call states', `a new call is ${call.status}`)
  if (cause.kind !== 'invite') violated('call states', `a call began by ${cause.kind}`)
  if (event.moved !== undefined) violated('PLACE2', 'a call that begins takes over what waited for somebody')
  const { callerPlace } = call
  if (callerPlace.state !== 'held' || callerPlace.sessionId !== cause.client?.actor?.sessionId) {
    violated('PLACE1', 'the inviting session does not have the place')
  }
  const rings = event.notices.filter(({ to, event }) => event === 'call.ringing' && to.place === 'rung')
  if (event.notices.length !== rings.length)
    violated('call states', 'a new call tells something else than call.ringing')
  if (rings.length !== (call.status === 'ringing' ? 1 : 0))
    violated('call states', `call.ringing ${rings.length} times`)
}

function checkInstants(was: Call, call: Call, cause: Cause) {
  if (cause.kind === 'shift') return
  if (was.ringExpiresAt !== call.ringExpiresAt) violated('RING1', 'the end of the ringing moved')
  if (isAnswered(was) && !('acceptedAt' in call && call.acceptedAt === was.acceptedAt)) {
    violated('HIST2', 'accepted_at changed')
  }
  if (isAnswered(was) && was.connectedAt !== null && !('connectedAt' in call && call.connectedAt === was.connectedAt)) {
    violated('HIST2', 'connected_at changed')
  }
}

/** Places change hands only as PLACE2 and PLACE3 say. */
function checkPlace(before: TrackedCall, call: Call, side: Side, cause: Cause) {
  const was = seatIn(before.call, side)
  const is = seatIn(call, side)
  if (was === is) return
  const own =
    cause.client !== undefined && sideIn(before, cause.client.person) === side ? cause.client.actor : undefined
  if (is === null) return violated('PLACE1', `the ${side} lost its place for good`)
  if (is.state === 'vacant') return checkVacated(was, is, cause)
  if (own === undefined || is.sessionId !== own.sessionId)
    return violated('PLACE2', `a ${side} got the place without asking`)
  if (is.deviceId !== own.deviceId || is.node !== own.node) violated('PLACE1', 'the place names another device or node')
  if (was !== null && cause.kind !== 'arrive' && cause.verb !== 'take' && !mayHave(was, own, cause.now))
    violated('PLACE3', 'a held place was taken, or another device was faster than its holder')
  if (cause.kind === 'arrive') {
    const isOwn = was?.sessionId === is.sessionId
    const isLeft = was?.state === 'vacant' || (isOwn && was?.node !== own.node)
    if (was === null || !isLeft || (!isOwn && was.deviceId !== own.deviceId)) {
      return violated('PLACE2', 'who connected took what its device did not leave')
    }
    const settled = isOwn ? was.settled : was.sessionId === cause.names
    if (is.settled !== settled) violated('PLACE2', 'who came back lost what it had, or a chance comer settled')
  } else if (!is.settled) violated('PLACE2', 'who spoke did not settle the place')
}

/** Messages that wait for a place wait for its holder, and go to the next holder: to nobody else, and from nobody else. */
function checkQueues(was: Call, { call, event }: Step, { verb }: Cause) {
  const waits = { caller: seatIn(was, 'caller')?.sessionId, callee: seatIn(was, 'callee')?.sessionId }
  if (event.moved?.length === 0) violated('PLACE2', 'something passed on, and that is nothing')
  for (const { side, from, leftDevice, lost, taken } of event.moved ?? []) {
    if ((taken === true) !== (verb === 'take')) violated('TAKE1', `whether the place of the ${side} was taken`)
    if ((lost === true) !== (seatIn(was, side)?.state === 'vacant'))
      violated('PLACE2', `whether the place of the ${side} was lost before it passed on`)
    const to = seatIn(call, side)?.sessionId
    const [left, device] = [seatIn(was, side)?.deviceId, seatIn(call, side)?.deviceId]
    if (leftDevice !== (left === device && !taken ? undefined : left))
      violated('PLACE2', `whether the device of the ${side} is told that another one took its place`)
    if (waits[side] !== from || to === from)
      violated('PLACE2', `what waits for the ${side} does not pass on from ${from}`)
    waits[side] = to
  }
  for (const side of ['caller', 'callee'] as const) {
    if (waits[side] !== undefined && waits[side] !== seatIn(call, side)?.sessionId)
      violated('PLACE2', `the ${side} has a place, and what waited for it stayed behind`)
  }
}

function checkVacated(was: Place | null, is: Place, cause: Cause) {
  if (was?.sessionId !== is.sessionId || was.deviceId !== is.deviceId || was.node !== is.node) {
    return violated('PLACE2', 'a vacant place forgot who left it')
  }
  if (is.state !== 'vacant') return
  if (cause.kind === 'time') return checkOverdue(was, is, cause)
  if (is.awaitedMs !== (was.state === 'vacant' ? was.awaitedMs : cause.lost?.awaitedMs))
    violated('PEER1', 'whether its client was told to come back is not remembered')
  if (cause.kind === 'shift') return
  if (is.since !== cause.now) violated('END3', 'a lost clock does not begin now')
  if (was.state === 'vacant' && cause.kind === 'restart') return
  if (cause.kind === 'restart' && was.node !== cause.serving) return
  const { lost } = cause
  if (is.closed !== (lost?.closed === true ? true : undefined))
    violated('END5', 'whether its client closed is not remembered')
  if (lost?.sessionId !== was.sessionId || lost.node !== was.node) violated('END3', 'a lost clock began without a loss')
}

/** A client that was asked to come back counts as away when its time for that is over, and not before. */
function checkOverdue(was: Place, is: Place, cause: Cause) {
  if (was.state !== 'vacant' || was.awaitedMs === undefined || was.since + was.awaitedMs > cause.now)
    return violated('PEER1', 'time took a place, or came before its time')
  const { awaitedMs: _, ...away } = was
  if (!Bun.deepEquals(is, away, true)) violated('PEER1', 'who is away now lost more than the time to come back')
}

/** Who may end a call, and what time may. */
function checkEnd(setup: Setup, before: TrackedCall, was: LiveCall, call: Call, cause: Cause) {
  if (isLive(call)) return
  if (call.endedAt !== cause.now) violated('END2', 'ended_at is not now')
  if (cause.kind === 'time') {
    const due = dueOf(was, setup.durations)
    if (due.at > cause.now) violated('RING1', `${call.endReason} came before its time`)
    if (call.endReason !== due.reason) violated('END3', `${call.endReason} where ${due.reason} was due first`)
    return
  }
  if (cause.kind === 'stop') {
    if (call.endReason !== 'ended_by_server')
      violated('SRV2', `a backend ended the call, and it says ${call.endReason}`)
    return
  }
  const side = cause.client === undefined ? undefined : sideIn(before, cause.client.person)
  if (side === undefined) return violated('END1', `a call was ended by ${cause.kind} of nobody who is in it`)
  const place = seatIn(was, side)
  const mine = place?.state === 'held' && place.sessionId === cause.client?.actor?.sessionId
  if (cause.kind === 'request') {
    const actor = cause.client?.actor
    if (place !== null && actor !== undefined && !mayHave(place, actor, cause.now))
      violated('END1', 'a session without the place ended the call')
  } else if (cause.kind === 'invite') {
    // A session that took the place by connecting and calls again is not in that call.
    const returned = isAnswered(was) && mine && place?.settled === false
    const isOther = was.status === 'ringing' && was.callType !== cause.callType
    const left = call.endReason === 'caller_lost' ? was.callerPlace.state === 'vacant' : !mine || returned || isOther
    const answeredLeft = !isAnswered(was) || place?.state === 'vacant' || returned
    if (!left || !answeredLeft) violated('INV7', `an invite ended a call that is not stale: ${call.endReason}`)
  } else violated('END1', `a call was ended by ${cause.kind}`)
}

const crossing: readonly Verb[] = ['cancel', 'reject', 'busy']

/** Everybody who has to know is addressed once, and nobody else [PLACE1, END2]. */
function checkNotices(before: TrackedCall, was: Call, { call, event }: Step, cause: Cause) {
  const { notices } = event
  if (was.status === call.status) {
    const isTaken = (side: Side) => event.moved?.some((move) => move.side === side && move.taken === true)
    const due = (['caller', 'callee'] as const).flatMap((side) =>
      isTaken(side) ? toldOfTake(was, side) : acceptedAgain(was, seatIn(was, side), seatIn(call, side)),
    )
    if (!Bun.deepEquals(notices, due)) violated('PLACE5', `${event.type} told ${JSON.stringify(notices)}`)
    return
  }
  for (const notice of notices) {
    checkAddress(call, notice)
    const said = 'by' in notice.data ? notice.data.by : undefined
    const did = event.by === null ? null : { user_id: event.by.userId, role: event.by.role }
    if (said !== undefined && !Bun.deepEquals(said, did)) violated('END2', 'a notice says that somebody else did it')
  }
  const addressed = (place: 'caller' | 'callee' | 'rung') => notices.filter(({ to }) => to.place === place).length
  const side = cause.client === undefined ? undefined : sideIn(before, cause.client.person)
  const self = cause.client?.actor?.sessionId
  for (const each of ['caller', 'callee'] as const) {
    const place = seatIn(call, each)
    // An invite took its place, or what was meant for a call that rings met another one: its author hears of the end.
    const isMeant = cause.kind !== 'invite' && !(isAnswered(was) && crossing.some((verb) => verb === cause.verb))
    const isAuthor = side === each && place?.sessionId === self
    const knows = place === null || (isAuthor && isMeant) || (each === 'callee' && !isAnswered(was))
    if (addressed(each) !== (knows ? 0 : 1)) violated('END2', `the ${each} is told ${addressed(each)} times`)
  }
  if (addressed('rung') !== (was.status === 'ringing' ? 1 : 0))
    violated('PLACE1', 'the rung sessions are not told once')
  const excepted = new Set(notices.flatMap(({ to }) => (to.place === 'rung' ? to.except : [])))
  const own = was.status === 'ringing' && side === 'callee' && cause.kind === 'request' ? [self ?? ''] : []
  const exempt = new Set([...(was.status === 'ringing' ? was.silenced : []), ...own])
  if (!Bun.deepEquals(excepted, exempt)) violated('PLACE1', `not told: ${[...excepted]}, exempt: ${[...exempt]}`)
}

/** The others on the callee's side hear that it was done elsewhere, and not why. */
function reasonFor(call: Call, notice: Notice): string {
  if (notice.to.place === 'rung' && call.status === 'accepted') return 'answered_elsewhere'
  if (notice.to.place === 'rung' && call.status === 'rejected') return 'rejected_elsewhere'
  return 'endReason' in call ? call.endReason : ''
}

const events: Record<Call['status'], { readonly place: string; readonly rung: string }> = {
  ringing: { place: '', rung: 'call.ringing' },
  accepted: { place: 'call.accepted', rung: 'call.cancelled' },
  connected: { place: 'call.status', rung: '' },
  rejected: { place: 'call.rejected', rung: 'call.cancelled' },
  cancelled: { place: 'call.cancelled', rung: 'call.cancelled' },
  ended: { place: 'call.ended', rung: '' },
  missed: { place: 'call.missed', rung: 'call.missed' },
  busy: { place: '', rung: '' },
}

function checkAddress(call: Call, notice: Notice) {
  const expected = events[call.status][notice.to.place === 'rung' ? 'rung' : 'place']
  if (notice.event !== expected)
    violated('call states', `${notice.event} to ${notice.to.place} of a call that is ${call.status}`)
  if (call.status === 'accepted' && notice.to.place === 'callee')
    violated('PLACE1', 'the callee is told that it accepted')
  const { data } = notice
  if (data.call_uuid !== call.callUuid) violated('END2', 'a notice names another call')
  if ('status' in data && data.status !== call.status) violated('END2', `a notice says ${data.status}`)
  if ('reason' in data && data.reason !== reasonFor(call, notice)) violated('END2', `a notice gives ${data.reason}`)
  if ('ended_at' in data && (data.ended_at === null) !== isLive(call)) violated('END2', `ended_at is ${data.ended_at}`)
}
