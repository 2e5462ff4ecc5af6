import { createHash } from 'node:crypto'
import { type CallRef, type Participant, participantKey, sideOf } from '../call/call.ts'
import { checkInvite, type InviteCommand, type InviteVerdict } from '../call/invite.ts'
import type { InviteHook, Question, Verdict } from '../invite-hook/invite-hook.ts'
import type { CallSteps, LiveCallReads } from '../ports/call-store.ts'
import type { ProductSettings } from '../ports/product-store.ts'
import type { ClientSession, Waiter } from './request.ts'

export interface AskBackendOptions {
  readonly store: Pick<CallSteps, 'load'> & Pick<LiveCallReads, 'liveCallsOf'>
  readonly hook: InviteHook
}

/** An invite that a client sent. */
export interface Invited {
  readonly session: ClientSession
  readonly command: InviteCommand
  /** The `call_uuid` that the client gave: by it the client can hang up before the backend has decided. */
  readonly named: string | undefined
  readonly waiter: Waiter | undefined
  /** False where nobody is to ring: an answer that redirects the call is not valid then [XFER1]. */
  readonly mayRedirect?: boolean
}

/** Answers the invite as the backend of its product wants it, or unchanged if no backend decides [HOOK5]. */
export type AskBackend = (invited: Invited, settings: ProductSettings) => Promise<InviteCommand>

export function createAskBackend({ store, hook }: AskBackendOptions): AskBackend {
  /** The backend is not asked about a repeat, which is answered as before, nor about an invite over a limit. */
  async function isToBeAsked({ rate, actor, maxRinging }: InviteCommand, known: boolean): Promise<boolean> {
    if (known || !rate.ok) return false
    const live = await store.liveCallsOf(actor.participant)
    const isOwnRing = (call: (typeof live)[number]) =>
      call.status === 'ringing' && sideOf(call, actor.participant) === 'caller'
    return live.filter(isOwnRing).length < maxRinging
  }

  return async ({ session, command: given, named, waiter, mayRedirect = true }, settings) => {
    const { inviteUrl: url, inviteSecret: secret, inviteFailure: failure } = settings
    if (url === null || secret === null) return given
    const { product } = session.participant
    const callee: Participant = { product, ...given.callee }
    const found = await store.load({ product, callUuid: given.callUuid })
    const isOwn = found !== undefined && sideOf(found, session.participant) === 'caller'
    // The question must not show anything about a call of strangers either [UUID1].
    const callUuid = found === undefined || isOwn ? given.callUuid : given.freshUuid
    const command: InviteCommand = { ...given, callUuid, askedFor: fingerprintOf(callee, given.group?.name) }
    if (!(await isToBeAsked(command, isOwn))) return { ...command, verdict: { is: 'unasked' } }
    const signal = waiter?.waitsOutside(named) ?? new AbortController().signal
    const decider = { url, secret, failure }
    const mayCall: Question['mayCall'] = (other) =>
      mayRedirect && checkInvite(session, session.participant, other, command.callType) === undefined
    const question = { ...questionOf({ product, callUuid }, command, callee), decider, mayCall }
    return applied(command, await hook.ask(question, signal))
  }
}

function questionOf(ref: CallRef, command: InviteCommand, callee: Participant) {
  const { actor, group, callType, contextType, contextId, metadata } = command
  const caller = { ...actor.participant, displayName: actor.displayName }
  const called = group === undefined ? { callee } : { callee, group: group.name }
  return { ...ref, caller, ...called, callType, contextType, contextId, metadata }
}

/** A hash. The name of a callee who was not rung is not kept. */
function fingerprintOf(callee: Participant, group = ''): string {
  return createHash('sha256')
    .update(participantKey(callee) + group)
    .digest('base64url')
    .slice(0, 22)
}

/** The invite as it was decided. */
function applied(command: InviteCommand, verdict: Verdict): InviteCommand {
  switch (verdict.decision) {
    case 'withdrawn':
      return { ...command, verdict: { is: 'withdrawn' } }
    case 'refuse':
      return { ...command, verdict: refusedFor(verdict.reason ?? 'refused') }
    case 'allow': {
      const { metadata = command.metadata, ringTimeoutMs = command.ringTimeoutMs } = verdict
      const shorter = Math.min(ringTimeoutMs, command.ringTimeoutMs)
      return { ...command, metadata, ringTimeoutMs: shorter, verdict: allowed }
    }
    case 'redirect': {
      const { group: _, ...rest } = command
      return { ...rest, ...redirectedTo(verdict.callee, command), verdict: allowed }
    }
  }
}

const allowed: InviteVerdict = { is: 'allowed' }
const redirectedTo = (callee: InviteCommand['callee'], { askedFor }: InviteCommand) => ({
  callee,
  ...(askedFor !== undefined && { redirectedFrom: askedFor }),
})
const refusedFor = (reason: string): InviteVerdict => ({ is: 'refused', reason })
