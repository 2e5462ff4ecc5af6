import { RingwireError } from './error.ts'
import type { checkOptions } from './options.ts'

export type Query = Readonly<Record<string, string | number | Date | undefined>>

export const textOf = (value: string | number | Date) => (value instanceof Date ? value.toISOString() : String(value))

function queryText(query: Query): string {
  const given = Object.entries(query).flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, textOf(value)]],
  )
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

type Options = ReturnType<typeof checkOptions>

/** Sends a request to the service, and reads its answer; rejects with a `RingwireError`. */
export function createSend({ base, keyId, secret, timeoutMs, ask }: Options) {
  const headers = { 'X-SVC-Product-Key-ID': keyId, 'X-SVC-Product-Secret': secret, 'Content-Type': 'application/json' }

  return async <T>(method: string, path: string, query: Query = {}, body?: object, limitMs = timeoutMs): Promise<T> => {
    const init: RequestInit = {
      method,
      headers,
      redirect: 'error',
      signal: AbortSignal.timeout(limitMs),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }
    let response: Response
    let text: string
    try {
      response = await ask(`${base}${path}${queryText(query)}`, init)
      text = await response.text()
    } catch (cause) {
      throw new RingwireError('NETWORK', noAnswer(base, cause, limitMs), { cause })
    }
    const answer = method === 'DELETE' && response.status === 204 ? {} : read(text)
    if (response.ok && answer !== undefined) return answer as T
    throw errorOf(base, response, answer)
  }
}

function read(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

function noAnswer(base: string, cause: unknown, limitMs: number): string {
  const { origin } = new URL(base)
  if (cause instanceof Error && cause.name === 'TimeoutError') return `${origin} did not answer within ${limitMs} ms.`
  // Node has the reason in the cause of its error, and Bun in the error itself.
  const codes = [cause, (cause as { cause?: unknown } | undefined)?.cause].map(
    (one) => (one as { code?: unknown })?.code,
  )
  const code = codes.find((one) => typeof one === 'string')
  return `No service answers at ${origin}${code === undefined ? '' : ` (${code})`}. Start it, or give another url (RINGWIRE_URL).`
}

function errorOf(base: string, response: Response, answer: object | undefined): RingwireError {
  const { status } = response
  const { code, message } = (answer as { error?: { code?: unknown; message?: unknown } } | undefined)?.error ?? {}
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1000 : undefined
  if (typeof code !== 'string' || typeof message !== 'string')
    return new RingwireError(
      'UNEXPECTED_ANSWER',
      `${new URL(base).origin} answered ${status}, but not as Ringwire does. Look whether url (RINGWIRE_URL) names the service.`,
      { status },
    )
  return new RingwireError(code, message, { status, retryAfterMs })
}
