import { durations, heldBy, start } from '../../src/call/call.fixture.ts'
import { type Call, isAnswered, type Side } from '../../src/call/call.ts'
import type { Actor, CallCommand } from '../../src/call/command.ts'
import type { Notice, Step } from '../../src/call/effects.ts'
import { fromEverywhere, liveCases, overCases, sessionsOf } from './command-check.ts'
import { byActor, difference, seatOf, withPeers } from './expected.ts'
import { type Machine, strict, violated } from './machine.ts'
import { seatIn } from './world.ts'

/** Part A: every session that asks for the place of its side, whichever session has it [TAKE1]. */

const now = start + 10_000
type TakeCommand = Extract<CallCommand, { type: 'take' }>
type Limits = Omit<TakeCommand, 'type' | 'actor'>

const limits: readonly Limits[] = [
  ...[{}, { isForbidden: false, isGone: false }, { isForbidden: true }, { isGone: true }],
  { isForbidden: true, isGone: true },
]

/** What was decided, in the order of TAKE1. */
function expectedOf(call: Call, side: Side, actor: Actor, { isForbidden, isGone }: Limits): object {
  const refused = (code: string, details: object = {}) => ({ ok: false, code, details, steps: [] })
  if (!isAnswered(call)) return refused('CALL_INVALID_STATE', { status: call.status })
  if (actor.expiresAt !== undefined && actor.expiresAt <= beginFor(call, side)) return refused('AUTH_TOKEN_INVALID')
  if (isForbidden) return refused('ACTION_NOT_ALLOWED')
  if (isGone) return refused('SERVICE_UNAVAILABLE', { retryable: true })
  const step =
    seatIn(call, side)?.sessionId === actor.sessionId ? seatOf(call, side, actor, now) : takenBy(call, side, actor)
  return { ok: true, call: step?.call ?? call, steps: step === undefined ? [] : [withPeers(call, step)] }
}

/** The side that was transferred has been there since the first call began [XFER1]. */
function beginFor({ startedAt, transferred }: Call, side: Side): number {
  return side === 'caller' ? (transferred?.firstStartedAt ?? startedAt) : startedAt
}

function takenBy(call: Extract<Call, { acceptedAt: number }>, side: Side, actor: Actor): Step {
  const was = seatIn(call, side)!
  const seats = side === 'caller' ? { callerPlace: heldBy(actor) } : { calleePlace: heldBy(actor) }
  const lost = was.state === 'vacant' && { lost: true as const }
  const moved = [{ side, from: was.sessionId, taken: true as const, leftDevice: was.deviceId, ...lost }]
  return {
    call: { ...call, ...seats, version: call.version + 1 } as Call,
    event: { type: 'place_taken', at: now, by: byActor(actor), notices: toldOfTake(call, side), moved },
  }
}

/** The caller offers anew where the callee goes on elsewhere; where the caller does, the taker offers. */
export function toldOfTake({ callUuid }: Call, side: Side): readonly Notice[] {
  const data = { call_uuid: callUuid, status: 'accepted' } as const
  return side === 'caller' ? [] : [{ to: { place: 'caller' }, event: 'call.accepted', data }]
}

export function checkTakes(machine: Machine): number {
  const { decide } = strict(machine)
  let cases = 0
  const check = (name: string, call: Call, side: Side, command: TakeCommand) => {
    const { type: _, actor, ...limit } = command
    const wrong = difference(decide(call, command, now, durations), expectedOf(call, side, actor, limit))
    if (wrong !== undefined) violated('TAKE1', `${name}: the ${side} ${actor.sessionId} takes it\n${wrong}`)
    cases++
  }
  for (const device of ['phone', null]) {
    for (const { name, call } of [...liveCases(device), ...overCases()]) {
      for (const side of ['caller', 'callee'] as const) {
        for (const actor of fromEverywhere(sessionsOf(side, device))) {
          for (const limit of limits) check(name, call, side, { type: 'take', actor, ...limit })
          for (const ms of [-1, 0, 1]) {
            const limited = { ...actor, expiresAt: beginFor(call, side) + ms }
            for (const isForbidden of [true, false])
              check(name, call, side, { type: 'take', actor: limited, isForbidden })
          }
        }
      }
    }
  }
  return cases
}
