import type { Environment } from './environment.ts'
import { RingwireError } from './error.ts'
import type { CallClientOptions, SessionToken, TokenReason, TokenResponse } from './types.ts'
import { isObject, parseJson } from './wire.ts'

/** A token with this much left is used again: nobody asks the backend for each reconnect. */
const reserveMs = 60_000

/** Holds one token, and asks the application for the next one when it has to. */
export function createTokens(
  env: Environment,
  { getToken, url }: CallClientOptions,
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
      const late = env.after(timeoutMs, () => reject(tokenError(`getToken gave nothing in ${timeoutMs} ms.`)))
      // An application's function may also throw at once.
      Promise.resolve()
        .then(() => getToken(reason))
        .catch(failed)
        .then((answer) => read(answer, url === undefined))
        .then(resolve, reject)
        .finally(late)
    })
    return given.then((token) => {
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
      return held && msLeft(held) > reserveMs ? Promise.resolve(held) : ask()
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
    localTime: (time: string | number): number => +new Date(time) - clockOffset,
  }
}

export type Tokens = ReturnType<typeof createTokens>

/** There is no token that can be used. */
export function tokenError(message: string, details: object = {}): RingwireError {
  return new RingwireError('TOKEN_FAILED', message, { retryable: true, ...details })
}

/** What the application gave: the token, or the response of its backend that holds it. */
async function read(answer: SessionToken | TokenResponse, needsUrl: boolean): Promise<SessionToken> {
  const response = isObject(answer) && 'text' in answer ? (answer as unknown as TokenResponse) : undefined
  const text = response && (await response.text().catch(failed))
  const token = (text === undefined ? answer : parseJson(text)) as SessionToken
  const isToken = isObject(token) && typeof token.token === 'string' && !Number.isNaN(Date.parse(token.expires_at))
  if (response?.ok !== false && isToken && (token.ws_url || !needsUrl)) return token
  const httpStatus = response?.status
  const said = `${httpStatus ?? ''} ${text ?? JSON.stringify(answer)}`
  throw tokenError(`getToken gave no token: ${firstWords(said)}`, {
    httpStatus,
  })
}

/** An error that says `retryable: false` ends it all; any other is a bad moment. */
function failed(cause: unknown): never {
  const { retryable, retryAfterMs, status, message } = Object(cause) as Partial<RingwireError> & { status?: number }
  throw tokenError(`getToken failed: ${firstWords(message ?? cause)}`, {
    retryable: retryable !== false,
    retryAfterMs,
    httpStatus: status,
    cause,
  })
}

const maxWords = 100

/** Enough of an answer to know it again, without markup, and without anything that could be a token or a secret [LOG1]. */
export function firstWords(said: unknown): string {
  return String(said)
    .replace(/<[^<>]*>/g, ' ')
    .replace(/((?:token|secret|pass|key)\w{0,20}["']?\s*[:=]).*/is, '$1…')
    .replace(/[\w.+/=~-]{16,}/g, (run) => (/^([A-Z_]+|[a-z]+)$/.test(run) ? run : '…'))
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, maxWords)
}
