import { createHash } from 'node:crypto'
import { type CallRef, type Participant, participantKey, sideOf } from '../call/call.ts'
import { checkInvite, type InviteCommand, type InviteVerdict } from '../call/invite.ts'
import type { RedirectedTo } from '../invite-hook/answer.ts'
import type { Decider, InviteHook, Question, Verdict } from '../invite-hook/invite-hook.ts'
import type { CallSteps, LiveCallReads } from '../ports/call-store.ts'
import type { ProductSettings } from '../ports/product-store.ts'
import type { FindGroup } from './called-groups.ts'
import type { ClientSession, Waiter } from './request.ts'

export interface AskBackendOptions {
  readonly store: Pick<CallSteps, 'load'> & Pick<LiveCallReads, 'liveCallsOf'>
  readonly hook: InviteHook
  readonly findGroup: FindGroup
}

/** An invite that a client sent. */
export interface Invited {
  readonly session: ClientSession
  readonly command: InviteCommand
  /** The `call_uuid` that the client gave: by it the client can hang up before the backend has decided. */
  readonly named: string | undefined
  readonly waiter: Waiter | undefined
  /** How long it rings, in ms, with a group's time, or with the product's. */
  readonly ringMsFor: (groupMs: number | undefined) => number
  /** False where nobody is to ring: an answer that redirects the call is not valid then [XFER1]. */
  readonly mayRedirect?: boolean
}

/** Answers the invite as the backend of its product wants it, or unchanged if no backend decides [HOOK5]. */
export type AskBackend = (invited: Invited, settings: ProductSettings) => Promise<InviteCommand>

export function createAskBackend({ store, hook, findGroup }: AskBackendOptions): AskBackend {
  const redirect = createRedirect(findGroup)

  /** The backend is not asked about a repeat, which is answered as before, nor about an invite over a limit. */
  async function isToBeAsked({ rate, actor, maxRinging }: InviteCommand, known: boolean): Promise<boolean> {
    if (known || !rate.ok) return false
    const live = await store.liveCallsOf(actor.participant)
    const isOwnRing = (call: (typeof live)[number]) =>
      call.status === 'ringing' && sideOf(call, actor.participant) === 'caller'
    return live.filter(isOwnRing).length < maxRinging
  }

  return async (invited, settings) => {
    const { session, command: given, named, waiter } = invited
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
    const question = {
      ...questionOf({ product, callUuid }, command, callee),
      decider,
      wrongWith: redirect.wrongWith(invited),
    }
    const verdict = await hook.ask(question, signal)
    return verdict.decision === 'redirect'
      ? redirect.apply({ ...invited, command }, verdict.callee, failure)
      : applied(command, verdict)
  }
}

/** Whom a backend has called instead, and how. */
function createRedirect(findGroup: FindGroup) {
  const find = ({ command }: Invited, { role, userId, group }: RedirectedTo) =>
    findGroup(command.actor.participant, { callee: { role, userId }, group })

  return {
    wrongWith(invited: Invited): Question['wrongWith'] {
      const { session, command, mayRedirect = true } = invited
      return async (to) => {
        const refused = checkInvite(session, session.participant, to, command.callType)
        if (!mayRedirect || refused !== undefined) return 'the caller may not call whom the answer names'
        return (await find(invited, to)) === 'unknown' ? 'the product has no group as the answer names it' : undefined
      }
    },
    async apply(invited: Invited, to: RedirectedTo, failure: Decider['failure']): Promise<InviteCommand> {
      const { command, ringMsFor } = invited
      const called = await find(invited, to)
      // It was removed since the answer came.
      if (called === 'unknown')
        return { ...command, verdict: failure === 'allow' ? allowed : refusedFor('unavailable') }
      const { group: _, ...rest } = command
      return {
        ...rest,
        callee: { role: to.role, userId: to.userId },
        ...(called !== undefined && { group: called.group }),
        ...(rest.askedFor !== undefined && { redirectedFrom: rest.askedFor }),
        ringTimeoutMs: ringMsFor(called?.ringMs),
        verdict: allowed,
      }
    },
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
function applied(command: InviteCommand, verdict: Exclude<Verdict, { decision: 'redirect' }>): InviteCommand {
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
  }
}

const allowed: InviteVerdict = { is: 'allowed' }
const refusedFor = (reason: string): InviteVerdict => ({ is: 'refused', reason })
