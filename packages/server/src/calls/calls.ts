import { errorBody } from '@ringwire/protocol/errors'
import type { CallAlertingBy } from '@ringwire/protocol/events/call'
import { type Call, type CallRef, callKey, isLive, type OverCall, ringsAt, sideAbout, sideOf } from '../call/call.ts'
import { type Actor, type CallCommand, type Decision, type Refusal, refuse } from '../call/command.ts'
import { decideLinked } from '../call/linked.ts'
import type { Timers } from '../ports/clock.ts'
import type { Push } from '../ports/push.ts'
import type { Sessions } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import { createTransferForBackend, type TransferForBackend } from './backend-transfers.ts'
import { createInvite, type Invite, type InvitesOptions } from './invites.ts'
import { createLeavingSince } from './leaving-groups.ts'
import { type ClientSession, errorOf, type Outcome, type Waiter } from './request.ts'
import { createTransfer, type Transfer } from './transfers.ts'
import { createTransitions, type Transitions, type TransitionsOptions } from './transitions.ts'
import { maxTries, pauseBefore } from './tries.ts'

export type CallsOptions = TransitionsOptions &
  Omit<InvitesOptions, 'transitions' | 'leavingSince'> & {
    readonly sessions: Pick<Sessions, 'append' | 'acknowledge' | 'knowsEnd'>
    readonly timers: Pick<Timers, 'sleep'>
    /** Whether a product lets devices take calls from each other [TAKE1]. */
    readonly mayTake: (product: string) => boolean
  }

/** Who says that a phone rings. */
export type Alerting = Pick<ClientSession, 'participant' | 'sessionId' | 'deviceId'>

/** What a client can ask of one call. */
export type Verb = 'accept' | 'reject' | 'cancel' | 'end' | 'connected'

export interface Calls {
  invite: Invite
  transfer: Transfer
  transferForBackend: TransferForBackend
  verb(
    session: ClientSession,
    verb: Verb,
    callUuid: string,
    reason: string | null,
    waiter?: Waiter,
  ): Promise<Outcome<Call>>
  /** Takes or settles the session's place in a call that it names by a `webrtc.*` message [PLACE2]. */
  seat(session: ClientSession, callUuid: string, waiter?: Waiter): Promise<Outcome<Call>>
  /** Goes on here with a call that another session of the participant has [TAKE1]. */
  take(session: ClientSession, callUuid: string, waiter?: Waiter): Promise<Outcome<Call>>
  /** A phone of the callee really rings: tells an extended caller [EXT5]. Nothing of the call changes. */
  alerting(session: Alerting, callUuid: string, n?: number): Promise<Outcome<Call>>
  /** Tells a session how a call ended, unless it knows: once, as for END4. For one whose device had the place elsewhere [PLACE2]. */
  hearEnd(session: ClientSession, call: Call): Promise<void>
  /** Somebody of the callee without a session rejects: only while it rings, and nothing else comes of it [TICK1]. */
  rejectRinging(actor: Actor, callUuid: string): Promise<Outcome<Call>>
  /** The service's own commands: a loss, an arrival, the time. */
  run: Transitions['run']
  /** The same, without a wait for the delivery. */
  begin: Transitions['begin']
}

export function createCalls(options: CallsOptions): Calls {
  const { sessions, store, mayTake } = options
  const transitions = createTransitions(options)
  const leavingSince = createLeavingSince({ ...options, run: transitions.run })
  const { ask, hearEnd } = createAsk(options, transitions)

  /** The other sessions where it rings only matter for `busy`: any other reject works while the sessions' store is away. */
  async function rejectOf(actor: ClientSession, callUuid: string, reason: string | null): Promise<CallCommand> {
    if (reason !== 'busy') return { type: 'reject', actor, reason, rung: [] }
    const call = await store.load(refOf(actor, callUuid))
    const rung = call === undefined ? [] : await sessions.liveOf(actor.participant, undefined, call.startedAt)
    return { type: 'reject', actor, reason, rung }
  }

  return {
    invite: createInvite({ ...options, transitions, leavingSince }),
    transfer: createTransfer({ ...options, transitions, leavingSince }),
    transferForBackend: createTransferForBackend({ ...options, transitions, leavingSince }),
    alerting: createAlerting(options),
    hearEnd,
    rejectRinging: createRejectRinging(options, transitions),
    run: transitions.run,
    begin: transitions.begin,
    seat: (session, callUuid, waiter) => ask(session, callUuid, { type: 'relay', actor: session }, waiter),
    take(session, callUuid, waiter) {
      const isForbidden = !mayTake(session.participant.product)
      return ask(session, callUuid, { type: 'take', actor: session, isForbidden }, waiter)
    },
    async verb(session, verb, callUuid, reason, waiter) {
      // Before the commit: the socket may die while the service waits for that.
      if (verb === 'connected') sessions.acknowledge(session.sessionId, callKey(refOf(session, callUuid)))
      if (verb === 'reject') return ask(session, callUuid, await rejectOf(session, callUuid, reason), waiter)
      const command: CallCommand =
        verb === 'cancel' || verb === 'end' ? { type: verb, actor: session, reason } : { type: verb, actor: session }
      return ask(session, callUuid, command, waiter)
    },
  }
}

/** A command of a client. */
function createAsk({ store, sessions, delivery, timers }: CallsOptions, { run, losesDeadHolder }: Transitions) {
  async function ask(
    session: ClientSession,
    callUuid: string,
    asked: CallCommand,
    waiter: Waiter | undefined,
  ): Promise<Outcome<Call>> {
    const ref = refOf(session, callUuid)
    // Requests that its client sent before it left are done now.
    const isGone = sessions.heldHere(session.sessionId) === undefined
    const command = isGone && isEntry(asked) ? { ...asked, isGone } : asked
    let decision = await run(ref, command)
    if (!decision.ok && !isGone && (await holderDied(session, ref, decision, waiter)))
      decision = await run(ref, command)
    // A step may just be on its way to the client that gets this answer: the step comes first.
    if (decision.steps.length === 0) await tellAbout(session, ref, decision, command.type !== 'accept')
    if (!decision.ok) return { ok: false, error: errorOf(decision) }
    return { ok: true, value: decision.call }
  }

  async function tellAbout(session: ClientSession, ref: CallRef, decision: Decision, tellsEnd: boolean): Promise<void> {
    const call = decision.ok ? decision.call : await store.load(ref)
    if (call === undefined) return
    if (tellsEnd) await hearEnd(session, call)
    else await delivery.catchUp(call)
  }

  async function hearEnd(session: ClientSession, call: Call): Promise<void> {
    let caughtUp = await delivery.catchUp(call)
    if (isLive(call) || sessions.knowsEnd(session.sessionId, callKey(call))) return
    for (let tries = 1; caughtUp === 'later' && tries <= maxTries; tries++) {
      await pauseBefore(tries, timers)
      caughtUp = await delivery.catchUp(call)
    }
    // The missing steps come before the end [ORD3].
    if (caughtUp !== 'done') throw new StoreError('unavailable', 'what led to the end cannot be told now')
    await tellEnd(session, call)
  }

  /** A client that names a call that is over, and has not heard of it, hears how it ended [END4]. Once: its session remembers that. */
  async function tellEnd(session: ClientSession, call: OverCall): Promise<void> {
    // For members of a group at whom it only rang an answered call was over with the answer [GROUP1].
    const side = (call.acceptedAt === null ? sideAbout : sideOf)(call, session.participant)
    if (side === undefined) return
    const [last] = await store.stepsAfter(call, call.version - 1)
    const notices = last?.event.notices ?? []
    // A side that ended the call itself got no notice: that of the other side says the same.
    const own = notices.find(({ to }) => to.place === side || (side === 'callee' && to.place === 'rung')) ?? notices[0]
    // An invite that was refused was never a call for anybody.
    if (own === undefined) return
    const text = JSON.stringify({ event: own.event, data: own.data })
    await sessions.append(session.sessionId, { kind: 'final', call: callKey(call), version: call.version, text })
  }

  /** The phone that changed networks: the service probes its old socket before it believes it [PLACE4]. */
  async function holderDied(
    session: ClientSession,
    ref: CallRef,
    refusal: Refusal,
    waiter: Waiter | undefined,
  ): Promise<boolean> {
    if (refusal.code !== 'CALL_NOT_PARTICIPANT' && refusal.code !== 'CALL_ALREADY_ANSWERED') return false
    const call = await store.load(ref)
    return call !== undefined && (await losesDeadHolder(session, call, waiter))
  }

  return { ask, hearEnd }
}

function createRejectRinging(
  { store, clock, durations }: CallsOptions,
  { commit, handOn }: Transitions,
): Calls['rejectRinging'] {
  return async (actor, callUuid) => {
    const ref = { product: actor.participant.product, callUuid }
    const command: CallCommand = { type: 'reject', actor, reason: null, rung: [] }
    const decision = await handOn(
      await commit(
        store.transition(
          ref,
          (call, linked): Decision =>
            call?.status === 'ringing'
              ? decideLinked(call, linked, command, clock.now(), durations)
              : refuse('CALL_INVALID_STATE', call === undefined ? {} : { status: call.status }),
        ),
      ),
    )
    return decision.ok ? { ok: true, value: decision.call } : { ok: false, error: errorOf(decision) }
  }
}

function createAlerting({ store, delivery, recorder }: CallsOptions): Calls['alerting'] {
  return async (session, callUuid, n) => {
    const ref = refOf(session, callUuid)
    const call = await store.load(ref)
    const side = call === undefined ? undefined : sideAbout(call, session.participant)
    if (call === undefined || side === undefined) return { ok: false, error: errorBody('CALL_NOT_FOUND') }
    if (side === 'caller') return { ok: false, error: errorBody('CALL_NOT_PARTICIPANT') }
    if (!ringsAt(call, session.participant))
      return { ok: false, error: errorBody('CALL_INVALID_STATE', { status: call.status }) }
    const { userId, role } = session.participant
    const data: CallAlertingBy = { call_uuid: ref.callUuid, by: { user_id: userId, role } }
    const text = JSON.stringify({ event: 'call.alerting', data })
    const push: Push = {
      kind: 'notice',
      call: callKey(ref),
      version: undefined,
      text,
      ...(n !== undefined && { source: { sessionId: session.sessionId, n } }),
    }
    await delivery.appendToPlace(call, 'caller', push)
    const { sessionId, deviceId } = session
    const whose = { sessionId, deviceId: deviceId ?? undefined, member: userId }
    recorder.record(call, { what: 'alerting', side, ...whose, detail: {} })
    return { ok: true, value: call }
  }
}

type Entry = Extract<CallCommand, { readonly isGone?: boolean }>

/** Whether its author takes a place by it. */
function isEntry(command: CallCommand): command is Entry {
  return ['accept', 'connected', 'relay', 'take'].includes(command.type)
}

function refOf({ participant }: Pick<ClientSession, 'participant'>, named: string): CallRef {
  return { product: participant.product, callUuid: named.toLowerCase() }
}
