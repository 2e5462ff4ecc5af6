import { fetchToken, type Identity, type SessionToken } from './backend.ts'

/** Renew with a fifth of the lifetime left, but not more than two minutes early. */
export function renewalDelay(expiresAt: string, now: number): number {
  const left = Date.parse(expiresAt) - now
  return Math.max(0, left - Math.min(120_000, left / 5))
}

/** Keeps one token in hand and fetches the next before it expires. */
export function createTokens(identity: Identity, onRenewed: (token: SessionToken) => void) {
  let token: Promise<SessionToken> | undefined
  let timer: ReturnType<typeof setTimeout> | undefined

  async function fetchAndPlan(): Promise<SessionToken> {
    const fetched = await fetchToken(identity)
    clearTimeout(timer)
    timer = setTimeout(renew, renewalDelay(fetched.expires_at, Date.now()))
    return fetched
  }

  async function renew(): Promise<void> {
    const next = fetchAndPlan()
    try {
      const renewed = await next
      token = next
      onRenewed(renewed)
    } catch {
      // The old token still stands; the backend may be back in a moment.
      clearTimeout(timer)
      timer = setTimeout(renew, 5000)
    }
  }

  return {
    current(): Promise<SessionToken> {
      const asked = token ?? fetchAndPlan()
      token = asked
      asked.catch(() => {
        if (token === asked) token = undefined
      })
      return asked
    },
    /** The service refused it, or the backend forgot us: the next use fetches another. */
    discard(): void {
      token = undefined
    },
    stop(): void {
      clearTimeout(timer)
    },
  }
}
