import {
  actorOf,
  alice,
  answeredCall,
  between,
  bob,
  carol,
  dave,
  heldBy,
  leftBy,
  onNode,
  overCall,
  ringingCall,
  start,
  uuidOf,
} from '../../src/call/call.fixture.ts'
import type { AnsweredCall, Call, LiveCall, OverCall, Participant, Place, RingingCall } from '../../src/call/call.ts'
import type { Step } from '../../src/call/effects.ts'
import type { InviteCommand } from '../../src/call/invite.ts'
import { type Outcome, parseOutcome } from './command-table.ts'
import { byActor, difference, seatedStep, transitionOf } from './expected.ts'
import { type InviteCase, type InviteOutcome, inviteOutcome, placeKinds, wishes } from './invite-table.ts'
import { type Machine, strict, violated } from './machine.ts'

/** Part A for invites: every situation between two people, every uuid, limit and engagement, against the table. */

export const now = start + 10_000
/** So long after its end an invite that names a call is still its repeat [UUID1]. */
const repeatedMs = 120_000
export const me = actorOf(alice, 'a-1', 'phone')
const second = actorOf(alice, 'a-2', 'phone')
const tablet = actorOf(alice, 'a-3', 'tablet')
const gone = actorOf(alice, 'a-0', 'phone')
const bobs = actorOf(bob, 'b-1')
type To = Extract<Outcome, { kind: 'to' }>
const to = (text: string) => parseOutcome(text) as To
const endings = {
  out: to('cancelled superseded > caller rung'),
  in: to('cancelled caller_lost > caller rung'),
  talk: to('ended superseded > caller callee'),
}

function myPlace(kind: Exclude<InviteCase['out'], '-'>): Place {
  if (kind === 'left') return leftBy(gone, now - 1_000)
  if (kind === 'tablet-left') return leftBy(tablet, now - 4_999)
  if (kind === 'tablet-gone') return leftBy(tablet, now - 5_000)
  if (kind === 'tablet-loose') return heldBy(tablet, false)
  if (kind === 'my-far') return heldBy(onNode(me, 'node-of-a-9'))
  return heldBy(kind === 'me' || kind === 'my-loose' ? me : second, !kind.endsWith('loose'))
}

/** What a call is for: the same as the invite, or another thing in one respect. */
function wished(wish: InviteCase['wish']) {
  const same = { contextType: 'ticket', contextId: '7', callType: 'audio' }
  switch (wish) {
    case 'same':
      return same
    case 'context_type':
      return { ...same, contextType: 'order' }
    case 'context_id':
      return { ...same, contextId: '8' }
    case 'call_type':
      return { ...same, callType: 'video' }
  }
}

/** The calls between alice and bob that a case speaks of. */
interface Between {
  readonly out: RingingCall | undefined
  readonly in: RingingCall | undefined
  readonly talk: AnsweredCall | undefined
}

function callsOf(
  each: Omit<InviteCase, 'uuid' | 'limit' | 'busy'>,
  talkCaller: Participant,
  bobLeft: boolean,
): Between {
  const bobPlace = bobLeft ? leftBy(bobs, start + 2_000) : heldBy(bobs)
  const talk = () => {
    const mine = myPlace(each.talk as 'me')
    const places =
      talkCaller === alice ? { callerPlace: mine, calleePlace: bobPlace } : { callerPlace: bobPlace, calleePlace: mine }
    return between(
      answeredCall({ status: bobLeft ? 'connected' : 'accepted', ...places }),
      talkCaller,
      other(talkCaller),
      3,
    )
  }
  const inPlace = each.in === 'held' ? heldBy(bobs) : leftBy(bobs, start)
  return {
    out:
      each.out === '-'
        ? undefined
        : between(
            ringingCall({ ...wished(each.wish), callerPlace: myPlace(each.out), silenced: ['b-7'] }),
            alice,
            bob,
            1,
          ),
    in: each.in === '-' ? undefined : between(ringingCall({ callerPlace: inPlace }), bob, alice, 2),
    talk: each.talk === '-' ? undefined : talk(),
  }
}
const other = (who: Participant) => (who === alice ? bob : alice)

/** What bob does besides, and whether that makes him busy [INV5]. */
export const elsewhere: readonly {
  readonly name: string
  readonly calls: readonly LiveCall[]
  readonly busy: boolean
}[] = [
  { name: 'nothing', calls: [], busy: false },
  { name: 'is called by dave', calls: [between(ringingCall(), dave, bob, 21)], busy: false },
  {
    name: 'was called by dave, who left',
    calls: [between(ringingCall({ callerPlace: leftBy(actorOf(dave, 'd-1'), start) }), dave, bob, 25)],
    busy: false,
  },
  { name: 'calls dave', calls: [between(ringingCall({ callerPlace: heldBy(bobs) }), bob, dave, 22)], busy: true },
  { name: 'talks to dave', calls: [between(answeredCall(), dave, bob, 23)], busy: true },
  {
    name: 'talked to dave, and both left',
    calls: [
      between(
        answeredCall({ callerPlace: leftBy(actorOf(dave, 'd-1'), start), calleePlace: leftBy(bobs, start) }),
        dave,
        bob,
        26,
      ),
    ],
    busy: true,
  },
  {
    name: 'talks to dave, whom he called',
    calls: [between(answeredCall({ status: 'connected' }), bob, dave, 24)],
    busy: true,
  },
]

/** Limits [INV8]: the verdict on the rate, and alice's ringing calls to others, of which two are allowed. */
const limits = [
  { name: '-', retryAfterMs: undefined, ringing: 1 },
  { name: 'rate', retryAfterMs: 1_234, ringing: 1 },
  { name: 'ringing', retryAfterMs: undefined, ringing: 2 },
  { name: 'both', retryAfterMs: 1_234, ringing: 2 },
  { name: 'overdue', retryAfterMs: undefined, ringing: 3 },
] as const
const ringingElsewhere = [
  between(ringingCall({ ringExpiresAt: now + 9_000 }), alice, carol, 31),
  between(ringingCall({ ringExpiresAt: now + 4_000 }), alice, dave, 32),
  between(ringingCall({ ringExpiresAt: now - 1 }), alice, { ...carol, userId: 'erin' }, 33),
]
/** Alice talks to carol all the while, and dave calls her: that is nobody's business here. */
export const ringsHer = between(ringingCall({ callerPlace: heldBy(actorOf(dave, 'd-1')) }), dave, alice, 42)
export const noise = between(answeredCall({ calleePlace: leftBy(actorOf(carol, 'c-1'), start) }), alice, carol, 41)

/** The calls whose uuid an invite may carry. */
export function uuidsOf({ out, in: crossing, talk }: Between): { uuid: InviteCase['uuid']; call: Call | undefined }[] {
  const plain = out === undefined && crossing === undefined && talk === undefined
  const statuses = plain ? (['ended', 'rejected', 'cancelled', 'missed', 'busy'] as const) : (['ended'] as const)
  const over = statuses.map((status) => overCall({ status }))
  const uuids: { uuid: InviteCase['uuid']; call: Call | undefined }[] = [
    { uuid: 'new', call: undefined },
    { uuid: 'other', call: noise },
    { uuid: 'other', call: between(overCall(), alice, carol, 51) },
    { uuid: 'other', call: between(overCall(), alice, { ...bob, role: 'doctor' }, 52) },
    { uuid: 'over', call: overCall({ callerPlace: leftBy(gone, start) }) },
    ...over.map((call) => ({ uuid: 'over', call: between(call, alice, bob, 53) }) as const),
    { uuid: 'over', call: between(overCall({ endedAt: now - repeatedMs }), alice, bob, 57) },
    { uuid: 'old', call: between(overCall({ endedAt: now - repeatedMs - 1 }), alice, bob, 58) },
    { uuid: 'foreign', call: between(ringingCall(), dave, carol, 54) },
    { uuid: 'foreign', call: between(overCall(), bob, alice, 55) },
    { uuid: 'foreign', call: between(overCall(), { ...alice, role: 'doctor' }, bob, 56) },
  ]
  if (out !== undefined) uuids.push({ uuid: 'out', call: out })
  if (crossing !== undefined) uuids.push({ uuid: 'foreign', call: crossing })
  if (talk !== undefined) uuids.push({ uuid: talk.caller.userId === alice.userId ? 'talk' : 'foreign', call: talk })
  return uuids
}

/** Some invites carry some, and some none. */
const metadataOf = (policy: 'allow' | 'reject') => (policy === 'allow' ? null : { subject: 'a question' })

export function commandOf(uuid: string, retryAfterMs: number | undefined, busy: 'allow' | 'reject'): InviteCommand {
  return {
    actor: me,
    callee: { userId: bob.userId, role: bob.role },
    callUuid: uuid,
    freshUuid: uuidOf(99),
    contextType: 'ticket',
    contextId: '7',
    callType: 'audio',
    ringTimeoutMs: 30_000,
    metadata: metadataOf(busy),
    rate: retryAfterMs === undefined ? { ok: true } : { ok: false, limit: 'pair_invites', retryAfterMs },
    maxRinging: 2,
    busy,
  }
}

/** A new call, whole. */
export function newCall(callUuid: string, busy: boolean, metadata: InviteCommand['metadata']): Step {
  const call = {
    product: 'shop',
    callUuid,
    version: 1,
    caller: { userId: alice.userId, role: alice.role, displayName: 'ALICE' },
    callee: { userId: bob.userId, role: bob.role, displayName: null },
    contextType: 'ticket',
    contextId: '7',
    callType: 'audio',
    metadata,
    startedAt: now,
    ringTimeoutMs: 30_000,
    ringExpiresAt: now + 30_000,
    callerPlace: heldBy(me),
  }
  const data = {
    call_uuid: callUuid,
    caller_user_id: alice.userId,
    caller_role: alice.role,
    display_name: 'ALICE',
    context_type: 'ticket',
    context_id: '7',
    call_type: 'audio',
    ring_timeout_ms: 30_000,
    expires_at: new Date(now + 30_000).toISOString(),
    ...(metadata === null ? {} : { metadata }),
  }
  const by = byActor(me)
  if (!busy) {
    const notices = [{ to: { place: 'rung', except: [] }, event: 'call.ringing', data }] as const
    return { call: { ...call, status: 'ringing', silenced: [] }, event: { type: 'invited', at: now, by, notices } }
  }
  const end = { calleePlace: null, acceptedAt: null, connectedAt: null, endedAt: now, endReason: 'busy' }
  return { call: { ...call, status: 'busy', ...end }, event: { type: 'busy', at: now, by, notices: [] } }
}

export interface Given {
  readonly calls: Between
  readonly named: Call | undefined
  readonly newUuid: string
  readonly calleeBusy: boolean
  readonly limited: { readonly limit: string; readonly retry_after_ms: number }
  readonly metadata: InviteCommand['metadata']
}

export function expectedOf(outcome: InviteOutcome, given: Given): unknown {
  const { calls, calleeBusy } = given
  switch (outcome.kind) {
    case 'refused': {
      const details = {
        CALL_ID_CONFLICT: outcome.tellsStatus ? { status: given.named?.status } : {},
        RATE_LIMITED: given.limited,
        CALL_GLARE: { call_uuid: calls.in?.callUuid },
      }[outcome.code]
      return { ok: false, code: outcome.code, details, steps: [] }
    }
    case 'same': {
      const call = outcome.call === 'over' ? given.named : calls[outcome.call]
      return { ok: true, call, steps: [], created: false, calleeBusy }
    }
    case 'settles':
    case 'takes': {
      const before = calls[outcome.call as 'out']!
      const type = outcome.kind === 'takes' ? 'place_taken' : 'place_settled'
      const step = seatedStep(before, 'caller', heldBy(me), type, byActor(me), now)
      return { ok: true, call: step.call, steps: [step], created: false, calleeBusy }
    }
    default: {
      const ends = outcome.ends.map((name) => {
        const doer = name === 'in' ? null : { actor: me, side: null }
        return transitionOf(calls[name]!, endings[name], doer, null, now)
      })
      const made = newCall(given.newUuid, outcome.kind === 'busy', given.metadata)
      if (outcome.kind === 'busy') return { ok: false, code: 'CALLEE_BUSY', details: {}, steps: [...ends, made] }
      return { ok: true, call: made.call, steps: [...ends, made], created: true, calleeBusy }
    }
  }
}

/** The subject of a ringing call matters if there is one; one thing that is different is enough. */
function talksAndWishes(out: InviteCase['out']): readonly Pick<InviteCase, 'talk' | 'wish'>[] {
  const same = placeKinds.map((talk) => ({ talk, wish: 'same' }) as const)
  if (out === '-') return same
  return [...same, ...wishes.slice(1).map((wish) => ({ talk: '-', wish }) as const)]
}

/** Every state that two people can be in with each other; two crossing invites never ring at once [INV6]. */
export function* situations(): Generator<{
  each: Omit<InviteCase, 'uuid' | 'limit' | 'busy'>
  calls: Between
  name: string
}> {
  for (const out of placeKinds) {
    for (const crossing of out === '-' ? (['-', 'held', 'left'] as const) : (['-'] as const)) {
      for (const { talk, wish } of talksAndWishes(out)) {
        for (const talkCaller of talk === '-' ? [alice] : [alice, bob]) {
          for (const bobLeft of talk === '-' ? [false] : [false, true]) {
            const each = { out, wish, in: crossing, talk }
            const name = `${JSON.stringify(each)}, ${talkCaller.userId} called, bob ${bobLeft ? 'left' : 'is there'}`
            yield { each, calls: callsOf(each, talkCaller, bobLeft), name }
          }
        }
      }
    }
  }
}

/** Every case, or one of `oneOf`. */
export function checkInvites(machine: Machine, oneOf = 1): { cases: number; rowsUsed: number } {
  const { decideInvite } = strict(machine)
  const used = new Set<number>()
  let cases = 0
  let seen = 0
  for (const { each, calls, name } of situations()) {
    for (const { uuid, call: named } of uuidsOf(calls)) {
      for (const engaged of elsewhere) {
        for (const limit of limits) {
          for (const policy of ['allow', 'reject'] as const) {
            if (seen++ % oneOf !== 0) continue
            const mine = [calls.out, calls.in, calls.talk].filter(
              (call): call is Exclude<typeof call, undefined> => call !== undefined,
            )
            const live: LiveCall[] = [
              noise,
              ringsHer,
              ...engaged.calls,
              ...mine,
              ...ringingElsewhere.slice(0, limit.ringing),
            ]
            const command = commandOf(named?.callUuid ?? uuidOf(77), limit.retryAfterMs, policy)
            const busy = engaged.busy && policy === 'reject' ? 'yes' : '-'
            const { row, outcome } = inviteOutcome({ ...each, uuid, limit: limit.name === '-' ? '-' : 'yes', busy })
            const newUuid = uuid === 'foreign' ? uuidOf(99) : command.callUuid
            const limited =
              limit.retryAfterMs === undefined
                ? { limit: 'ringing', retry_after_ms: limit.name === 'overdue' ? 0 : 4_000 }
                : { limit: 'pair_invites', retry_after_ms: limit.retryAfterMs }
            const { metadata } = command
            const given = { calls, named, newUuid, calleeBusy: engaged.busy, limited, metadata }
            const expected = expectedOf(outcome, given)
            const decision = decideInvite({ sameUuid: named as LiveCall | OverCall | undefined, live }, command, now)
            const wrong = difference(decision, expected)
            if (wrong !== undefined)
              violated(
                'invite table',
                `${name}, uuid ${uuid}, bob ${engaged.name}, limit ${limit.name}, ${policy}\n${wrong}`,
              )
            used.add(row)
            cases++
          }
        }
      }
    }
  }
  return { cases, rowsUsed: used.size }
}

/** Who would be both sides reads that in the error [INV1]. */
export const toSelf = ({ userId, role }: Participant) => ({
  code: 'CALL_TO_SELF',
  details: { message: `Both sides would be "${userId}" (${role}). Call another user_id or role.` },
})

/** The checks that need no call, each by itself and the earlier before the later [INV1]. */
export function checkInviteRights(machine: Machine): number {
  const rights = { allowedActions: ['call.accept', 'call.invite'], allowedPeerRoles: ['agent', 'customer'] }
  const others = { allowedActions: ['call.accept'], allowedPeerRoles: ['agent', 'customer'] }
  const noRole = { ...rights, allowedPeerRoles: ['doctor'] }
  const neither = { ...others, allowedPeerRoles: [] }
  const typeInvalid = { code: 'CALL_TYPE_INVALID', details: { field: 'call_type' } }
  const cases = [
    { rights, callee: bob, type: undefined, refused: undefined },
    { rights, callee: bob, type: null, refused: undefined },
    { rights, callee: bob, type: 'video', refused: undefined },
    { rights, callee: bob, type: 'a-_9', refused: undefined },
    { rights, callee: { ...alice, role: 'agent' }, type: 'video', refused: undefined },
    { rights, callee: { ...bob, role: 'customer' }, type: 'video', refused: undefined },
    ...['', 'Video', 'v'.repeat(33), 'a b', 7, true, {}, 'video\n'].map((type) => ({
      rights,
      callee: bob,
      type,
      refused: typeInvalid,
    })),
    { rights, callee: alice, type: 'video', refused: toSelf(alice) },
    { rights, callee: alice, type: 'V', refused: toSelf(alice) },
    { rights: noRole, callee: bob, type: 'video', refused: { code: 'CALL_PEER_ROLE_NOT_ALLOWED', details: {} } },
    { rights: noRole, callee: alice, type: 'V', refused: { code: 'CALL_PEER_ROLE_NOT_ALLOWED', details: {} } },
    { rights: others, callee: bob, type: 'video', refused: { code: 'ACTION_NOT_ALLOWED', details: {} } },
    { rights: neither, callee: alice, type: 'V', refused: { code: 'ACTION_NOT_ALLOWED', details: {} } },
  ]
  for (const { rights, callee, type, refused } of cases) {
    const expected = refused === undefined ? undefined : { ok: false, ...refused, steps: [] }
    const wrong = difference(machine.checkInvite(rights, alice, callee, type), expected)
    if (wrong !== undefined) violated('INV1', `type ${JSON.stringify(type)} to ${callee.userId}\n${wrong}`)
  }
  return cases.length
}
