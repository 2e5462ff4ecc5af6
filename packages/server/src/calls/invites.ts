import { type ErrorBody, errorBody } from '@ringwire/protocol/errors'
import type { CallInvite, CallInvited } from '@ringwire/protocol/events/call'
import { inviteLimits } from '@ringwire/protocol/events/call'
import { isLive, type LiveCall, type OverCall, type Participant, sideOf } from '../call/call.ts'
import type { Refusal } from '../call/command.ts'
import { checkInvite, decideInvite, type InviteCommand, type InviteDecision, type InviteRate } from '../call/invite.ts'
import type { Delivery } from '../delivery/delivery.ts'
import type { CallSteps, InviteSituation, LiveCallReads } from '../ports/call-store.ts'
import type { Groups } from '../ports/groups.ts'
import type { Nodes } from '../ports/nodes.ts'
import type { ProductSettings, ProductStore } from '../ports/product-store.ts'
import type { Sessions } from '../ports/sessions.ts'
import type { SteadyClock } from '../time/steady-clock.ts'
import type { Recorder } from '../timeline/recorder.ts'
import type { AskBackend } from './ask-backend.ts'
import { countedAs, createFindGroup, isAnybodyThere, type Named, readNamed } from './called-groups.ts'
import type { WithQuality } from './end-quality.ts'
import type { LeavingSince } from './leaving-groups.ts'
import { type ClientSession, errorOf, type Outcome, type Waiter } from './request.ts'
import type { Transitions } from './transitions.ts'

/** The limits that an invite has to pass [INV8]. */
export interface InviteLimits {
  invite(caller: Participant, callee: Participant): Promise<InviteRate>
  refundInvite(caller: Participant, callee: Participant): Promise<void>
}

export interface InvitesOptions {
  readonly store: CallSteps & LiveCallReads
  readonly products: Pick<ProductStore, 'settings'>
  readonly groups: Pick<Groups, 'get'>
  readonly sessions: Pick<Sessions, 'liveOf' | 'sinkOf'>
  readonly nodes: Nodes
  readonly delivery: Delivery
  readonly transitions: Transitions
  readonly leavingSince: LeavingSince
  readonly limits: InviteLimits
  readonly recorder: Pick<Recorder, 'record'>
  readonly withQuality: WithQuality
  readonly askBackend: AskBackend
  readonly clock: SteadyClock
  readonly ringTimeoutMs: number
  readonly maxRinging: number
  /** A uuid that no other call has. */
  readonly newUuid: () => string
}

export type Invite = (session: ClientSession, data: CallInvite, waiter?: Waiter) => Promise<Outcome<CallInvited>>

/** How a call begins: who may call whom, whom it rings, and what else it ends [INV1 to INV8]. */
export function createInvite(options: InvitesOptions): Invite {
  const { recorder } = options
  const tryInvite = createTryInvite(options)

  /** An invite that was refused before there was a call goes into the timeline of the uuid that it named [TRACE1]. */
  return async (session, data, waiter) => {
    const outcome = await tryInvite(session, data, waiter)
    // A busy callee was called, and that is a call. So is what the backend refused.
    if (outcome.ok || !data.call_uuid || isCall(outcome.error)) return outcome
    noteRefused(recorder, session, data.call_uuid.toLowerCase(), data.callee_role, outcome.error)
    return outcome
  }
}

/** Any uuid can be named: what names a call of others is left out where it is written [UUID1]. */
function noteRefused(
  recorder: InvitesOptions['recorder'],
  { participant, sessionId, deviceId }: ClientSession,
  callUuid: string,
  peerRole: string,
  { code, limit }: ErrorBody,
): void {
  const { product, role, userId } = participant
  recorder.record(
    { product, callUuid },
    {
      what: 'refused',
      side: 'caller',
      asker: { role, userId },
      sessionId,
      deviceId: deviceId ?? undefined,
      detail: { code, ...(limit !== undefined && { limit }), peer_role: peerRole },
    },
  )
}

function createTryInvite(options: InvitesOptions): Invite {
  const { store, products, limits, askBackend, clock, newUuid, ringTimeoutMs, maxRinging } = options
  const waiting = createWaitingCalls(options)
  const settle = createSettle(options, waiting)
  const findGroup = createFindGroup(options)

  return async (session, data, waiter) => {
    const caller = session.participant
    const named = readNamed(data)
    const callee: Participant = { product: caller.product, ...named.callee }
    const refused = checkInvite(session, caller, callee, data.call_type)
    if (refused?.code === 'CALL_PEER_ROLE_NOT_ALLOWED') return { ok: false, error: roleRefused(callee, session) }
    if (refused !== undefined) return { ok: false, error: errorOf(refused) }

    const freshUuid = newUuid()
    const callUuid = data.call_uuid?.toLowerCase() ?? freshUuid
    const [foreseen, settings] = await Promise.all([
      store.foresee(caller, named.group === undefined ? callee : caller, callUuid),
      products.settings(caller.product),
    ])
    await waiting.askHolderOfRinging(session, named, foreseen.live, waiter)
    const counted = countedAs(named, caller.product)
    const called = await findGroup(caller, named)
    if (called === 'unknown') return { ok: false, error: errorBody('GROUP_NOT_FOUND') }
    const ringMsFor = (groupMs: number | undefined) => {
      const longest = groupMs ?? settings.ringTimeoutMs ?? ringTimeoutMs
      return Math.min(data.ring_timeout_ms ?? longest, longest)
    }
    const rate = await limits.invite(caller, counted)
    const ownMs = ringMsFor(called?.ringMs)
    const rest = {
      rate,
      ringTimeoutMs: ownMs,
      busy: settings.busy,
      freshUuid,
      maxRinging,
      callee: named.callee,
    }
    const given = { ...commandOf(session, data, rest), ...(called !== undefined && { group: called.group }) }
    const asked = { session, command: given, named: data.call_uuid?.toLowerCase(), waiter, ringMsFor }
    const command = await askBackend(asked, settings)
    const isTokenOver = session.expiresAt !== undefined && clock.now() >= session.expiresAt
    if (command.verdict !== undefined && isTokenOver) return { ok: false, error: errorBody('AUTH_TOKEN_INVALID') }
    // A backend that decides may have another uuid taken, or another callee.
    const isAsForeseen = command.callUuid === callUuid && command.callee === named.callee
    return settle({ session, command, counted, settings, waiter, foreseen: isAsForeseen ? foreseen : undefined })
  }
}

/** An invite, ready to be decided on. `counted`: for whom it counts [INV8]. */
interface Ready {
  readonly session: ClientSession
  readonly command: InviteCommand
  readonly counted: Participant
  readonly settings: ProductSettings
  readonly waiter: Waiter | undefined
  readonly foreseen?: InviteSituation | undefined
}

/** Commits what is decided on an invite, and hands it on. */
function createSettle(options: InvitesOptions, { isWaitingInVain }: ReturnType<typeof createWaitingCalls>) {
  const { store, sessions, transitions, leavingSince, limits, withQuality, clock } = options
  const { commit, handOn, losesDeadHolder } = transitions

  return async function settle(ready: Ready): Promise<Outcome<CallInvited>> {
    const { session, command, settings, waiter } = ready
    const caller = session.participant
    const { product } = caller
    const {
      group,
      callee: { role },
    } = command
    const called = group?.members.map((userId): Participant => ({ product, role, userId }))
    const callee: Participant = { product, ...command.callee }
    // Without the sessions of the callee nobody could tell it of the call, so nothing is written.
    const delivered = await isAnybodyThere(sessions, called ?? [callee], clock.now())
    const decision = await withQuality<InviteDecision>((seen) =>
      commit(
        // A group's caller has nothing to do with other calls of its members.
        store.invite(
          caller,
          group === undefined ? callee : caller,
          command.callUuid,
          (situation) => seen(decideInvite(situation, command, clock.now())),
          ready.foreseen,
        ),
      ),
    )
    const { isNew, handedOn } = await handOnInOrder(decision, handOn)
    // Only invites that leave a call behind count, ringing or over at once [INV8].
    const counts = decision.ok ? decision.created : decision.steps.length > 0
    if (command.rate.ok && !counts) await limits.refundInvite(caller, ready.counted)
    if (!decision.ok) {
      if (decision.code === 'CALL_GLARE' && (await isWaitingInVain(session, decision, waiter)))
        return settle({ ...ready, foreseen: undefined })
      return { ok: false, error: errorOf(decision) }
    }
    // The same invite came on another socket, and was committed just now: that socket may be dead [PLACE4].
    const { call } = decision
    if (!isNew && isLive(call) && (await losesDeadHolder(session, call, waiter)))
      return settle({ ...ready, foreseen: undefined })
    const invited = invitedData(call, delivered)
    const value = settings.revealBusy ? { ...invited, callee_busy: decision.calleeBusy } : invited
    return { ok: true, value, handedOn: isNew ? leavingSince(call, handedOn) : handedOn }
  }
}

type CommandRest = Pick<InviteCommand, 'rate' | 'freshUuid' | 'maxRinging' | 'busy' | 'callee' | 'ringTimeoutMs'>

function commandOf(session: ClientSession, data: CallInvite, rest: CommandRest): InviteCommand {
  return {
    ...rest,
    actor: session,
    callUuid: data.call_uuid?.toLowerCase() ?? rest.freshUuid,
    contextType: data.context_type ?? session.contextType,
    contextId: data.context_id ?? session.contextId,
    callType: typeof data.call_type === 'string' ? data.call_type : inviteLimits.defaultCallType,
    metadata: data.metadata ?? null,
  }
}

/**
 * The ends that the invite caused are delivered before it is answered, and the new call after that: whatever others make
 * of the new call, its inviter has heard of it.
 */
async function handOnInOrder(decision: InviteDecision, handOn: Transitions['handOn']) {
  const isNew = decision.ok && decision.created
  const older = handOn({ ...decision, steps: decision.steps.slice(0, isNew ? -1 : undefined) }).then(() => {})
  const handedOn = isNew ? handOn({ ...decision, steps: decision.steps.slice(-1) }, older).then(() => {}) : older
  await older
  return { isNew, handedOn }
}

/** Earlier calls that an invite meets. */
function createWaitingCalls({ store, sessions, nodes, delivery, transitions }: InvitesOptions) {
  const { run, losesDeadHolder } = transitions

  /** A redial names the call that it would take or end: the service probes the holder of its place first [INV7, PLACE4]. */
  async function askHolderOfRinging(
    session: ClientSession,
    { callee, group }: Named,
    live: readonly LiveCall[],
    waiter: Waiter | undefined,
  ): Promise<void> {
    for (const call of live) {
      if (call.status !== 'ringing' || sideOf(call, session.participant) !== 'caller') continue
      const isSame =
        call.callee.role === callee.role && call.callee.userId === callee.userId && call.group?.name === group
      if (isSame) await losesDeadHolder(session, call, waiter)
    }
  }

  /**
   * The call that waits rings before the inviter hears of it, also where another node is just handing it on. True where
   * its caller is gone with its node: then it does not count [INV6].
   */
  async function isWaitingInVain(
    { participant }: ClientSession,
    { details }: Refusal,
    waiter: Waiter | undefined,
  ): Promise<boolean> {
    const waiting = await store.load({ product: participant.product, callUuid: details.call_uuid ?? '' })
    if (waiting === undefined) return false
    await delivery.catchUp(waiting)
    const { node, sessionId } = waiting.callerPlace
    if (node === nodes.self || waiting.status !== 'ringing') return false
    const holder = await sessions.sinkOf(sessionId, node)
    if (holder !== undefined) waiter?.waitsFor(waiting)
    if ((await holder?.probe()) === true) return false
    await run(waiting, { type: 'lose', sessionId, node })
    return true
  }

  return { askHolderOfRinging, isWaitingInVain }
}

const isCall = ({ code }: ErrorBody) => code === 'CALLEE_BUSY' || code === 'CALL_REFUSED'

export function roleRefused({ role }: Participant, { allowedPeerRoles }: ClientSession): ErrorBody {
  const allowed = allowedPeerRoles.length === 0 ? 'none' : allowedPeerRoles.join(', ')
  const message = `No role ${JSON.stringify(role)} may be called with this token. It allows: ${allowed}.`
  return errorBody('CALL_PEER_ROLE_NOT_ALLOWED', { message })
}

function invitedData(call: LiveCall | OverCall, delivered: boolean): CallInvited {
  return {
    call_uuid: call.callUuid,
    status: call.status,
    call_type: call.callType,
    ring_timeout_ms: call.ringTimeoutMs,
    expires_at: new Date(call.ringExpiresAt).toISOString(),
    delivered,
  }
}
