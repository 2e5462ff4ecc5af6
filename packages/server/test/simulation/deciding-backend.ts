import { createInviteHook, type InviteHook } from '../../src/invite-hook/invite-hook.ts'
import type { Answer, Post } from '../../src/outgoing/post.ts'
import type { Timers } from '../../src/ports/clock.ts'
import type { ProductSettings } from '../../src/ports/product-store.ts'
import { answerOf, answersAfter, decisionOn } from '../chaos/decisions.ts'
import type { Random } from '../fuzz/random.ts'

/** The settings of a product whose backend decides. */
export const decidingSettings: Pick<ProductSettings, 'inviteUrl' | 'inviteSecret'> = {
  inviteUrl: 'https://backend.example/invites',
  inviteSecret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
}

/** A backend that decides on invites, and is slow, silent or wrong now and then. */
export class DecidingBackend {
  private readonly users: readonly string[]

  constructor(users: readonly string[]) {
    this.users = users
  }

  /** How a node asks it. Waits for nothing where the node is dead. */
  askedBy(timers: Timers, random: Random, now: () => number): InviteHook {
    const post: Post = ({ body, signal }) => {
      const { call_uuid: callUuid } = (JSON.parse(String(body)) as { data: { call_uuid: string } }).data
      const decision = decisionOn(callUuid)
      const { promise, resolve } = Promise.withResolvers<Answer>()
      signal?.addEventListener('abort', () => resolve({ ok: false, error: 'aborted' }))
      const ms = answersAfter(decision, random)
      if (decision !== 'nothing')
        timers.after(ms, () => resolve({ ok: true, status: 200, body: answerOf(decision, callUuid, this.users) }))
      return promise
    }
    return createInviteHook({ post, now, onAsked() {}, timers })
  }
}
