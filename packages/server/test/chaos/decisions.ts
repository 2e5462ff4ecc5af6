import { Random } from '../fuzz/random.ts'
import { role } from './person.ts'

/** The decision of a run's backend about an invite [HOOK5]: by its uuid, also if it is repeated. */
export type Decision = 'allow' | 'refuse' | 'redirect' | 'late' | 'nothing' | 'nonsense'

const reason = 'closed'
/** Of a hundred invites. */
const shares: readonly (readonly [Decision, number])[] = [
  ['refuse', 5],
  ['redirect', 4],
  ['late', 4],
  ['nothing', 3],
  ['nonsense', 3],
]
/** How long an answer takes, and how long one that is late, in ms; the service waits for 2 s. */
const usualMs = 60
const lateMs = { least: 1_200, most: 2_800 } as const

export function decisionOn(callUuid: string): Decision {
  let left = randomOf(callUuid).int(100)
  for (const [decision, share] of shares) {
    left -= share
    if (left < 0) return decision
  }
  return 'allow'
}

/** Whom an invite is redirected to. */
export function redirectedTo(callUuid: string, users: readonly string[]): string {
  const random = randomOf(callUuid)
  random.int(1)
  return random.pick(users)
}

/** In ms. */
export function answersAfter(decision: Decision, random: Random): number {
  return decision === 'late' ? lateMs.least + random.int(lateMs.most - lateMs.least) : random.int(usualMs)
}

/** The body of the answer. */
export function answerOf(decision: Exclude<Decision, 'nothing'>, callUuid: string, users: readonly string[]): string {
  if (decision === 'nonsense') return 'yes'
  const answers = {
    allow: { decision: 'allow' },
    late: { decision: 'allow' },
    refuse: { decision: 'refuse', reason },
    redirect: { decision: 'redirect', callee: { role, user_id: redirectedTo(callUuid, users) } },
  }
  return JSON.stringify(answers[decision])
}

function randomOf(callUuid: string): Random {
  return new Random(Number.parseInt(callUuid.slice(0, 8), 16))
}
