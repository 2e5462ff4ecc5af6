import { createHash, timingSafeEqual } from 'node:crypto'
import { failure, retryAfter } from '../http/replies.ts'
import { addressKey, type LocalCounters } from '../limits/limits.ts'

export interface AdminTokens {
  /** Undefined for the right token. A wrong one counts for the address that it comes from. */
  refusalOf(token: string | undefined, address: string | undefined): Response | undefined
}

/** The limit of wrong tokens from one address (IPv6: from its /64); beyond it further ones are refused unread. */
const wrongTokens = { count: 20, seconds: 60 }

/** The tokens of operators, and how often somebody may guess [ADM1]. */
export function createAdminTokens(tokens: readonly string[], counters: LocalCounters): AdminTokens {
  const isKnown = createCheck(tokens)
  const guesses = counters.counter('admin-address', wrongTokens)
  return {
    refusalOf(token, address) {
      if (token === undefined)
        return failure('AUTH_TOKEN_REQUIRED', { message: 'Send the admin token as "Authorization: Bearer <token>".' })
      const subject = addressKey(address)
      // A right token is not a guess. Over the limit none is looked at: a guess that is right would pass.
      const retryAfterMs = guesses.consume(subject)
      if (retryAfterMs > 0) return failure('RATE_LIMITED', { headers: retryAfter(retryAfterMs) })
      if (!isKnown(token)) return failure('AUTH_TOKEN_INVALID', { message: 'This is not the admin token.' })
      guesses.refund(subject)
      return undefined
    },
  }
}

/** Compares hashes, which have one length, in constant time, and with each token, whichever is right [KEY1]. */
function createCheck(tokens: readonly string[]): (given: string) => boolean {
  const hashOf = (text: string) => createHash('sha256').update(text).digest()
  const expected = tokens.map(hashOf)
  return (given) => {
    const hash = hashOf(given)
    return expected.filter((each) => timingSafeEqual(hash, each)).length > 0
  }
}
