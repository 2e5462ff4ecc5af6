import type { Timers } from '../../src/ports/clock.ts'
import type { Random } from '../fuzz/random.ts'
import { mostSaid, saying } from './media-mark.ts'
import type { Frame, FrameData } from './recording.ts'
import type { TrackedCall } from './tracked-call.ts'

/** Who has habits, as they see it. */
export interface Doer {
  readonly userId: string
  readonly others: readonly string[]
  readonly timers: Timers
  /** Its calls that were answered, and go on. */
  answered(): readonly TrackedCall[]
  /** Asks until there is an answer that says something. */
  ask(event: string, data: FrameData): Promise<Frame>
  /** Sends a request for whose answer nobody waits. */
  send(event: string, data: FrameData): void
  /** Takes note of a call that somebody else began; undefined where it is known. */
  join(callUuid: string, side: TrackedCall['side'], peer: string): TrackedCall | undefined
  /** Goes on with a call that was joined. */
  goOn(call: TrackedCall): void
  /** A call is over, if it is known. */
  end(callUuid: string): void
  /** Believes what the service says of a call. */
  believe(call: TrackedCall, status: string | undefined): void
}

export interface HabitsOptions {
  readonly random: Random
  readonly role: string
  /** The groups that there are to call. */
  readonly groups: readonly string[]
  /** It has other phones, from which it takes calls. */
  readonly takes: boolean
  /** It connects the other sides of two of its calls, and transfers calls to groups [XFER1]. */
  readonly isDesk: boolean
}

/** What a client with these habits understands [EXT6]. */
export const capabilities = 'transfer,take,group'

const chances = {
  /** Of a call to be one to a group. */
  group: 0.2,
  /** Of an invite to be given up before it is answered. */
  withdraw: 0.05,
  /** In each round of a talk. */
  say: 0.3,
  transfer: 0.05,
  /** At the begin of a talk, when the other side does the same. */
  transferAtOnce: 0.05,
  /** Of a transfer to be one to a group. */
  transferToGroup: 0.4,
  /** In each round of a talk, where there is another one. */
  connect: 0.15,
  /** To give up a transfer before the target has answered, by hanging up the first call or the new one. */
  giveUp: 0.2,
  /** To look for a call on another phone. */
  look: 0.4,
  /** To send something for a call that another phone has taken. */
  afterTake: 0.5,
} as const
/** Longer than any ring at all at once, and than one in turn, in ms. */
const longestTransferMs = 4_000
const longestDeskTransferMs = 6_500
const withdrawMs = 150
const giveUpMs = 1_000

/**
 * What people do beside calling and answering: they put calls on hold, hand them over, go on with them on another phone, and
 * call groups [HOLD1, XFER1, TAKE1, GROUP1].
 */
export class Habits {
  private readonly options: HabitsOptions
  private readonly random: Random
  /** What waits for a transfer to fail, by the first call. */
  private readonly failed = new Map<string, () => void>()

  constructor(options: HabitsOptions) {
    this.options = options
    this.random = options.random
  }

  /** The group to call next, if it is to be one. */
  group(): string | undefined {
    const { groups } = this.options
    return groups.length > 0 && this.random.chance(chances.group) ? this.random.pick(groups) : undefined
  }

  /** An invite was sent: some cancel it before they have heard anything. */
  afterInvite(doer: Doer, call: TrackedCall): void {
    if (!this.random.chance(chances.withdraw)) return
    const cancel = async () => {
      await doer.timers.sleep(this.random.int(withdrawMs))
      const { data, error } = await doer.ask('call.cancel', { call_uuid: call.callUuid })
      if (error === undefined) doer.believe(call, data?.status)
    }
    void cancel()
  }

  /** A round of a talk. */
  async inTalk(doer: Doer, call: TrackedCall, round: number): Promise<void> {
    const { random } = this
    if (random.chance(chances.say)) this.say(doer, call)
    if (random.chance(round === 0 ? chances.transferAtOnce : chances.transfer)) await this.transfer(doer, call)
    if (this.options.isDesk && random.chance(chances.connect)) await this.connect(doer, call)
  }

  /** It is about to hang up: most wait where the call is being handed over. */
  async atEnd(call: TrackedCall): Promise<void> {
    if (call.isHandedOver && !this.random.chance(chances.giveUp)) await call.overWithin(this.longestMs)
  }

  /** Every message of a side differs from its others; every second one holds the call. */
  private say(doer: Doer, call: TrackedCall): void {
    if (call.said < mostSaid) doer.send('call.media', { call_uuid: call.callUuid, ...saying(++call.said) })
  }

  private async transfer(doer: Doer, call: TrackedCall): Promise<void> {
    const target = this.target(doer, call)
    if (target === undefined || call.isOver) return
    const to = { to_role: this.options.role, ...target }
    const failed = Promise.withResolvers<void>()
    this.failed.set(call.callUuid, failed.resolve)
    const reply = await doer.ask('call.transfer', { call_uuid: call.callUuid, ...to })
    const ms = this.random.chance(chances.giveUp) ? this.random.int(giveUpMs) : this.longestMs
    if (reply.error === undefined) await Promise.race([failed.promise, call.overWithin(ms)])
    this.failed.delete(call.callUuid)
  }

  /** Whom a call is transferred to. */
  private target(doer: Doer, call: TrackedCall): FrameData | undefined {
    const { isDesk, groups } = this.options
    if (isDesk && this.random.chance(chances.transferToGroup)) return { to_group: this.random.pick(groups) }
    const targets = doer.others.filter((user) => user !== call.peer)
    return targets.length === 0 ? undefined : { to_user_id: this.random.pick(targets) }
  }

  /** Connects the other side of a call with the one of another call, if there is one. */
  private async connect(doer: Doer, call: TrackedCall): Promise<void> {
    const others = doer.answered().filter((each) => each !== call && each.peer !== call.peer)
    if (others.length === 0 || call.isOver) return
    const second = this.random.pick(others)
    const data = { call_uuid: call.callUuid, to_call_uuid: second.callUuid }
    const reply = await doer.ask('call.transfer', data)
    if (reply.error === undefined) await Promise.all([call, second].map((each) => each.overWithin(this.longestMs)))
  }

  /** The longest that it waits for a transfer, in ms. */
  private get longestMs(): number {
    return this.options.isDesk ? longestDeskTransferMs : longestTransferMs
  }

  /** Goes on here with a call that another phone has. */
  async look(doer: Doer): Promise<void> {
    if (!this.options.takes || !this.random.chance(chances.look)) return
    const listed = await doer.ask('call.list', {})
    const elsewhere = listed.data?.active_calls?.filter((call) => call.elsewhere === true) ?? []
    if (elsewhere.length === 0) return
    const { call_uuid, direction, peer } = this.random.pick(elsewhere)
    const reply = await doer.ask('call.take', { call_uuid })
    if (reply.error !== undefined) return
    const call = doer.join(call_uuid, direction === 'outgoing' ? 'caller' : 'callee', peer?.user_id ?? '')
    if (call === undefined) return
    call.known = true
    doer.believe(call, reply.data?.status)
    doer.goOn(call)
  }

  onPush(doer: Doer, { event, data }: Frame, first: TrackedCall | undefined): void {
    const { call_uuid: callUuid = '', new_call_uuid: next = '' } = data ?? {}
    if (event === 'call.transferring') {
      if (first !== undefined) first.isHandedOver = true
      const side = data?.direction === 'incoming' ? 'callee' : 'caller'
      this.follow(doer, doer.join(next, side, data?.to?.user_id ?? ''), data?.status === 'accepted')
    } else if (event === 'call.transfer_failed') {
      this.failed.get(callUuid)?.()
      doer.end(next)
      if (first !== undefined) first.isHandedOver = false
    } else if (data?.reason === 'taken_elsewhere' && this.random.chance(chances.afterTake)) {
      const candidate = { candidate: `${callUuid} 0`, sdpMid: '0', sdpMLineIndex: 0 }
      doer.send('webrtc.ice_candidate', { call_uuid: callUuid, candidate })
    }
  }

  /** It was handed over: the new call rings in its name, or was answered before it began. */
  private follow(doer: Doer, call: TrackedCall | undefined, isAnswered: boolean): void {
    if (call === undefined) return
    call.known = true
    if (isAnswered) call.answer()
    doer.goOn(call)
    if (isAnswered || !this.random.chance(chances.giveUp / 2)) return
    const cancel = async () => {
      await call.answeredOrOver(this.random.int(giveUpMs))
      if (call.isOver || call.isAnswered) return
      await doer.ask('call.cancel', { call_uuid: call.callUuid })
      call.end()
    }
    void cancel()
  }
}
