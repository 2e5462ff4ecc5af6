import { createInviteHook, type InviteHook } from '../../src/invite-hook/invite-hook.ts'
import type { Answer, Post } from '../../src/outgoing/post.ts'
import type { Timers } from '../../src/ports/clock.ts'
import type { ProductSettings } from '../../src/ports/product-store.ts'
import { Random } from '../fuzz/random.ts'

/** The answer of a world's backend about an invite [HOOK5]: it follows from the uuid, however often it is asked for. */
export type Answered = 'allow' | 'refuse' | 'redirect' | 'late' | 'nothing' | 'nonsense'

const reason = 'closed'
/** Of a hundred invites. */
const shares: readonly (readonly [Answered, number])[] = [
  ['refuse', 5],
  ['redirect', 4],
  ['late', 4],
  ['nothing', 3],
  ['nonsense', 3],
]
/** How long an answer takes, and how long one that is late, in ms; the service waits for 2 s. */
const usualMs = 60
const lateMs = { least: 1_200, most: 2_800 } as const

/** The settings of a product whose backend decides. */
export const decidingSettings: Pick<ProductSettings, 'inviteUrl' | 'inviteSecret'> = {
  inviteUrl: 'https://backend.example/invites',
  inviteSecret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
}

/** A backend that decides on invites, and is slow, silent or wrong now and then. */
export class DecidingBackend {
  private readonly role: string
  private readonly users: readonly string[]

  constructor(role: string, users: readonly string[]) {
    this.role = role
    this.users = users
  }

  answerTo(callUuid: string): Answered {
    let left = randomOf(callUuid).int(100)
    for (const [answer, share] of shares) {
      left -= share
      if (left < 0) return answer
    }
    return 'allow'
  }

  /** Whom it redirects to. */
  redirectedTo(callUuid: string): string {
    const random = randomOf(callUuid)
    random.int(1)
    return random.pick(this.users)
  }

  /** How a node asks it. Waits for nothing where the node is dead. */
  askedBy(timers: Timers, random: Random, now: () => number): InviteHook {
    const post: Post = ({ body, signal }) => {
      const { data } = JSON.parse(String(body)) as { data: { call_uuid: string } }
      const answer = this.answerTo(data.call_uuid)
      const { promise, resolve } = Promise.withResolvers<Answer>()
      signal?.addEventListener('abort', () => resolve({ ok: false, error: 'aborted' }))
      const ms = answer === 'late' ? lateMs.least + random.int(lateMs.most - lateMs.least) : random.int(usualMs)
      if (answer !== 'nothing') timers.after(ms, () => resolve(this.said(answer, data.call_uuid)))
      return promise
    }
    return createInviteHook({ post, now, onAsked() {}, timers })
  }

  private said(answer: Exclude<Answered, 'nothing'>, callUuid: string): Answer {
    if (answer === 'nonsense') return { ok: true, status: 200, body: 'yes' }
    const callee = { role: this.role, user_id: this.redirectedTo(callUuid) }
    const decision = {
      allow: { decision: 'allow' },
      late: { decision: 'allow' },
      refuse: { decision: 'refuse', reason },
      redirect: { decision: 'redirect', callee },
    }[answer]
    return { ok: true, status: 200, body: JSON.stringify(decision) }
  }
}

function randomOf(callUuid: string): Random {
  return new Random(Number.parseInt(callUuid.slice(0, 8), 16))
}
