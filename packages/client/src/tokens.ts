import type { Environment } from './environment.ts'
import { RingwireError } from './error.ts'
import { isObject, parseJson } from './json.ts'
import { createServerClock } from './server-clock.ts'
import type { CallClientOptions, SessionToken, TokenReason, TokenResponse } from './types.ts'

/** A token with this much left, or a fifth of its life, is used again: nobody asks the backend for each reconnect. */
const reserveMs = 60_000
/** The client waits this many times as long for a late `getToken` before it calls it again: two at once help nobody. */
const latePatience = 2

/** Calls `getToken`: one at a time, and without tokens that were requested before a `forget`. */
function createSource(
  env: Environment,
  timeoutMs: number,
  fetchToken: () => Promise<SessionToken>,
  take: (token: SessionToken) => void,
) {
  let asking: Promise<SessionToken> | undefined
  /** The promise of `getToken`, also when nobody waits for it any more. */
  let given: Promise<SessionToken> | undefined
  /** Counts the participants. */
  let person = 0

  function start(): Promise<SessionToken> {
    const mine: Promise<SessionToken> = fetchToken()
      .then((token) => {
        if (given === mine) take(token)
        return token
      })
      .finally(() => {
        if (given === mine) given = undefined
      })
    given = mine
    return mine
  }

  function within(ms: number, promise: Promise<SessionToken>): Promise<SessionToken> {
    return new Promise((resolve, reject) => {
      const late = env.after(ms, () => reject(tokenError(`getToken gave nothing in ${timeoutMs} ms.`)))
      promise.then(resolve, reject).finally(late)
    })
  }

  async function next(pause: number): Promise<SessionToken> {
    const mine = person
    const ofNow = <T>(value: T): T => {
      if (mine !== person) throw tokenError('The client was closed.')
      return value
    }
    if (pause > 0) await new Promise<void>((resolve) => env.after(pause, resolve))
    // It was given up, and may still come.
    const late = given && (await within(latePatience * timeoutMs, given).catch(() => undefined))
    return ofNow(late) ?? ofNow(await within(timeoutMs, start()))
  }

  return {
    ask(pause: number): Promise<SessionToken> {
      if (asking) return asking
      const mine = next(pause).finally(() => {
        if (asking === mine) asking = undefined
      })
      asking = mine
      return mine
    },
    forget(): void {
      person++
      given = asking = undefined
    },
  }
}

/**
 * Holds one token, and asks the application for the next one when it has to. This part makes every request for a token:
 * one at a time, and after a token that came not before the pause of a reconnect is over, whatever its `expires_at` says.
 */
export function createTokens(
  env: Environment,
  { getToken, url, reconnectBaseMs = 500, reconnectMaxMs = 15_000 }: CallClientOptions,
  timeoutMs: number,
  onToken: (token: SessionToken) => void,
) {
  let last: SessionToken | undefined
  let held: SessionToken | undefined
  let reason: TokenReason = 'first'
  /** How long the held token lasts in all. */
  let lifeMs = 0
  let takenAt = 0
  /** Until the next request for a token may go out. */
  let pauseMs = 0

  const clock = createServerClock(env, () => {
    if (held) lifeMs = msLeft(held)
  })
  const source = createSource(
    env,
    timeoutMs,
    async () =>
      read(
        await Promise.resolve()
          .then(() => getToken(reason))
          .catch(failed),
        url === undefined,
        clock.hearDate,
      ),
    take,
  )
  const msLeft = ({ expires_at }: SessionToken) => clock.msUntil(expires_at)
  const msOfPause = () => Math.min(pauseMs, takenAt + pauseMs - env.now())
  const renewed = () => source.ask(held ? msOfPause() : 0)

  function take(token: SessionToken): void {
    // A request soon after the previous one doubles the pause, up to the longest.
    const isSoon = env.now() < takenAt + 2 * pauseMs
    pauseMs = isSoon ? Math.min(reconnectMaxMs, 2 * pauseMs) : reconnectBaseMs
    takenAt = env.now()
    held = last = token
    lifeMs = msLeft(token)
    reason = 'expiring'
    onToken(token)
  }

  return {
    /** The held one while it lasts, else a new one. One that came a moment ago is the best that there is. */
    current(): Promise<SessionToken> {
      const isGood = held && (msLeft(held) > Math.min(reserveMs, lifeMs / 5) || msOfPause() > 0)
      return held && isGood ? Promise.resolve(held) : renewed()
    },
    /** A new one in any case. */
    renewed,
    msLeft,
    held: (): SessionToken | undefined => held,
    /** Also one that was refused. */
    last: (): SessionToken | undefined => last,
    /** The service does not take it. */
    refused(): void {
      held = undefined
      reason = 'refused'
    },
    /** The client is closed: the next user of it may be somebody else. */
    forget(): void {
      source.forget()
      held = last = undefined
      reason = 'first'
    },
    setServerTime: clock.setServerTime,
    localTime: clock.localTime,
  }
}

export type Tokens = ReturnType<typeof createTokens>

/** There is no token that can be used. */
export function tokenError(message: string, details: object = {}): RingwireError {
  return new RingwireError('TOKEN_FAILED', message, { retryable: true, ...details })
}

/** The application's answer: the token, or the response of its backend that holds it. */
async function read(
  answer: SessionToken | TokenResponse,
  needsUrl: boolean,
  hearDate: (date: string | null | undefined) => void,
): Promise<SessionToken> {
  const response = isObject(answer) && 'text' in answer ? (answer as unknown as TokenResponse) : undefined
  hearDate(response?.headers?.get('Date'))
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
