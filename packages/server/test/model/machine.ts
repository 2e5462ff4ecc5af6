import { deepFreeze } from '../../src/call/call.fixture.ts'
import type { Decision } from '../../src/call/command.ts'
import { decide } from '../../src/call/decide.ts'
import { checkInvite, decideInvite, type InviteDecision } from '../../src/call/invite.ts'
import { decideJoin } from '../../src/call/join.ts'
import { decideLinked } from '../../src/call/linked.ts'
import { decideTransfer } from '../../src/call/transfer.ts'

/** The call rules as the tests run them: the source itself, or a copy with one fault in it. */
export interface Machine {
  readonly decide: typeof decide
  readonly decideInvite: typeof decideInvite
  readonly checkInvite: typeof checkInvite
  readonly decideLinked: typeof decideLinked
  readonly decideTransfer: typeof decideTransfer
  readonly decideJoin: typeof decideJoin
}

export const source: Machine = { decide, decideInvite, checkInvite, decideLinked, decideTransfer, decideJoin }

/** The same rules, and every decision shows that it is pure: its input is frozen, and asked again it says the same. */
export function strict(machine: Machine): Machine {
  return {
    decide(call, command, now, durations) {
      deepFreeze(call)
      deepFreeze(command)
      return sameAgain(() => machine.decide(call, command, now, durations))
    },
    decideInvite(situation, command, now) {
      deepFreeze(situation)
      deepFreeze(command)
      return sameAgain(() => machine.decideInvite(situation, command, now))
    },
    checkInvite: machine.checkInvite,
    decideLinked(call, linked, command, now, durations) {
      for (const given of [call, linked, command]) deepFreeze(given)
      return sameAgain(() => machine.decideLinked(call, linked, command, now, durations))
    },
    decideTransfer(first, live, command, now) {
      for (const given of [first, live, command]) deepFreeze(given)
      return sameAgain(() => machine.decideTransfer(first, live, command, now))
    },
    decideJoin(first, live, command, now, durations) {
      for (const given of [first, live, command]) deepFreeze(given)
      return sameAgain(() => machine.decideJoin(first, live, command, now, durations))
    },
  }
}

function sameAgain<D extends Decision | InviteDecision>(ask: () => D): D {
  const decision = ask()
  const again = ask()
  deepFreeze(decision.steps)
  const same = decision.ok
    ? again.ok && (decision.steps.length > 0 || again.call === decision.call)
    : !again.ok && again.code === decision.code
  const news = decision.steps.length + again.steps.length > 0
  if (!same || (news && !Bun.deepEquals(again.steps, decision.steps, true)))
    violated('pure', 'the same question got another answer')
  return decision
}

/** A rule does not hold. */
export function violated(rule: string, detail: string): never {
  throw new Error(`[${rule}] ${detail}`)
}
