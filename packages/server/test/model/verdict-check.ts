import { alice, between, bob, carol, overCall, uuidOf } from '../../src/call/call.fixture.ts'
import type { LiveCall, OverCall } from '../../src/call/call.ts'
import type { Step } from '../../src/call/effects.ts'
import type { InviteCommand, InviteVerdict } from '../../src/call/invite.ts'
import { byActor, difference } from './expected.ts'
import {
  commandOf,
  elsewhere,
  expectedOf,
  type Given,
  me,
  newCall,
  noise,
  now,
  ringsHer,
  situations,
  uuidsOf,
} from './invite-check.ts'
import { inviteOutcome } from './invite-table.ts'
import { type Machine, strict, violated } from './machine.ts'

/**
 * Part A for the verdict of a backend on an invite [HOOK5]: repeats and limits come first, and then the verdict, before glare and
 * busy.
 */

type Verdict = Pick<InviteCommand, 'redirectedFrom'> & { readonly verdict: InviteVerdict }
const verdicts: readonly Verdict[] = [
  { verdict: { is: 'allowed' } },
  { verdict: { is: 'allowed' }, redirectedFrom: 'bob' },
  { verdict: { is: 'refused', reason: 'blocked' } },
  { verdict: { is: 'withdrawn' } },
  { verdict: { is: 'unasked' } },
]

/** A call that was over as it began. */
function overAtOnce(status: 'rejected' | 'cancelled', endReason: string, { newUuid, metadata }: Given): Step {
  const { call } = newCall(newUuid, true, metadata)
  const by = status === 'rejected' ? null : byActor(me)
  return { call: { ...call, status, endReason } as OverCall, event: { type: status, at: now, by, notices: [] } }
}

/** The expected decision if nothing comes before the verdict. */
function expectedBy({ verdict, redirectedFrom }: Verdict, plain: () => unknown, given: Given): unknown {
  switch (verdict.is) {
    case 'refused': {
      const steps = [overAtOnce('rejected', verdict.reason, given)]
      return { ok: false, code: 'CALL_REFUSED', details: { reason: verdict.reason }, steps }
    }
    case 'withdrawn': {
      const step = overAtOnce('cancelled', 'caller_cancelled', given)
      return { ok: true, call: step.call, steps: [step], created: true, calleeBusy: false }
    }
    case 'unasked':
      return { ok: false, code: 'RATE_LIMITED', details: { retry_after_ms: 0, limit: 'ringing' }, steps: [] }
    case 'allowed':
      return redirectedFrom === undefined ? plain() : redirected(plain())
  }
}

/** The same, and the new call remembers whom its client called. */
function redirected(expected: unknown): unknown {
  const decision = expected as { readonly call?: unknown; readonly steps: readonly Step[] }
  const made = decision.steps.at(-1)
  if (made === undefined || made.call.version !== 1) return expected
  const call = { ...made.call, redirectedFrom: 'bob' }
  const steps = [...decision.steps.slice(0, -1), { ...made, call }]
  return { ...decision, ...('call' in decision && { call }), steps }
}

/** Every case in which the verdict could matter, and those in which it must not. */
export function checkVerdicts(machine: Machine): number {
  return checkEverywhere(machine) + checkRepeats(machine)
}

function checkEverywhere(machine: Machine): number {
  const { decideInvite } = strict(machine)
  let cases = 0
  for (const { each, calls, name } of situations()) {
    for (const { uuid, call: named } of uuidsOf(calls)) {
      for (const engaged of [elsewhere[0], elsewhere[4]]) {
        for (const [limit, retryAfterMs] of [['-', undefined] as const, ['yes', 1_234] as const]) {
          for (const verdict of verdicts) {
            if (engaged === undefined) continue
            const mine = [calls.out, calls.in, calls.talk].filter((call) => call !== undefined)
            const live: LiveCall[] = [noise, ringsHer, ...engaged.calls, ...mine]
            const plain = commandOf(named?.callUuid ?? uuidOf(77), retryAfterMs, 'reject')
            const command: InviteCommand = { ...plain, ...verdict, askedFor: 'bob' }
            const busy = engaged.busy ? 'yes' : '-'
            const { outcome } = inviteOutcome({ ...each, uuid, limit, busy })
            const limited = { limit: 'pair_invites', retry_after_ms: 1_234 }
            const newUuid = uuid === 'foreign' ? uuidOf(99) : command.callUuid
            const given = { calls, named, newUuid, calleeBusy: engaged.busy, limited, metadata: command.metadata }
            const isBefore =
              ['same', 'settles', 'takes'].includes(outcome.kind) ||
              (outcome.kind === 'refused' && outcome.code !== 'CALL_GLARE')
            const expected = isBefore
              ? expectedOf(outcome, given)
              : expectedBy(verdict, () => expectedOf(outcome, given), given)
            const decision = decideInvite({ sameUuid: named as LiveCall | OverCall | undefined, live }, command, now)
            const wrong = difference(decision, expected)
            if (wrong !== undefined)
              violated(
                'HOOK5',
                `${name}, uuid ${uuid}, bob ${engaged.name}, ${limit}, ${JSON.stringify(verdict)}\n${wrong}`,
              )
            cases++
          }
        }
      }
    }
  }
  return cases
}

/** An invite whose call was redirected is repeated by whom its client called, or by whom it rang. */
function checkRepeats(machine: Machine): number {
  const { decideInvite } = strict(machine)
  const verdict: InviteVerdict = { is: 'unasked' }
  const to = { carol: between(overCall(), alice, carol, 61), bob: between(overCall(), alice, bob, 62) }
  const cases = [
    { call: { ...to.carol, redirectedFrom: 'bob' }, askedFor: 'bob', isRepeat: true },
    { call: { ...to.carol, redirectedFrom: 'dave' }, askedFor: 'bob', isRepeat: false },
    { call: to.carol, askedFor: 'bob', isRepeat: false },
    { call: to.carol, askedFor: undefined, isRepeat: false },
    { call: { ...to.carol, redirectedFrom: 'bob' }, askedFor: undefined, isRepeat: false },
    { call: { ...to.bob, redirectedFrom: 'dave' }, askedFor: 'bob', isRepeat: true },
    { call: { ...to.bob, redirectedFrom: 'dave' }, askedFor: undefined, isRepeat: true },
  ] as const
  for (const { call, askedFor, isRepeat } of cases) {
    const command = { ...commandOf(call.callUuid, undefined, 'reject'), verdict, ...(askedFor && { askedFor }) }
    const expected = isRepeat
      ? { ok: true, call, steps: [], created: false, calleeBusy: false }
      : { ok: false, code: 'CALL_ID_CONFLICT', details: {}, steps: [] }
    const wrong = difference(decideInvite({ sameUuid: call as OverCall, live: [] }, command, now), expected)
    if (wrong !== undefined)
      violated('HOOK5', `${JSON.stringify(call.redirectedFrom)}, asked for ${askedFor}\n${wrong}`)
  }
  return cases.length
}
