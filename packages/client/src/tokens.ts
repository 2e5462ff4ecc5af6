import type { Environment } from './environment.ts'
import { RingwireError } from './error.ts'
import type { SessionToken, TokenReason } from './types.ts'
import { isObject } from './wire.ts'

/** A token with this much left is used again: nobody asks the backend for each reconnect. */
const reserveMs = 60_000

/** Holds one token, and asks the application for the next one when it has to. */
export function createTokens(
  env: Environment,
  getToken: (reason: TokenReason) => Promise<SessionToken>,
  timeoutMs: number,
  onToken: (token: SessionToken) => void,
) {
  let last: SessionToken | undefined
  let held: SessionToken | undefined
  let asking: Promise<SessionToken> | undefined
  let reason: TokenReason = 'first'
  /** The service's clock minus this one. */
  let clockOffset = 0

  function msLeft(token: SessionToken): number {
    return Date.parse(token.expires_at) - env.now() - clockOffset
  }

  function fetchToken(): Promise<SessionToken> {
    const given = new Promise<SessionToken>((resolve, reject) => {
      const late = env.after(timeoutMs, () =>
        reject(new RingwireError('TIMEOUT', 'getToken gave nothing in time.', { retryable: true })),
      )
      // An application's function may also throw at once.
      Promise.resolve()
        .then(() => getToken(reason))
        .then(resolve, reject)
        .finally(late)
    })
    return given.then(check, failed).then((token) => {
      held = token
      last = token
      reason = 'expiring'
      onToken(token)
      return token
    })
  }

  function ask(): Promise<SessionToken> {
    asking ??= fetchToken().finally(() => {
      asking = undefined
    })
    return asking
  }

  return {
    /** The held one while it lasts, else a new one. */
    current(): Promise<SessionToken> {
      return held !== undefined && msLeft(held) > reserveMs ? Promise.resolve(held) : ask()
    },
    /** A new one in any case. */
    renewed: ask,
    msLeft,
    held: (): SessionToken | undefined => held,
    /** Also one that was refused. */
    last: (): SessionToken | undefined => last,
    /** The service does not take it. */
    refused(): void {
      held = undefined
      reason = 'refused'
    },
    setServerTime(iso: string): void {
      const time = Date.parse(iso)
      if (!Number.isNaN(time)) clockOffset = time - env.now()
    },
    /** What the service's clock says, as this device's clock would say it. */
    localTime: (iso: string): number => Date.parse(iso) - clockOffset,
  }
}

export type Tokens = ReturnType<typeof createTokens>

function check(token: SessionToken): SessionToken {
  const isToken = isObject(token) && typeof token.token === 'string' && !Number.isNaN(Date.parse(token.expires_at))
  if (!isToken) throw new RingwireError('TOKEN_FAILED', 'getToken must give {token, expires_at, …}.')
  return token
}

/** An error that says `retryable: false` ends it all; any other is a bad moment. */
function failed(cause: unknown): never {
  const { retryable, retryAfterMs } = isObject(cause) || cause instanceof Error ? (cause as Partial<RingwireError>) : {}
  const details = { retryable: retryable !== false, retryAfterMs, cause }
  throw new RingwireError('TOKEN_FAILED', 'getToken failed.', details)
}
