import type { Environment } from './environment.ts'
import { RingwireError } from './error.ts'
import type { CallClientOptions, SessionToken, TokenReason, TokenResponse } from './types.ts'
import { isObject, parseJson } from './wire.ts'

/** A token with this much left, or a fifth of its life, is used again: nobody asks the backend for each reconnect. */
const reserveMs = 60_000
/** The client waits this many times as long for a late `getToken` before it calls it again: two at once help nobody. */
const latePatience = 2

/**
 * Holds one token, and asks the application for the next one when it has to. Every token is asked for here: one at a time, and
 * after a token that came not before the pause of a reconnect is over, whatever its `expires_at` says.
 */
export function createTokens(
  env: Environment,
  { getToken, url, reconnectBaseMs = 500, reconnectMaxMs = 15_000 }: CallClientOptions,
  timeoutMs: number,
  onToken: (token: SessionToken) => void,
) {
  let last: SessionToken | undefined
  let held: SessionToken | undefined
  let asking: Promise<SessionToken> | undefined
  /** What `getToken` gave, also when nobody waits for it any more. */
  let given: Promise<SessionToken> | undefined
  let reason: TokenReason = 'first'
  /** Counts the participants: a token that was asked for before a `forget` is not used. */
  let person = 0
  /** The service's clock minus this one. */
  let clockOffset = 0
  let isClockKnown = false
  /** How long the held token lasts in all. */
  let lifeMs = 0
  let takenAt = 0
  /** Until the next one may be asked for. */
  let pauseMs = 0

  function msLeft(token: SessionToken): number {
    return Date.parse(token.expires_at) - env.now() - clockOffset
  }

  function msOfPause(): number {
    return Math.min(pauseMs, takenAt + pauseMs - env.now())
  }

  function tellClock(time: number): void {
    if (Number.isNaN(time)) return
    clockOffset = time - env.now()
    if (held) lifeMs = msLeft(held)
  }

  function take(token: SessionToken): SessionToken {
    // One that is asked for soon after the one before doubles the pause, up to the longest.
    const isSoon = env.now() < takenAt + 2 * pauseMs
    pauseMs = isSoon ? Math.min(reconnectMaxMs, 2 * pauseMs) : reconnectBaseMs
    takenAt = env.now()
    held = token
    last = token
    lifeMs = msLeft(token)
    reason = 'expiring'
    onToken(token)
    return token
  }

  function hearDate(date: string | null | undefined): void {
    // The backend's clock is a better guess than the device's, until the service tells its own.
    if (date && !isClockKnown) tellClock(Date.parse(date))
  }

  function start(): Promise<SessionToken> {
    // An application's function may also throw at once.
    const mine: Promise<SessionToken> = Promise.resolve()
      .then(() => getToken(reason))
      .catch(failed)
      .then((answer) => read(answer, url === undefined, hearDate))
      .then((token) => (given === mine ? take(token) : token))
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

  async function fetchToken(): Promise<SessionToken> {
    const mine = person
    const ofNow = <T>(value: T): T => {
      if (mine !== person) throw tokenError('The client was closed.')
      return value
    }
    const pause = held ? msOfPause() : 0
    if (pause > 0) await new Promise<void>((resolve) => env.after(pause, resolve))
    // It was given up, and may still come.
    const late = given && (await within(latePatience * timeoutMs, given).catch(() => undefined))
    return ofNow(late) ?? ofNow(await within(timeoutMs, start()))
  }

  function ask(): Promise<SessionToken> {
    if (asking) return asking
    const mine = fetchToken().finally(() => {
      if (asking === mine) asking = undefined
    })
    asking = mine
    return mine
  }

  return {
    /** The held one while it lasts, else a new one. One that came a moment ago is the best that there is. */
    current(): Promise<SessionToken> {
      const isGood = held && (msLeft(held) > Math.min(reserveMs, lifeMs / 5) || msOfPause() > 0)
      return held && isGood ? Promise.resolve(held) : ask()
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
    /** The client is closed: whoever connects it again may be somebody else. */
    forget(): void {
      person++
      held = last = given = asking = undefined
      reason = 'first'
    },
    setServerTime(iso: string): void {
      const time = Date.parse(iso)
      isClockKnown ||= !Number.isNaN(time)
      tellClock(time)
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
