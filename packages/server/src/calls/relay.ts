import { type ErrorBody, errorBody } from '@ringwire/protocol/errors'
import { type Call, callKey, isLive, isMember, otherSide, placeOf, ringsAt, type Side, sideOf } from '../call/call.ts'
import type { Delivery } from '../delivery/delivery.ts'
import { relayOnly } from '../ice/relay-only.ts'
import type { Road } from '../observability/metrics.ts'
import type { Timers } from '../ports/clock.ts'
import { andThen, type MaybePromise } from '../ports/maybe.ts'
import type { AppendResult, Push } from '../ports/push.ts'
import type { Sessions } from '../ports/sessions.ts'
import type { Recorder } from '../timeline/recorder.ts'
import type { Calls } from './calls.ts'
import type { Holds } from './holds.ts'
import type { ClientSession, NamedCall, UnderWay, Waiter } from './request.ts'
import { maxTries, pauseBefore } from './tries.ts'

export type RelayEvent = 'webrtc.offer' | 'webrtc.answer' | 'webrtc.ice_candidate' | 'call.media'

/** Data of a `webrtc.*` or `call.media` request that was parsed; it is changed in place, nobody else has it. */
export interface RelayData {
  call_uuid: string
  candidate?: unknown
  sdp?: unknown
  audio?: boolean
  video?: boolean
  screen?: boolean
  held?: boolean
  from_user_id?: string
  from_role?: string
}

export interface Relay {
  /**
   * Passes a `webrtc.*` or `call.media` message on to the other place of the call [REL1, MEDIA1]; answers the call's
   * status, or an error. `n` is the number of an extended session's request [EXT4]. `passedOn` is what the peer gets
   * [REL4]; without it `data` is written anew.
   */
  relay(
    sender: ClientSession,
    event: RelayEvent,
    data: RelayData,
    n: number | undefined,
    waiter?: Waiter,
    passedOn?: string,
  ): MaybePromise<RelayResult>
}

/** `volatile`: the sessions' store is away, and the message is not safe against the death of this node [EXT3]. */
export type RelayResult = Call['status'] | ErrorBody | VolatileRelay

export interface VolatileRelay {
  readonly status: Call['status']
  readonly volatile: true
}

interface Message {
  /** Of its call: made once, because what is looked up by it is hashed once. */
  readonly key: string
  readonly sender: ClientSession
  readonly event: RelayEvent
  readonly data: RelayData
  readonly passedOn: string | undefined
  readonly n: number | undefined
  readonly waiter: Waiter | undefined
  /** The relay before it, where that is still on its way. */
  readonly ahead: UnderWay | undefined
}

export interface RelayOptions {
  readonly calls: Calls
  readonly delivery: Delivery
  readonly sessions: Pick<Sessions, 'append' | 'keep' | 'hasLeft'>
  /** Whether other processes have sessions, too: one may die before it says whether it took a message. */
  readonly isShared: boolean
  /** The media of such a product only goes through a TURN server, so other addresses are not passed on [PRIV1]. */
  readonly isRelayOnly: (product: string) => boolean
  /** A message was passed on [MET1]. */
  readonly onPassed: (event: RelayEvent, road: Road, bytes: number) => void
  /** The same, of which call and from which side [TRACE1]. */
  readonly recorder: Pick<Recorder, 'relayed'>
  /** And whether that side has put the call on hold. */
  readonly holds: Pick<Holds, 'said'>
  readonly timers: Pick<Timers, 'sleep'>
}

/**
 * The short road: a known call, a look at the sender's place, the peer's log. No database on it; only a sender that
 * takes or settles a place by this message goes the long way once [PLACE2].
 */
export function createRelay(options: RelayOptions): Relay {
  const { isShared } = options
  return {
    relay(sender, event, data, n, waiter, passedOn) {
      const { callUuid, key } = namedBy(sender, data.call_uuid)
      data.call_uuid = callUuid
      const number = n ?? (isShared ? waiter?.nextNumber() : undefined)
      const message = { key, sender, event, data, passedOn, n: number, waiter, ahead: waiter?.ahead }
      const call = options.delivery.known.get(key)
      if (call !== undefined) {
        const side = sideIn(call, sender)
        if (side === undefined && !isMember(call, sender.participant)) return errorBody('CALL_NOT_FOUND')
        if (side !== undefined && isSeated(call, side, sender.sessionId) && isUpToDate(options, message))
          return pass(options, call, side, message, 0, 'short')
      }
      return afterOthers(message, (first) => seatFirst(options, first, 0))
    },
  }
}

/** A message that cannot say after which relay it comes waits until that relay is answered [ORD1]. */
function afterOthers(
  message: Message,
  next: (message: Message) => MaybePromise<RelayResult>,
): MaybePromise<RelayResult> {
  const { ahead } = message
  return ahead === undefined ? next(message) : ahead.done.then(() => next({ ...message, ahead: undefined }))
}

/** The long way: the call is not known here, what is known is old, or the sender takes its place by this message. */
async function seatFirst(options: RelayOptions, message: Message, tries: number): Promise<RelayResult> {
  const { calls, delivery } = options
  const { key, sender, data, waiter } = message
  const seated = await calls.seat(sender, data.call_uuid, waiter)
  if (!seated.ok) return seated.error
  delivery.learn(seated.value)
  const call = newest(seated.value, delivery.known.get(key))
  const side = sideIn(call, sender)
  if (!isLive(call) || side === undefined) return call.status
  // Another node may just be handing a step of the call on, or could not: what waits goes first. While the store is away, a
  // session with a socket here still gets it at once [EXT3].
  if ((tries > 0 || delivery.undelivered.has(key)) && (await delivery.catchUp(call)) === 'later') {
    return tryAgain(options, message, tries + 1)
  }
  return pass(options, call, side, message, tries, 'long')
}

/** If the places of a call change too often while one message is passed on, its sender has to send it again. */
async function tryAgain(options: RelayOptions, message: Message, tries: number): Promise<RelayResult> {
  if (tries > maxTries) return errorBody('SERVICE_UNAVAILABLE', { retryable: true })
  await pauseBefore(tries, options.timers)
  return seatFirst(options, message, tries)
}

/** The call may have moved on during the read of its store. */
function newest(read: Call, known: Call | undefined): Call {
  return known !== undefined && known.version > read.version ? known : read
}

function pass(
  options: RelayOptions,
  call: Call,
  side: Side,
  message: Message,
  tries: number,
  road: Road,
): MaybePromise<RelayResult> {
  const { sessions, isRelayOnly, onPassed, recorder } = options
  const { sender, event } = message
  if (event === 'webrtc.ice_candidate' && message.data.candidate === null) return call.status
  const data = isRelayOnly(sender.participant.product) ? relayOnly(event, message.data) : message.data
  // For its sender that is a candidate like any other [PRIV1].
  if (data === undefined) return call.status
  const isKept = call.status === 'ringing'
  if ((isKept || message.n === undefined) && message.ahead !== undefined)
    return afterOthers(message, (first) => pass(options, call, side, first, tries, road))
  const push = relayPush(message, data)
  const sent = isKept ? sessions.keep(sender.sessionId, push) : append(options, call, side, push, tries)
  // On the short road to another node: the next one may follow at once, and says that it comes after this one.
  if (sent instanceof Promise && !isKept && road === 'short' && message.n !== undefined)
    message.waiter?.isUnderWayAs(message.n)
  const passed = () => {
    noteHold(options, call, side, message)
    onPassed(event, road, Buffer.byteLength(push.text))
    recorder.relayed(message.key, side, event, data)
  }
  if (sent === 'sent') {
    passed()
    return call.status
  }
  return andThen(sent, (result) => {
    if (result === 'full') return errorBody('RELAY_BUFFER_FULL')
    // As it was before: its client did not hear of that.
    if (result === 'late') return errorBody('SERVICE_UNAVAILABLE')
    if (result === 'early') return afterOthers(message, (first) => passAgain(options, first, road))
    const isOld = result === 'closed' || result === 'elsewhere' || result === 'gone'
    if (isOld) return afterOthers(message, (first) => tryAgain(options, first, tries + 1))
    if (result !== 'dropped') passed()
    // A base peer hears nothing of it.
    else noteHold(options, call, side, message)
    return result === 'volatile' ? { status: call.status, volatile: true } : call.status
  })
}

function noteHold({ holds }: RelayOptions, call: Call, side: Side, { event, sender, data }: Message): void {
  if (event === 'call.media') holds.said(call, side, sender, data.held)
}

/** The relays before it were answered by now, and the call may have moved on with them. */
function passAgain(options: RelayOptions, message: Message, road: Road): MaybePromise<RelayResult> {
  const call = options.delivery.known.get(message.key)
  const side = call && sideIn(call, message.sender)
  const isShort = call !== undefined && side !== undefined && isSeated(call, side, message.sender.sessionId)
  if (!isShort || !isUpToDate(options, message)) return seatFirst(options, message, 0)
  return pass(options, call, side, message, 0, road)
}

/** A later try has just read where the place is, so it may begin the session of a holder that is not found. */
function append(
  { delivery, sessions }: RelayOptions,
  call: Call,
  side: Side,
  push: Push,
  tries: number,
): MaybePromise<AppendResult> {
  if (tries > 0) return delivery.appendToPlace(call, otherSide(side), push)
  const peer = placeOf(call, otherSide(side))
  return peer === null ? 'dropped' : sessions.append(peer.sessionId, push)
}

function namedBy(sender: ClientSession, named: string): NamedCall {
  const { lastNamed } = sender
  if (lastNamed?.named === named) return lastNamed
  const callUuid = named.toLowerCase()
  sender.lastNamed = { named, callUuid, key: callKey({ product: sender.participant.product, callUuid }) }
  return sender.lastNamed
}

/**
 * The sender's message, with its sender [REL3, REL4]; if a part of it is kept back, the rest is written anew. One text,
 * made at once: it stays in a log.
 */
function relayPush(message: Message, data: RelayData): Push {
  const { key, sender, event, n, ahead } = message
  // A part of it is kept back.
  const isPart = data !== message.data || event === 'call.media'
  const text = isPart ? undefined : message.passedOn
  return {
    kind: event === 'call.media' ? 'media' : 'relay',
    call: key,
    version: undefined,
    text: text ?? writtenAnew(event, data, sender),
    source: n === undefined ? undefined : { sessionId: sender.sessionId, n, after: ahead?.n },
    forPlace: true,
  }
}

function writtenAnew(event: RelayEvent, data: RelayData, { participant }: ClientSession): string {
  data.from_user_id = participant.userId
  data.from_role = participant.role
  return JSON.stringify({ event, data })
}

/** While a call rings at members of a group, each of them is a callee, and what it sends early waits for its accept [GROUP1, REL2]. */
function sideIn(call: Call, { participant }: ClientSession): Side | undefined {
  return sideOf(call, participant) ?? (ringsAt(call, participant) ? 'callee' : undefined)
}

/**
 * Whether this node knows the call as its sessions have heard it. A node that has no place of a call any more hears no
 * news of it, but its session knows that the place was taken [TAKE1].
 */
function isUpToDate({ delivery, sessions }: RelayOptions, { key, sender }: Message): boolean {
  return !delivery.undelivered.has(key) && !sessions.hasLeft(sender.sessionId, key)
}

/** Whether the session may speak for its side without any change to the call. */
function isSeated(call: Call, side: Side, sessionId: string): boolean {
  if (call.status === 'ringing' && side === 'callee') return true
  if (!isLive(call)) return false
  const place = placeOf(call, side)
  return place !== null && place.sessionId === sessionId && place.settled && place.state === 'held'
}
