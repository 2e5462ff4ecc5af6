import type { ErrorBody } from '@ringwire/protocol/errors'
import { errorBody } from '@ringwire/protocol/errors'
import type { CallAlertingBy, CallInvite, CallInvited } from '@ringwire/protocol/events/call'
import { inviteLimits } from '@ringwire/protocol/events/call'
import {
  type Call,
  type CallDurations,
  type CallRef,
  callKey,
  isLive,
  type LiveCall,
  type OverCall,
  type Participant,
  placeOf,
  sideOf,
} from '../call/call.ts'
import {
  type Actor,
  type CallCommand,
  type Decision,
  decide,
  lateRelayMs,
  type Refusal,
  refuse,
} from '../call/decide.ts'
import type { Step } from '../call/effects.ts'
import { checkInvite, decideInvite, type InviteCommand, type InviteDecision, type InviteRate } from '../call/invite.ts'
import type { CallStore } from '../ports/call-store.ts'
import type { MaybePromise } from '../ports/maybe.ts'
import type { Nodes, Uptime } from '../ports/nodes.ts'
import type { ProductStore } from '../ports/product-store.ts'
import type { Push } from '../ports/push.ts'
import type { Sessions } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import type { SteadyClock } from '../time/steady-clock.ts'
import type { Delivery } from './delivery.ts'
import type { WithQuality } from './end-quality.ts'
import { isShareOf, isUnheld } from './holders.ts'
import { inBatches } from './in-batches.ts'
import type { Recorder } from './timeline.ts'

/** A connected client as the calls see it. */
export interface ClientSession extends Actor {
  readonly allowedActions: readonly string[]
  readonly allowedPeerRoles: readonly string[]
  /** Of the token; an invite's own by default [INV1]. */
  readonly contextType: string
  readonly contextId: string
}

/** The limits that an invite has to pass [INV8]. */
export interface InviteLimits {
  invite(caller: Participant, callee: Participant): Promise<InviteRate>
  refundInvite(caller: Participant, callee: Participant): Promise<void>
}

export interface CallsOptions {
  readonly store: CallStore
  readonly products: ProductStore
  readonly sessions: Sessions
  readonly nodes: Nodes
  readonly delivery: Delivery
  readonly limits: InviteLimits
  readonly uptime: Uptime
  readonly recorder: Pick<Recorder, 'record'>
  /** Adds to a decision how the media of the calls was that it ends [STAT1]. */
  readonly withQuality: WithQuality
  readonly clock: SteadyClock
  readonly durations: CallDurations
  readonly ringTimeoutMs: number
  readonly maxRinging: number
  /** Called with every version that this process has committed [LOG2]. */
  readonly onCommitted: (step: Step) => void
  /** Called with each of them that everybody was told of. */
  readonly onTold: (step: Step) => void
}

/** Who says that a phone rings. */
export type Alerting = Pick<ClientSession, 'participant' | 'sessionId' | 'deviceId'>

/** A request that may have to wait for a holder's sign of life [PLACE4]. */
export interface Waiter {
  /** It waits for somebody in this call: what is about something else need not wait for it [ORD1]. */
  waitsFor(call: Call): void
}

export type Outcome<T> =
  | {
      readonly ok: true
      readonly value: T
      /** Where the answer comes before others have heard of what it is about: when they have. */
      readonly handedOn?: Promise<void>
    }
  | { readonly ok: false; readonly error: ErrorBody }

/** Calls that are over are known for `lateRelayMs`; what is nearly forgotten is not asked for again. */
const reconcileMarginMs = 10_000

/** What a client can ask of one call. */
export type Verb = 'accept' | 'reject' | 'cancel' | 'end' | 'connected'

export interface Calls {
  invite(session: ClientSession, data: CallInvite, waiter?: Waiter): Promise<Outcome<CallInvited>>
  verb(
    session: ClientSession,
    verb: Verb,
    callUuid: string,
    reason: string | null,
    waiter?: Waiter,
  ): Promise<Outcome<Call>>
  /** Takes or settles the session's place in a call that it names by a `webrtc.*` message [PLACE2]. */
  seat(session: ClientSession, callUuid: string, waiter?: Waiter): Promise<Outcome<Call>>
  /** A phone of the callee really rings: tells an extended caller [EXT5]. Nothing of the call changes. */
  alerting(session: Alerting, callUuid: string, n?: number): Promise<Outcome<Call>>
  /** Somebody of the callee without a session rejects: only while it rings, and nothing else comes of it [TICK1]. */
  rejectRinging(actor: Actor, callUuid: string): Promise<Outcome<Call>>
  /** The service's own commands: a loss, an arrival, the time. */
  run(ref: CallRef, command: CallCommand): Promise<Decision>
  /** Hands on what a node that died left behind, of these calls, and of what ended lately. */
  makeUpFor(live: readonly Call[]): Promise<void>
  makeUpForEnds(): Promise<void>
}

export function createCalls(options: CallsOptions): Calls {
  const {
    store,
    products,
    sessions,
    nodes,
    delivery,
    limits,
    uptime,
    recorder,
    withQuality,
    clock,
    durations,
    onCommitted,
    onTold,
  } = options

  async function run(ref: CallRef, command: CallCommand): Promise<Decision> {
    const wasGone = isGone(command)
    const known = command.type === 'lose' ? { ...command, closed: await wasClosed(command) } : command
    return handOn(
      await withQuality((seen) =>
        noting(
          store.transition(ref, (call) =>
            // It was lost when this was asked for, and has a socket again by the time that it is decided on [RES1].
            call !== undefined && wasGone && !isGone(command)
              ? { ok: true as const, call, steps: [] }
              : seen(decide(call, known, clock.now(), { ...durations, outages: uptime.outages() })),
          ),
        ),
      ),
    )
  }

  /** However a loss was found, the sessions' store knows whether the client closed. While it is away, nobody did [END5]. */
  async function wasClosed({ sessionId, node }: Extract<CallCommand, { type: 'lose' }>): Promise<boolean> {
    try {
      return await sessions.wasClosed(sessionId, node)
    } catch (error) {
      if (error instanceof StoreError) return false
      throw error
    }
  }

  /** Whether a session is to lose its places that has no socket; one that gives no sign of life still has its own. */
  function isGone(command: CallCommand): boolean {
    return command.type === 'lose' && command.node === nodes.self && sessions.heldHere(command.sessionId) === undefined
  }

  /** Where nobody knows whether it was committed, its row in the outbox says so once that is clear. */
  async function noting<T>(commit: MaybePromise<T>): Promise<T> {
    try {
      return await commit
    } catch (error) {
      if (error instanceof StoreError) uptime.doubt()
      throw error
    }
  }

  /** Each living node has its share; what that one leaves behind, too, the others find by its death. */
  async function makeUpFor(stored: readonly Call[]): Promise<void> {
    await inBatches(
      stored.filter((call) => isShareOf(call, nodes)),
      (call) => delivery.catchUp(call),
    )
  }

  async function makeUpForEnds(): Promise<void> {
    const pages = store.overPages(clock.now() - lateRelayMs + reconcileMarginMs)
    for await (const page of pages) await makeUpFor(page.map(({ call }) => call))
  }

  /** Committed first, then delivered; then losses that happened meanwhile are made up for. */
  async function handOn<D extends Decision | InviteDecision>(decision: D, first?: Promise<void>): Promise<D> {
    for (const step of decision.steps) {
      onCommitted(step)
      const told = delivery.apply(step, first)
      if (told instanceof Promise ? await told : told) onTold(step)
      if (isLive(step.call)) loseDeadHolders(step.call)
    }
    return decision
  }

  /** A holder whose socket closed while its request was being committed: nobody else will observe that close [END3]. */
  function loseDeadHolders(call: LiveCall): void {
    for (const place of [placeOf(call, 'caller'), placeOf(call, 'callee')]) {
      if (place?.state !== 'held' || !isUnheld(place, nodes, sessions)) continue
      void run(call, { type: 'lose', sessionId: place.sessionId, node: place.node }).catch(() => {
        // The store is away: the sweep finds the holder dead again.
      })
    }
  }

  async function ask(
    session: ClientSession,
    callUuid: string,
    command: CallCommand,
    waiter: Waiter | undefined,
  ): Promise<Outcome<Call>> {
    const ref = { product: session.participant.product, callUuid: callUuid.toLowerCase() }
    let decision = await run(ref, command)
    if (!decision.ok && (await holderDied(session, ref, decision, waiter))) decision = await run(ref, command)
    // What an answer is about may just be on its way to whoever gets the answer: the news comes first.
    if (decision.steps.length === 0) await tellAbout(session, ref, decision, command.type !== 'accept')
    if (!decision.ok) return { ok: false, error: errorOf(decision) }
    return { ok: true, value: decision.call }
  }

  async function tellAbout(session: ClientSession, ref: CallRef, decision: Decision, tellsEnd: boolean): Promise<void> {
    const call = decision.ok ? decision.call : await store.load(ref)
    if (call === undefined) return
    await delivery.catchUp(call)
    if (tellsEnd && !isLive(call)) await tellEnd(session, call)
  }

  /** Who names a call that is over, and has not heard of it, hears how it ended [END4]. Once: its session remembers that. */
  async function tellEnd(session: ClientSession, call: OverCall): Promise<void> {
    const side = sideOf(call, session.participant)
    if (side === undefined || sessions.knowsEnd(session.sessionId, callKey(call))) return
    const [last] = await store.stepsAfter(call, call.version - 1)
    const notices = last?.event.notices ?? []
    // Who ended it alone was told nothing: what the other side was told is the same.
    const own = notices.find(({ to }) => to.place === side || (side === 'callee' && to.place === 'rung')) ?? notices[0]
    // An invite that was refused was never a call for anybody.
    if (own === undefined) return
    const text = JSON.stringify({ event: own.event, data: own.data })
    await sessions.append(session.sessionId, { kind: 'final', call: callKey(call), version: call.version, text })
  }

  /** The phone that changed networks: its old socket is asked for a sign of life before it is believed [PLACE4]. */
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

  /**
   * Vacates the place that the session could take, where its holder gives no sign of life. True where the place is
   * vacant then, false where it stays held.
   */
  async function losesDeadHolder(session: ClientSession, call: Call, waiter: Waiter | undefined): Promise<boolean> {
    const side = sideOf(call, session.participant)
    const place = side === undefined ? null : placeOf(call, side)
    if (place === null || place.deviceId !== session.deviceId) return false
    // Its holder was seen to be gone while this one asked.
    if (place.state === 'vacant') return true
    if (place.sessionId === session.sessionId) return false
    const holder = await sessions.sinkOf(place.sessionId, place.node)
    if (holder !== undefined) waiter?.waitsFor(call)
    const alive = (await holder?.probe()) ?? false
    if (!alive) await run(call, { type: 'lose', sessionId: place.sessionId, node: place.node })
    return !alive
  }

  /** A redial names the call that it would take or end: who holds its place is asked first [INV7, PLACE4]. */
  async function askHolderOfRinging(
    session: ClientSession,
    callee: Participant,
    waiter: Waiter | undefined,
  ): Promise<void> {
    for (const call of await store.liveCallsOf(session.participant)) {
      if (call.status !== 'ringing' || sideOf(call, session.participant) !== 'caller') continue
      if (sideOf(call, callee) === 'callee') await losesDeadHolder(session, call, waiter)
    }
  }

  /** What was refused before there was a call is in the timeline of the uuid that was named [TRACE1]. */
  async function invite(session: ClientSession, data: CallInvite, waiter?: Waiter): Promise<Outcome<CallInvited>> {
    const outcome = await tryInvite(session, data, waiter)
    // Who is busy was called, and that is a call.
    if (outcome.ok || !data.call_uuid || outcome.error.code === 'CALLEE_BUSY') return outcome
    noteRefused(session, data.call_uuid.toLowerCase(), data.callee_role, outcome.error)
    return outcome
  }

  /** Any uuid can be named: what names a call of others is left out where it is written [UUID1]. */
  function noteRefused(
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

  async function tryInvite(session: ClientSession, data: CallInvite, waiter?: Waiter): Promise<Outcome<CallInvited>> {
    const caller = session.participant
    const callee: Participant = { product: caller.product, userId: data.callee_user_id, role: data.callee_role }
    const refused = checkInvite(session, caller, callee, data.call_type)
    if (refused !== undefined) return { ok: false, error: errorOf(refused) }

    await askHolderOfRinging(session, callee, waiter)
    const settings = await products.settings(caller.product)
    const longest = settings.ringTimeoutMs ?? options.ringTimeoutMs
    const rate = await limits.invite(caller, callee)
    // Whom nobody can reach is not called: nothing is written before it is clear that it can be told.
    const rung = await sessions.liveOf(callee, undefined, clock.now())
    const freshUuid = crypto.randomUUID()
    const callUuid = data.call_uuid?.toLowerCase() ?? freshUuid
    const command: InviteCommand = {
      actor: session,
      callee: { userId: callee.userId, role: callee.role },
      callUuid,
      freshUuid,
      contextType: data.context_type ?? session.contextType,
      contextId: data.context_id ?? session.contextId,
      callType: typeof data.call_type === 'string' ? data.call_type : inviteLimits.defaultCallType,
      ringTimeoutMs: Math.min(data.ring_timeout_ms ?? longest, longest),
      metadata: data.metadata ?? null,
      rate,
      maxRinging: options.maxRinging,
      busy: settings.busy,
    }
    const decision = await withQuality<InviteDecision>((seen) =>
      noting(
        store.invite(caller, callee, callUuid, (situation) => seen(decideInvite(situation, command, clock.now()))),
      ),
    )
    // What the invite ended is told before it is answered, and what it began after that: whatever others make of the new
    // call, its inviter has heard of it.
    const isNew = decision.ok && decision.created
    const older = handOn({ ...decision, steps: decision.steps.slice(0, isNew ? -1 : undefined) })
    const handedOn = isNew
      ? handOn(
          { ...decision, steps: decision.steps.slice(-1) },
          older.then(() => {}),
        )
      : older
    await older
    // What counts is what leaves a call behind, ringing or busy [INV8].
    const counts = decision.ok ? decision.created : decision.steps.length > 0
    if (rate.ok && !counts) await limits.refundInvite(caller, callee)
    if (!decision.ok) {
      if (decision.code === 'CALL_GLARE' && (await isWaitingInVain(session, decision, waiter)))
        return tryInvite(session, data, waiter)
      return { ok: false, error: errorOf(decision) }
    }
    const invited = invitedData(decision.call, rung.length > 0)
    const value = settings.revealBusy ? { ...invited, callee_busy: decision.calleeBusy } : invited
    return { ok: true, value, handedOn: handedOn.then(() => {}) }
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

  async function rejectRinging(actor: Actor, callUuid: string): Promise<Outcome<Call>> {
    const ref = { product: actor.participant.product, callUuid }
    const command: CallCommand = { type: 'reject', actor, reason: null, rung: [] }
    const decision = await handOn(
      await noting(
        store.transition(
          ref,
          (call): Decision =>
            call?.status === 'ringing'
              ? decide(call, command, clock.now(), durations)
              : refuse('CALL_INVALID_STATE', call === undefined ? {} : { status: call.status }),
        ),
      ),
    )
    return decision.ok ? { ok: true, value: decision.call } : { ok: false, error: errorOf(decision) }
  }

  async function alerting(session: Alerting, callUuid: string, n?: number): Promise<Outcome<Call>> {
    const ref = { product: session.participant.product, callUuid: callUuid.toLowerCase() }
    const call = await store.load(ref)
    const side = call === undefined ? undefined : sideOf(call, session.participant)
    if (call === undefined || side === undefined) return { ok: false, error: errorBody('CALL_NOT_FOUND') }
    if (side === 'caller') return { ok: false, error: errorBody('CALL_NOT_PARTICIPANT') }
    if (call.status !== 'ringing') return { ok: false, error: errorBody('CALL_INVALID_STATE', { status: call.status }) }
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
    recorder.record(call, { what: 'alerting', side, sessionId, deviceId: deviceId ?? undefined, detail: {} })
    return { ok: true, value: call }
  }

  /** Where else it rings matters to the busy alone: everybody can hang up while the sessions' store is away. */
  async function rejectOf(actor: ClientSession, callUuid: string, reason: string | null): Promise<CallCommand> {
    if (reason !== 'busy') return { type: 'reject', actor, reason, rung: [] }
    const { product } = actor.participant
    const call = await store.load({ product, callUuid: callUuid.toLowerCase() })
    const rung = call === undefined ? [] : await sessions.liveOf(actor.participant, undefined, call.startedAt)
    return { type: 'reject', actor, reason, rung }
  }

  return {
    invite,
    alerting,
    rejectRinging,
    run,
    makeUpFor,
    makeUpForEnds,
    seat: (session, callUuid, waiter) => ask(session, callUuid, { type: 'relay', actor: session }, waiter),
    async verb(session, verb, callUuid, reason, waiter) {
      if (verb === 'reject') return ask(session, callUuid, await rejectOf(session, callUuid, reason), waiter)
      const command: CallCommand =
        verb === 'cancel' || verb === 'end' ? { type: verb, actor: session, reason } : { type: verb, actor: session }
      return ask(session, callUuid, command, waiter)
    },
  }
}

function errorOf(refusal: Refusal): ErrorBody {
  return errorBody(refusal.code, refusal.details)
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
