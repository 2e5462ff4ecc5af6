import {
  actorOf,
  alice,
  answeredCall,
  between,
  bob,
  carol,
  dave,
  durations,
  heldBy,
  leftBy,
  overCall,
  ringingCall,
  start,
  uuidOf,
} from '../../src/call/call.fixture.ts'
import type { AnsweredCall, Call, CallGroup, LiveCall, Participant, RingingCall, Side } from '../../src/call/call.ts'
import type { Actor, CallCommand } from '../../src/call/command.ts'
import { decide } from '../../src/call/decide.ts'
import type { Notice, Step } from '../../src/call/effects.ts'
import { type CalledGroup, decideInvite, type InviteCommand } from '../../src/call/invite.ts'
import type { Transferrer } from '../../src/call/transfer.ts'
import { type Outcome, parseOutcome } from './command-table.ts'
import { byActor, difference, transitionOf } from './expected.ts'
import { commandOf, toSelf } from './invite-check.ts'
import { type Machine, strict, violated } from './machine.ts'

/**
 * Part A for transfers. Alice and bob are in the first call; one of them transfers the other to carol. The expected
 * decision is written down here from [XFER1], but for what the source decides about a single call, which other tables
 * check.
 */

const now = start + 10_000
const [next, fresh] = [uuidOf(80), uuidOf(81)]
const transferer = { caller: actorOf(alice, 'a-1', 'phone'), callee: actorOf(bob, 'b-1', 'desk') }
const can = ['take', 'transfer'] as const
const sides = ['caller', 'callee'] as const
const otherOf = (side: Side) => (side === 'caller' ? 'callee' : 'caller')
const iso = (at: number) => new Date(at).toISOString()
type To = Extract<Outcome, { kind: 'to' }>

/** For a side that was transferred, when its own first call began [WS5]. */
export const beganFor = ({ transferred, startedAt }: AnsweredCall, side: Side) =>
  (side === 'caller' ? transferred?.firstStartedAt : transferred?.secondStartedAt) ?? startedAt

function firstCall(changes: Partial<AnsweredCall> = {}): AnsweredCall {
  const places = {
    callerPlace: heldBy({ ...transferer.caller, can }),
    calleePlace: heldBy({ ...transferer.callee, can }),
  }
  return answeredCall({ ...places, ...changes })
}

/** The call that rings at carol for it; the side that is not the transferring one is its caller. */
function ringingFor(first: AnsweredCall, by: Side, changes: Partial<RingingCall> = {}): RingingCall {
  const other = otherOf(by)
  const { metadata, contextType, contextId, callType } = first
  return ringingCall({
    ...{ callUuid: next, version: 1, metadata, contextType, contextId, callType },
    caller: first[other],
    callee: { userId: carol.userId, role: carol.role, displayName: null },
    callerPlace: other === 'caller' ? first.callerPlace : first.calleePlace,
    transferred: {
      from: first.callUuid,
      by: { userId: first[by].userId, role: first[by].role, displayName: transferer[by].displayName },
      firstStartedAt: beganFor(first, other),
    },
    ...{ startedAt: now, ringTimeoutMs: 30_000, ringExpiresAt: now + 30_000 },
    ...changes,
  })
}

function inviteFor(changes: Partial<InviteCommand> = {}): InviteCommand {
  const { userId, role } = carol
  return { ...commandOf(next, undefined, 'allow'), callee: { userId, role }, freshUuid: fresh, ...changes }
}

/** Both steps of a transfer that is allowed, whole. */
function begun(first: AnsweredCall, by: Side, invite: InviteCommand, isOfBackend: boolean): readonly Step[] {
  const group = invite.group && groupOf(invite.group)
  const callee = { ...invite.callee, displayName: null }
  const ofSession = ringingFor(first, by, { metadata: invite.metadata, callee, ...(group && { group }) })
  const call = isOfBackend ? byBackend(ofSession, first[by]) : ofSession
  const { caller, transferred } = call
  const transferred_by = {
    ...{ user_id: transferred?.by.userId ?? '', role: transferred?.by.role ?? '' },
    display_name: transferred?.by.displayName ?? null,
  }
  const data = {
    ...{ call_uuid: next, caller_user_id: caller.userId, caller_role: caller.role },
    display_name: caller.displayName ?? '',
    ...{ context_type: call.contextType, context_id: call.contextId, call_type: call.callType },
    ...{ ring_timeout_ms: 30_000, expires_at: iso(now + 30_000) },
    ...(call.metadata !== null && { metadata: { ...call.metadata } }),
    ...(group && { callee_group: group.name }),
    ...{ transferred_from: first.callUuid, transferred_by },
  }
  const { userId, role } = invite.callee
  const to = group
    ? { user_id: null, role, group: group.name, display_name: null }
    : { user_id: userId, role, display_name: null }
  const rings = { status: 'ringing', direction: 'outgoing' } as const
  const about = { call_uuid: first.callUuid, new_call_uuid: next, ...rings, to }
  return [
    {
      call: { ...first, version: first.version + 1, transferring: { to: next, by } },
      event: isOfBackend
        ? { type: 'transferring', at: now, by: null, notices: [startedFor(first, by)] }
        : { type: 'transferring', at: now, by: byActor(transferer[by]), notices: [] },
    },
    {
      call,
      event: {
        ...{ type: 'invited', at: now, by: null },
        // Members that are rung in turn ring with their turns.
        notices: group?.turns ? [] : [{ to: { place: 'rung', except: [] }, event: 'call.ringing', data }],
        peers: [{ to: 'caller', event: 'call.transferring', needs: 'transfer', data: about }],
      },
    },
  ]
}

/** The backend transfers for a side, which is named as the call has it. */
function byBackend(call: RingingCall, by: Call['caller']): RingingCall {
  const { transferred } = call
  return transferred === undefined ? call : { ...call, transferred: { ...transferred, by } }
}

/** Then that side hears it, too. */
function startedFor({ callUuid }: AnsweredCall, by: Side): Notice {
  const data = { call_uuid: callUuid, new_call_uuid: next }
  return { to: { place: by }, needs: 'transfer', event: 'call.transfer_started', data }
}

function groupOf({ name, members, memberRingMs }: CalledGroup): CallGroup {
  const group = { name, members, declined: [] }
  if (memberRingMs === undefined) return group
  const turns = { member: null, until: now, memberRingMs, next: 0, count: 0, hasRung: false, rang: [] }
  return { ...group, turns }
}

interface Refused {
  readonly code: string
  readonly details?: object
}

interface Situation {
  readonly name: string
  readonly first: Call | undefined
  readonly asker: Actor
  readonly invite: InviteCommand
  readonly live: readonly LiveCall[]
  readonly refused: Refused | undefined
}

const state = (status: Call['status']): Refused => ({ code: 'CALL_INVALID_STATE', details: { status } })
const named = ({ userId, role }: Participant) => ({ callee: { userId, role } })
/** Carol is busy with dave, or not; calls between others are in nobody's way. */
const carolTalks = between(answeredCall(), dave, carol, 82)
const carolRings = between(ringingCall(), dave, carol, 83)

function* firstsOf(by: Side): Generator<Situation> {
  const asker = transferer[by]
  const other = otherOf(by)
  const ask = (name: string, first: Call | undefined, refused?: Refused, more: Partial<Situation> = {}): Situation => ({
    ...{ name: `${by}: ${name}`, first, asker, invite: inviteFor(), live: [], refused },
    ...more,
  })
  const place = (side: Side) => (side === 'caller' ? 'callerPlace' : 'calleePlace')
  const deaf = heldBy(transferer[other])
  for (const status of ['accepted', 'connected'] as const) yield ask(status, firstCall({ status }))
  yield ask('no call', undefined, { code: 'CALL_NOT_FOUND' })
  for (const who of [dave, { ...alice, product: 'bank' }]) {
    yield ask('a stranger', firstCall(), { code: 'CALL_NOT_FOUND' }, { asker: { ...asker, participant: who } })
  }
  yield ask('it rings', ringingCall(), state('ringing'))
  for (const status of ['ended', 'missed'] as const) yield ask(status, overCall({ status }), state(status))
  yield ask('no place', firstCall(), { code: 'CALL_NOT_PARTICIPANT' }, { asker: { ...asker, sessionId: 'x-1' } })
  const left = leftBy({ ...transferer[other], can }, now - 1_000)
  yield ask('the other is away', firstCall({ [place(other)]: left }))
  yield ask('the other cannot', firstCall({ [place(other)]: deaf }), { code: 'NOT_SUPPORTED_BY_PEER' })
  const takes = heldBy({ ...transferer[other], can: ['take'] })
  yield ask('the other can take', firstCall({ [place(other)]: takes }), { code: 'NOT_SUPPORTED_BY_PEER' })
  yield ask('oneself cannot', firstCall({ [place(by)]: heldBy(asker) }))
  for (const self of [alice, bob]) {
    const invite = inviteFor(named(self))
    yield ask(`to ${self.userId}`, firstCall(), toSelf(self), { invite })
  }
  for (const side of sides) {
    const transferring = { to: uuidOf(84), by: side }
    yield ask(`again, by the ${side}`, firstCall({ transferring }), state('accepted'))
  }
  const from = { from: uuidOf(85), by: { userId: 'erin', role: 'agent', displayName: null }, firstStartedAt: start - 7 }
  yield ask('of a transfer', firstCall({ transferred: from }))
  yield ask('of two calls', firstCall({ transferred: { ...from, secondStartedAt: start - 9 } }))
}

function* othersOf(by: Side): Generator<Situation> {
  const asker = transferer[by]
  const first = firstCall()
  const other = by === 'caller' ? bob : alice
  const ask = (name: string, more: Partial<Situation>): Situation => ({
    ...{ name: `${by}: ${name}`, first, asker, invite: inviteFor(), live: [], refused: undefined },
    ...more,
  })
  const limited = inviteFor({ rate: { ok: false, limit: 'pair_invites', retryAfterMs: 1_234 } })
  const details = { retry_after_ms: 1_234, limit: 'pair_invites' }
  yield ask('limited', { invite: limited, refused: { code: 'RATE_LIMITED', details } })
  const refusedBy = inviteFor({ verdict: { is: 'refused', reason: 'closed' } })
  yield ask('refused', { invite: refusedBy, refused: { code: 'CALL_REFUSED', details: { reason: 'closed' } } })
  yield ask('allowed', { invite: inviteFor({ verdict: { is: 'allowed' } }) })
  yield ask('with metadata', { invite: inviteFor({ metadata: { subject: 'another' } }) })
  for (const call of [between(ringingCall(), carol, other, 86), between(answeredCall(), other, carol, 87)]) {
    yield ask(`${call.status} between`, { live: [first, carolRings, call], refused: state('accepted') })
  }
  for (const busy of ['allow', 'reject'] as const) {
    const invite = inviteFor({ busy })
    const refused = busy === 'reject' ? { code: 'CALLEE_BUSY' } : undefined
    yield ask(`carol talks, ${busy}`, { invite, live: [first, carolTalks], refused })
    yield ask(`carol rings, ${busy}`, { invite, live: [first, carolRings] })
  }
}

/** A group as the target [GROUP1]. */
function* groupsOf(by: Side): Generator<Situation> {
  const other = by === 'caller' ? bob : alice
  const sales = { name: 'sales', members: ['carol', 'erin'], isBusy: false }
  const callee = { userId: '', role: 'agent' }
  const ask = (
    name: string,
    group: CalledGroup,
    more: Partial<Situation> = {},
    busy: 'allow' | 'reject' = 'allow',
  ) => ({
    ...{ name: `${by}: ${name}`, first: firstCall(), asker: transferer[by], live: [firstCall(), carolTalks] },
    ...{ invite: inviteFor({ callee, group, busy }), refused: undefined, ...more },
  })
  yield ask('a group', sales)
  yield ask('a group whose members ring in turn', { ...sales, memberRingMs: 15_000 })
  yield ask('a group of nobody', { ...sales, members: [] }, {}, 'reject')
  yield ask('a busy group', { ...sales, isBusy: true })
  yield ask('a busy group, refused', { ...sales, isBusy: true }, { refused: { code: 'CALLEE_BUSY' } }, 'reject')
  const group = { name: 'sales', members: ['carol'], declined: [] }
  const own = between(ringingCall({ group }), other, { ...carol, userId: '' }, 98)
  yield ask('the group rings already', sales, { live: [firstCall(), own], refused: state('accepted') })
  yield ask('another group rings', sales, { live: [{ ...own, group: { ...group, name: 'support' } }] })
  yield ask('one of another role', sales, { live: [{ ...own, callee: { ...own.callee, role: 'doctor' } }] })
  yield ask('it rings for somebody else', sales, { live: [between(own, dave, { ...carol, userId: '' }, 98)] })
  const answered = between(answeredCall({ group }), other, carol, 99)
  yield ask('a call to the group was answered', sales, { live: [answered] })
}

export function checkTransfers(machine: Machine): number {
  let cases = 0
  for (const by of sides) {
    for (const situation of [...firstsOf(by), ...othersOf(by), ...groupsOf(by)]) {
      checkTransfer(machine, situation, by, situation.asker)
      cases++
      // The backend needs no session and no place. What else forbids a transfer forbids it one, too.
      if (situation.asker !== transferer[by]) continue
      checkTransfer(machine, situation, by, { side: by })
      cases++
    }
  }
  return cases
}

function checkTransfer(machine: Machine, situation: Situation, by: Side, asker: Transferrer): void {
  const { name, first, invite: given, live, refused } = situation
  // As the session that asks for it does: the invite has the subject of the first call.
  const { contextType, contextId, callType } = first ?? firstCall()
  const invite = { ...given, contextType, contextId, callType }
  const decision = strict(machine).decideTransfer(first, live, { asker, invite }, now)
  const steps = refused === undefined ? begun(first as AnsweredCall, by, invite, 'side' in asker) : []
  const expected =
    refused === undefined
      ? { ok: true, call: steps[1]?.call, steps }
      : { ok: false, code: refused.code, details: refused.details ?? {}, steps: [] }
  const wrong = difference(decision, expected)
  if (wrong !== undefined) violated('XFER1', `${name}\n${wrong}`)
}

/** The first call after the target has answered, and after it has not. `by`: the side that transfers it, if it is known. */
function endedFor(first: AnsweredCall, by: Side | undefined): Step {
  const doer = by === undefined ? null : { actor: { ...transferer[by] }, side: null }
  const to = parseOutcome('ended transferred > caller callee') as To
  const step = transitionOf(first, to, doer, null, now)
  return { call: { ...step.call, transferredTo: next }, event: step.event }
}

function goesOn(first: AnsweredCall, over: Call): Step {
  const { transferring: _, ...call } = first
  const end_reason = 'endReason' in over ? over.endReason : ''
  const data = { call_uuid: first.callUuid, new_call_uuid: next, status: over.status, end_reason } as const
  const notices = sides.map((place) => {
    return { to: { place }, needs: 'transfer', event: 'call.transfer_failed', data } as const
  })
  const event = { type: 'transfer_failed', at: now, by: null, notices } as const
  return { call: { ...call, version: first.version + 1 } as Call, event } as Step
}

const carols = actorOf(carol, 'c-1')
const giveUp = parseOutcome('cancelled transfer_cancelled > caller rung') as To

/** Everything that may happen to the call that rings, and whether it still does then. */
function commandsOfRinging(caller: Actor): readonly CallCommand[] {
  const { sessionId, node } = caller
  return [
    ...(['accept', 'connected', 'relay'] as const).map((type) => ({ type, actor: carols })),
    { type: 'reject', actor: carols, reason: 'no', rung: ['c-1'] },
    { type: 'reject', actor: carols, reason: 'busy', rung: ['c-1', 'c-2'] },
    { type: 'cancel', actor: caller, reason: null },
    { type: 'cancel', actor: { ...caller, sessionId: 'x-1' }, reason: null },
    { type: 'lose', sessionId, node, closed: true, hungUp: true },
    { type: 'stop', note: null },
    { type: 'time' },
    { type: 'restart', nodes: [] },
  ]
}

export function checkLinkedCalls(machine: Machine): number {
  const { decideLinked } = strict(machine)
  let cases = 0
  const compare = (
    name: string,
    call: Call,
    linked: Call | undefined,
    command: CallCommand,
    also: (step: Step) => readonly Step[],
  ) => {
    const alone = decide(call, command, now, durations)
    const expected = alone.ok ? { ...alone, steps: [...alone.steps, ...alone.steps.flatMap(also)] } : alone
    const wrong = difference(decideLinked(call, linked, command, now, durations), expected)
    if (wrong !== undefined) violated('XFER1', `${name}: ${JSON.stringify(command)}\n${wrong}`)
    cases++
  }
  const nothing = () => []
  for (const by of sides) {
    const other = otherOf(by)
    for (const transferring of [{ to: next, by }, undefined]) {
      for (const status of ['accepted', 'connected'] as const) {
        const first = firstCall({ status, ...(transferring && { transferring }) })
        const rings = ringingFor(first, by)
        const late = ringingFor(first, by, { ringExpiresAt: now, silenced: ['c-3'] })
        for (const call of [rings, late]) {
          for (const command of commandsOfRinging(transferer[other])) {
            const also = ({ call: after }: Step) => {
              if (after.status === 'ringing') return []
              return [after.status === 'accepted' ? endedFor(first, transferring?.by) : goesOn(first, after)]
            }
            compare(`${by}, the first ${status}`, call, first, command, also)
            compare(`${by}, without the first`, call, undefined, command, nothing)
            compare(`${by}, the first is over`, call, overCall(), command, nothing)
          }
        }
        for (const command of commandsOfFirst(by)) {
          for (const call of [rings, late]) {
            const cancelled = transitionOf(call, giveUp, null, null, now)
            compare(`${by}, it rings`, first, call, command, ({ call: after }) =>
              'endedAt' in after ? [cancelled] : [],
            )
          }
          compare(`${by}, nothing rings`, first, undefined, command, nothing)
          compare(`${by}, it is answered`, first, answeredCall({ callUuid: next }), command, nothing)
        }
      }
    }
    cases += checkInvitesAmong(machine, by)
  }
  compare('no call', ringingCall(), undefined, { type: 'time' }, nothing)
  const none = decideLinked(undefined, firstCall(), { type: 'time' }, now, durations)
  if (none.ok || none.code !== 'CALL_NOT_FOUND') violated('XFER1', 'a call that is not there was decided on')
  return cases
}

function commandsOfFirst(by: Side): readonly CallCommand[] {
  const actor = transferer[by]
  const { sessionId, node } = actor
  return [
    { type: 'end', actor, reason: null },
    { type: 'end', actor: transferer[otherOf(by)], reason: 'bye' },
    { type: 'connected', actor },
    { type: 'relay', actor },
    { type: 'lose', sessionId, node, closed: true, hungUp: true },
    { type: 'stop', note: 'closing time' },
    { type: 'restart', nodes: [] },
    { type: 'shift', ms: 250 },
  ]
}

/** An invite that ends one call of a transfer means for the other what any end does [INV6, INV7]. */
function checkInvitesAmong(machine: Machine, by: Side): number {
  const strictly = strict(machine)
  const side = otherOf(by)
  const person = side === 'caller' ? alice : bob
  const asks = (actor: Actor, callee: Participant) => ({
    ...commandOf(uuidOf(88), undefined, 'allow'),
    actor,
    ...named(callee),
  })
  const base = firstCall({ transferring: { to: next, by } })
  const rings = ringingFor(base, by)
  // Its own client has lost the place, and calls again.
  const vacant = leftBy({ ...transferer[by], can }, now - 6_000)
  const gone = firstCall({ transferring: { to: next, by }, [by === 'caller' ? 'callerPlace' : 'calleePlace']: vacant })
  const peer = by === 'caller' ? alice : bob
  const cases = [
    // The other side calls the target itself, for something else: the call that rings ends, and the first one goes on.
    { live: [base, rings], invite: asks(transferer[side], carol), of: rings, linked: base },
    { live: [gone, rings], invite: asks(actorOf(peer, 'z-1', 'phone'), person), of: gone, linked: rings },
    { live: [rings], invite: asks(transferer[side], carol), of: rings, linked: undefined },
  ] as const
  for (const { live, invite, of, linked } of cases) {
    const alone = decideInvite({ sameUuid: undefined, live: live.map(unlinked) }, invite, now)
    const ended = alone.steps[0]
    const isEnd = ended !== undefined && ended.call.callUuid === of.callUuid
    if (!alone.ok || !isEnd) return violated('XFER1', `the table is wrong: ${JSON.stringify(alone)}`)
    const end = {
      ...ended,
      call: { ...ended.call, ...('transferred' in of && { transferred: of.transferred }) },
    } as Step
    const also =
      linked === undefined
        ? []
        : linked === rings
          ? [transitionOf(rings, giveUp, null, null, now)]
          : [goesOn(linked as AnsweredCall, ended.call)]
    const expected = { ...alone, steps: [end, ...also, ...alone.steps.slice(1)] }
    const wrong = difference(strictly.decideInvite({ sameUuid: undefined, live }, invite, now), expected)
    if (wrong !== undefined) violated('XFER1', `${by}: an invite\n${wrong}`)
  }
  // What rings for a transfer does not count for whom it is transferred [INV8].
  const full = { ...asks(transferer[side], dave), maxRinging: 1 }
  if (!strictly.decideInvite({ sameUuid: undefined, live: [rings] }, full, now).ok)
    violated('INV8', 'a transfer counts as an invite of the side that is transferred')
  return cases.length + 1
}

/** The same call, of no transfer. */
function unlinked(call: LiveCall): LiveCall {
  const { transferring: _, transferred: __, ...rest } = call
  return rest as LiveCall
}
