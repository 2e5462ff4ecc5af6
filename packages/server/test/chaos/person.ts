import { overStatuses } from '@ringwire/protocol/end-reasons'
import { relayLimits } from '@ringwire/protocol/events/webrtc'
import type { Timers } from '../../src/ports/clock.ts'
import type { Random } from '../fuzz/random.ts'
import type { Doer, Habits } from './habits.ts'
import type { Frame, FrameData, Snapshot } from './recording.ts'
import { TrackedCall } from './tracked-call.ts'

export const role = 'person'

export interface PersonOptions {
  readonly userId: string
  readonly others: readonly string[]
  readonly random: Random
  readonly timers: Timers
  /** A uuid that no other call has. */
  readonly newUuid: () => string
  /** Everything takes this many times longer; the default is 1. */
  readonly pace?: number
  /** It has other phones, too: an answered call whose place is not here is on one of them. */
  readonly hasOthers?: boolean
  /** Its habits besides calling and answering; nothing by default. */
  readonly habits?: Habits
}

/** What somebody calls with. */
export interface Handset {
  /** Asks, over however many sockets it takes; undefined where nobody knows what came of it. */
  request(event: string, data: FrameData): Promise<Frame | undefined>
}

/** Pauses in ms; a person is never idle for long. */
const pauses = { betweenCalls: 500, decision: 500, relay: 120, talk: 1_200, retry: 300 } as const
/** A person who waits for the other to hang up does it at the latest after this. */
const longestTalkMs = 6_000
/** How often it is a row of long relays that is sent. */
const longChance = 0.002
/** More calls than these at once are not begun. */
const mostCalls = 3

/**
 * Somebody who calls others without pause and answers, or not, when called. A person believes what a phone says about a
 * call, and asks again about unknown ones, until there is an answer.
 */
export class Person {
  readonly userId: string
  private readonly phone: Handset
  private readonly others: readonly string[]
  private readonly random: Random
  private readonly timers: Timers
  private readonly newUuid: () => string
  private readonly pace: number
  private readonly hasOthers: boolean
  private readonly habits: Habits | undefined
  private readonly doer: Doer
  private readonly calls = new Map<string, TrackedCall>()
  /** Calls that rang here in a turn that is over, and may ring again [GROUP1]. */
  private readonly passed = new Map<string, TrackedCall>()
  /** Calls that it has ended: the service may still have to say that they began [XFER1]. */
  private readonly ended = new Set<string>()
  private readonly under = new Set<Promise<void>>()
  private stopping = false

  constructor(phone: Handset, options: PersonOptions) {
    const { userId, others, random, timers, newUuid, pace = 1, hasOthers = false, habits } = options
    this.phone = phone
    this.userId = userId
    this.others = others
    this.random = random
    this.timers = timers
    this.newUuid = newUuid
    this.pace = pace
    this.hasOthers = hasOthers
    this.habits = habits
    this.doer = {
      ...{ userId, others, timers },
      answered: () => [...this.calls.values()].filter(({ isAnswered, isOver }) => isAnswered && !isOver),
      ask: (event, data) => this.insist(event, data),
      send: (event, data) => void phone.request(event, data),
      join: (callUuid, side, peer) => this.join(callUuid, side, peer),
      goOn: (call) => this.run(call.answeredOrOver().then(() => this.talk(call))),
      end: (callUuid) => this.calls.get(callUuid)?.end(),
      believe: (call, status) => this.believe(call, status),
    }
  }

  /** Calls people until told to stop. */
  start(): void {
    this.run(this.keepCalling())
  }

  /** The calls that it believes in. */
  get open(): readonly string[] {
    return [...this.calls.keys()]
  }

  /** Begins nothing new; resolves when all of its calls are over. */
  async stop(): Promise<void> {
    this.stopping = true
    while (this.under.size > 0) await Promise.all(this.under)
  }

  /** In ms: from nothing to twice what is usual. */
  private pause(of: keyof typeof pauses): number {
    return this.random.int(pauses[of]) * this.pace
  }

  private run(work: Promise<void>): void {
    this.under.add(work)
    void work.finally(() => this.under.delete(work))
  }

  private async keepCalling(): Promise<void> {
    while (!this.stopping) {
      await this.timers.sleep(this.pause('betweenCalls'))
      if (this.stopping || this.calls.size >= mostCalls) continue
      await this.habits?.look(this.doer)
      const group = this.habits?.group()
      const peer = group ?? this.random.pick(this.others)
      if (![...this.calls.values()].some((call) => call.peer === peer))
        await this.callSomebody(peer, group !== undefined)
    }
  }

  private track(callUuid: string, side: TrackedCall['side'], peer: string): TrackedCall {
    const call = new TrackedCall(callUuid, side, peer, this.timers)
    this.calls.set(callUuid, call)
    void call.over.then(() => this.calls.delete(callUuid))
    return call
  }

  private join(callUuid: string, side: TrackedCall['side'], peer: string): TrackedCall | undefined {
    return this.calls.has(callUuid) || this.ended.has(callUuid) ? undefined : this.track(callUuid, side, peer)
  }

  /** Asks until there is an answer that says something. */
  private async insist(event: string, data: FrameData): Promise<Frame> {
    for (;;) {
      const reply = await this.phone.request(event, data)
      if (reply === undefined) continue
      if (reply.error?.retryable !== true) return reply
      await this.timers.sleep(pauses.retry / 2 + this.random.int(pauses.retry))
    }
  }

  private async callSomebody(peer: string, isGroup: boolean): Promise<void> {
    const call = this.track(this.newUuid(), 'caller', peer)
    const callee = isGroup ? { callee_group: peer } : { callee_user_id: peer }
    this.habits?.afterInvite(this.doer, call)
    const invited = await this.insist('call.invite', { ...callee, callee_role: role, call_uuid: call.callUuid })
    // The service may name another call, which the two have already [INV7].
    const named = invited.data?.call_uuid
    if (invited.error !== undefined || named === undefined) {
      call.end()
      return
    }
    if (named !== call.callUuid) {
      call.end()
      return this.endUnknown(named)
    }
    call.known = true
    this.believe(call, invited.data?.status)
    if (this.random.chance(0.4)) this.relay(call, 1 + this.random.int(3))
    if (this.random.chance(longChance)) this.relay(call, 1 + this.random.int(8), true)
    const plan = this.random.int(100)
    if (plan < 20) {
      await call.answeredOrOver(2 * this.pause('decision'))
      if (!call.isOver && !call.isAnswered) return this.hangUp(call, plan < 14 ? 'call.cancel' : 'call.end')
    }
    await call.answeredOrOver()
    await this.talk(call)
  }

  private async answer(call: TrackedCall): Promise<void> {
    const { random } = this
    const data = { call_uuid: call.callUuid }
    if (random.chance(0.5)) void this.phone.request('call.alerting', data)
    const plan = random.int(100)
    // Some let it ring out.
    if (plan >= 85) return call.over
    await call.answeredOrOver(this.pause('decision'))
    if (call.isOver) return
    if (plan < 14) return this.hangUp(call, plan < 10 ? 'call.reject' : 'call.end')
    if (random.chance(0.2)) this.relay(call, 2)
    const reply = await this.insist('call.accept', data)
    if (reply.error !== undefined) call.end()
    else {
      this.believe(this.ofNow(call), reply.data?.status)
      await this.talk(call)
    }
  }

  private async talk(call: TrackedCall): Promise<void> {
    const { random } = this
    const rounds = 2 + random.int(6)
    const connectsAt = random.int(rounds + 1)
    for (let i = 0; i < rounds && !call.isOver; i++) {
      if (i === connectsAt) void this.insist('call.connected', { call_uuid: call.callUuid })
      await this.habits?.inTalk(this.doer, call, i)
      if (random.chance(longChance)) this.relay(call, 8 + random.int(32), true)
      else this.relay(call, 1 + random.int(2))
      await call.overWithin(this.pause('relay'))
    }
    await call.overWithin(random.chance(0.6) ? this.pause('talk') : longestTalkMs)
    await this.habits?.atEnd(call)
    if (!call.isOver) await this.hangUp(call, 'call.end')
  }

  /** Hanging up never fails for a party [END1]; what answers anyway is for the checker. */
  private async hangUp(call: TrackedCall, event: string): Promise<void> {
    this.noteEnd(call.callUuid, await this.insist(event, { call_uuid: call.callUuid }))
    call.end()
    this.ofNow(call).end()
  }

  /** A turn may have passed while a request was under way, and have come again: the reply is about the ring of now [GROUP1]. */
  private ofNow(call: TrackedCall): TrackedCall {
    return this.calls.get(call.callUuid) ?? call
  }

  /**
   * The first of a side is its description, the others are candidates; each carries the next number. Long ones are all
   * descriptions: 24 of them are more than a log holds [RES1].
   */
  private relay(call: TrackedCall, count: number, isLong = false): void {
    for (let i = 0; i < count && !call.isOver; i++) {
      const mark = `${call.callUuid} ${++call.relayed}${isLong ? ` ${relayLimits.sdpBytes - this.random.int(4_096)}` : ''}`
      const type = call.side === 'caller' ? 'offer' : 'answer'
      const data = { call_uuid: call.callUuid }
      // A request without a reply is not sent with another number: nobody knows whether it came.
      if (isLong || call.relayed % 8 === 1)
        void this.phone.request(`webrtc.${type}`, { ...data, sdp: { type, sdp: mark } })
      else {
        const candidate = { candidate: mark, sdpMid: '0', sdpMLineIndex: 0 }
        void this.phone.request('webrtc.ice_candidate', { ...data, candidate })
      }
    }
  }

  private believe(call: TrackedCall, status: string | undefined): void {
    if (status === 'accepted' || status === 'connected') call.answer()
    else if (status !== 'ringing') call.end()
  }

  /** A push came. */
  onPush(frame: Frame): void {
    const { call_uuid: callUuid, caller_user_id: caller, ended_at: endedAt } = frame.data ?? {}
    if (callUuid === undefined) return
    const call = this.calls.get(callUuid)
    this.habits?.onPush(this.doer, frame, call)
    if (frame.event === 'call.ringing') {
      if (call !== undefined || caller === undefined) return
      const ringing = this.track(callUuid, 'callee', caller)
      ringing.known = true
      ringing.relayed = this.passed.get(callUuid)?.relayed ?? 0
      this.run(this.answer(ringing))
    } else if (frame.event === 'call.accepted') {
      call?.answer()
      // It was refused on one socket, and rang because of another one.
      if (call === undefined && !this.ended.has(callUuid)) this.run(this.endUnknown(callUuid))
    }
    // If another phone of the same person answered, the call goes on.
    else if (frame.event === 'call.cancelled') {
      if (call !== undefined && frame.data?.reason === 'next_member') this.passed.set(callUuid, call)
      call?.end()
    } else if (endedAt !== undefined && endedAt !== null) call?.end()
  }

  /** A new session, or a log that was lost: the snapshot says what there is. */
  onFresh(frame: Frame): void {
    const isOwn = ({ status, holds_place }: Snapshot) => holds_place || status === 'ringing' || !this.hasOthers
    const active = new Map(frame.data?.active_calls?.filter(isOwn).map((snapshot) => [snapshot.call_uuid, snapshot]))
    for (const call of this.calls.values()) {
      const snapshot = active.get(call.callUuid)
      if (snapshot !== undefined) {
        call.known = true
        this.believe(call, snapshot.status)
      } else if (call.known) call.end()
    }
    for (const { call_uuid, status, direction } of active.values()) {
      const rings = direction === 'incoming' && status === 'ringing'
      // Nobody here knows of it any more.
      if (!rings && !this.calls.has(call_uuid)) this.run(this.endUnknown(call_uuid))
    }
  }

  /** A person who is handed over may hear of the new call after having asked for its end [XFER1]. */
  private async endUnknown(callUuid: string): Promise<void> {
    const reply = await this.insist('call.end', { call_uuid: callUuid })
    if (reply.error !== undefined) return
    this.noteEnd(callUuid, reply)
    this.calls.get(callUuid)?.end()
  }

  private noteEnd(callUuid: string, { data }: Frame): void {
    if (overStatuses.some((status) => status === data?.status)) this.ended.add(callUuid)
  }
}
