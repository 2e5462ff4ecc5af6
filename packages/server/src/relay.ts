import { type ErrorBody, errorBody } from '@ringwire/protocol/errors'
import { type Call, callKey, isLive, otherSide, placeOf, type Side, sideOf } from './call/call.ts'
import type { Calls, ClientSession } from './calls.ts'
import type { Delivery } from './delivery.ts'
import type { MaybePromise } from './maybe.ts'
import type { Push, Sessions } from './ports.ts'

export type RelayEvent = 'webrtc.offer' | 'webrtc.answer' | 'webrtc.ice_candidate'

/** The sender of relays; `originJson` is made once a session: `"from_user_id":…,"from_role":…` [REL3]. */
export interface RelaySender extends ClientSession {
  readonly originJson: string
}

/** Data of a `webrtc.*` request that was parsed; it is changed in place, nobody else has it. */
export interface RelayData {
  call_uuid: string
  candidate?: unknown
}

export interface Relay {
  /** Passes a `webrtc.*` message on to the other place of the call [REL1]; answers the call's status, or an error. */
  relay(sender: RelaySender, event: RelayEvent, data: RelayData): MaybePromise<RelayResult>
}

export type RelayResult = Call['status'] | ErrorBody

export interface RelayOptions {
  readonly calls: Calls
  readonly delivery: Delivery
  readonly sessions: Sessions
}

/**
 * The short road: a known call, a look at the sender's place, the peer's log. No database on it; only a sender that
 * takes or settles a place by this message goes the long way once [PLACE2].
 */
export function createRelay({ calls, delivery, sessions }: RelayOptions): Relay {
  function relay(sender: RelaySender, event: RelayEvent, data: RelayData): MaybePromise<RelayResult> {
    data.call_uuid = data.call_uuid.toLowerCase()
    const call = delivery.known.get(data.call_uuid + sender.participant.product)
    if (call !== undefined) {
      const side = sideOf(call, sender.participant)
      if (side === undefined) return errorBody('CALL_NOT_FOUND')
      if (isSeated(call, side, sender.sessionId)) return pass(call, side, sender, event, data)
    }
    return seatFirst(sender, event, data)
  }

  async function seatFirst(sender: RelaySender, event: RelayEvent, data: RelayData): Promise<RelayResult> {
    const seated = await calls.seat(sender, data.call_uuid)
    if (!seated.ok) return seated.error
    const call = seated.value
    const side = sideOf(call, sender.participant)
    if (!isLive(call) || side === undefined) return call.status
    delivery.learn(call)
    const now = newest(call)
    return isLive(now) ? pass(now, side, sender, event, data) : now.status
  }

  /** The call may have moved on while its store was asked. */
  function newest(read: Call): Call {
    const known = delivery.known.get(callKey(read))
    return known !== undefined && known.version > read.version ? known : read
  }

  function pass(call: Call, side: Side, sender: RelaySender, event: RelayEvent, data: RelayData): RelayResult {
    if (event === 'webrtc.ice_candidate' && data.candidate === null) return call.status
    const push = new RelayPush(callKey(call), event, encode(data), sender.originJson)
    if (call.status === 'ringing') {
      const kept = delivery.keepForAccept(call, { side, sessionId: sender.sessionId }, push)
      return kept ? call.status : errorBody('RELAY_BUFFER_FULL')
    }
    const peer = placeOf(call, otherSide(side))
    if (peer === null) return call.status
    return sessions.append(peer.sessionId, push) === 'full' ? errorBody('RELAY_BUFFER_FULL') : call.status
  }

  return { relay }
}

/**
 * The sender's data with who sent it [REL3]. Its text is put together once, as its receiver reads it: a string that is
 * made of strings that are made of strings costs a tenth of a relay.
 */
class RelayPush implements Push {
  readonly kind = 'relay'
  readonly version = undefined
  readonly call: string
  private readonly event: RelayEvent
  private readonly data: string
  private readonly origin: string

  constructor(call: string, event: RelayEvent, data: string, origin: string) {
    this.call = call
    this.event = event
    this.data = data
    this.origin = origin
  }

  get text(): string {
    return `{"event":"${this.event}","data":${this.data},${this.origin}}}`
  }

  numbered(seq: number): string {
    return `{"event":"${this.event}","data":${this.data},${this.origin}},"seq":${seq}}`
  }
}

/** Whether the session may speak for its side without any change to the call. */
function isSeated(call: Call, side: Side, sessionId: string): boolean {
  if (call.status === 'ringing' && side === 'callee') return true
  if (!isLive(call)) return false
  const place = placeOf(call, side)
  return place !== null && place.sessionId === sessionId && place.settled && place.state === 'held'
}

/** The sender's data but for its last brace; a forged origin is taken out first. */
function encode(data: RelayData): string {
  const fields = data as Record<string, unknown> & RelayData
  if ('from_user_id' in fields) delete fields.from_user_id
  if ('from_role' in fields) delete fields.from_role
  return JSON.stringify(data).slice(0, -1)
}
