import { ExtendedClient } from '@ringwire/testkit/extended-client'
import type { ExtendedMessage } from '@ringwire/testkit/extended-trace'
import { candidate } from '@ringwire/testkit/flows'
import { overdue } from '@ringwire/testkit/patience'
import { answer, inviteOf, offer } from '../../support/sessions.ts'
import type { Random } from './random.ts'

/** How long something may take while connections are cut. A bound for failures, never a pace. */
const patienceMs = 60_000

/** How a call went, as one side saw it. */
export class CallView {
  accepted = false
  /** The other side reported its media. */
  peerConnected = false
  /** Relays that came. */
  relays = 0
  /** What the final notice said, or what this side itself did. */
  status: string | undefined
  reason: string | undefined
  private waiters: { holds: (view: CallView) => boolean; resolve: () => void }[] = []

  take({ event, data }: ExtendedMessage): void {
    if (event === 'call.accepted') this.accepted = true
    else if (event === 'call.status') this.peerConnected = true
    else if (event.startsWith('webrtc.')) this.relays++
    else if (event === 'call.ended' || event === 'call.cancelled' || event === 'call.rejected') {
      this.status = data.status
      this.reason = data.reason
    }
    const ready = this.waiters.filter(({ holds }) => holds(this))
    this.waiters = this.waiters.filter((waiter) => !ready.includes(waiter))
    for (const { resolve } of ready) resolve()
  }

  /** A phone that ends a call that is over already heard so before the reply. */
  endedBySelf(status: string, reason: string): void {
    this.status ??= status
    this.reason ??= reason
  }

  until(holds: (view: CallView) => boolean): Promise<void> {
    if (holds(this)) return Promise.resolve()
    return new Promise((resolve, reject) => {
      const seen = () => ({ ...this, waiters: undefined })
      const late = () => reject(new Error(`a call stands still: ${JSON.stringify(seen())}`))
      const cancel = overdue(patienceMs, late)
      this.waiters.push({
        holds,
        resolve() {
          cancel()
          resolve()
        },
      })
    })
  }
}

/** Candidates of each side in every call; what a call is about is agreed on beforehand. */
export interface Plan {
  readonly callUuid: string
  readonly kind: 'whole' | 'rejected' | 'cancelled'
  readonly endedBy: 'caller' | 'callee' | 'both'
  readonly candidates: { readonly caller: number; readonly callee: number }
}

/** One person's client, and the calls that it sees. */
export class Phone {
  readonly userId: string
  readonly client: ExtendedClient
  readonly views = new Map<string, CallView>()
  private readonly plans: ReadonlyMap<string, Plan>
  private readonly random: Random
  /** Answered calls that are not over yet. */
  private readonly answering: Promise<void>[] = []

  constructor(options: {
    userId: string
    url: string
    token: string
    plans: ReadonlyMap<string, Plan>
    random: Random
  }) {
    const { userId, url, token, plans, random } = options
    this.userId = userId
    this.plans = plans
    this.random = random
    this.client = new ExtendedClient({
      userId,
      url,
      token,
      persistent: true,
      listener: (message) => this.hear(message),
    })
  }

  view(callUuid: string): CallView {
    const view = this.views.get(callUuid) ?? new CallView()
    this.views.set(callUuid, view)
    return view
  }

  private hear(message: ExtendedMessage): void {
    if (message.seq === undefined || message.data.call_uuid === undefined) return
    const callUuid: string = message.data.call_uuid
    const isNew = !this.views.has(callUuid)
    this.view(callUuid).take(message)
    const plan = this.plans.get(callUuid)
    if (isNew && message.event === 'call.ringing' && plan !== undefined) this.answering.push(this.answer(plan))
  }

  /** Until every call that rang here is over. */
  async quiet(): Promise<void> {
    await Promise.all(this.answering)
  }

  /** Sends relays one after another; some wait for their reply, so that cuts fall everywhere. */
  private async talk(relays: readonly (readonly [event: string, data: object])[]): Promise<void> {
    const replies: Promise<ExtendedMessage>[] = []
    for (const [event, data] of relays) {
      const reply = this.client.request(event, data)
      replies.push(reply)
      if (this.random.next() < 0.25) await reply
    }
    for (const { event, error } of await Promise.all(replies)) {
      if (event !== 'call.ack') throw new Error(`a relay got ${event} ${error?.code}`)
    }
  }

  private candidates({ callUuid }: Plan, from: number, to: number) {
    return Array.from({ length: to - from }, (_, n) => ['webrtc.ice_candidate', candidate(callUuid, from + n)] as const)
  }

  async call(calleeId: string, plan: Plan): Promise<void> {
    const { callUuid, kind, endedBy } = plan
    const view = this.view(callUuid)
    await this.verb('call.invite', inviteOf(calleeId, { call_uuid: callUuid }))
    if (kind === 'rejected') return view.until(({ status }) => status !== undefined)
    if (kind === 'cancelled') {
      await this.verb('call.cancel', { call_uuid: callUuid })
      view.endedBySelf('cancelled', 'caller_cancelled')
      return
    }
    const total = plan.candidates.caller
    const early = this.random.between(0, total)
    // Sent while it rings: kept until the accept [REL2].
    await this.talk([['webrtc.offer', offer(callUuid)], ...this.candidates(plan, 0, early)])
    await view.until(({ accepted }) => accepted)
    await this.talk(this.candidates(plan, early, total))
    // The callee has everything, and so have we; the last candidate says so.
    await view.until(({ peerConnected, relays }) => peerConnected && relays === plan.candidates.callee + 1)
    if (endedBy !== 'caller') await this.talk(this.candidates(plan, total, total + 1))
    if (endedBy === 'callee') await view.until(({ status }) => status !== undefined)
    else await this.hangUp(plan, 'by_caller')
  }

  private async answer(plan: Plan): Promise<void> {
    const { callUuid, kind, endedBy } = plan
    const view = this.view(callUuid)
    if (kind === 'rejected') {
      await this.verb('call.reject', { call_uuid: callUuid, reason: 'by_callee' })
      view.endedBySelf('rejected', 'by_callee')
      return
    }
    if (kind === 'cancelled') return view.until(({ status }) => status !== undefined)
    await this.verb('call.alerting', { call_uuid: callUuid })
    await this.verb('call.accept', { call_uuid: callUuid })
    await this.talk([['webrtc.answer', answer(callUuid)], ...this.candidates(plan, 0, plan.candidates.callee)])
    await view.until(({ relays }) => relays >= plan.candidates.caller + 1)
    await this.verb('call.connected', { call_uuid: callUuid })
    if (endedBy === 'caller') return view.until(({ status }) => status !== undefined)
    await view.until(({ relays, status }) => relays === plan.candidates.caller + 2 || status !== undefined)
    await this.hangUp(plan, 'by_callee')
  }

  private async hangUp({ callUuid }: Plan, reason: string): Promise<void> {
    await this.verb('call.end', { call_uuid: callUuid, reason })
    this.view(callUuid).endedBySelf('ended', reason)
  }

  private async verb(event: string, data: object): Promise<void> {
    const reply = await this.client.request(event, data)
    if (reply.error !== undefined) throw new Error(`${event} got ${reply.error.code}`)
  }
}
