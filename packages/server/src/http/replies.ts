import { errors, type RestCode } from '@ringwire/protocol/errors'
import type { HealthReport } from '../observability/health.ts'

/** Every REST answer carries these, where it says nothing else: nothing here is to be kept or guessed at. */
const always = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' } as const

type HeaderFields = Readonly<Record<string, string>>

export function json(status: number, body: unknown, headers: HeaderFields = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'Content-Type': 'application/json', ...always, ...headers },
  })
}

/**
 * JSON that is sent while it is made, as fast as it is read. What fails before the first piece rejects; after it, the connection
 * is cut: a client must not take a part for the whole.
 */
export async function jsonStream(
  pieces: AsyncIterableIterator<string>,
  onError: (error: unknown) => void,
): Promise<Response> {
  let next: IteratorResult<string> | undefined = await pieces.next()
  const encoder = new TextEncoder()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = next ?? (await pieces.next())
        next = undefined
        if (done) controller.close()
        else controller.enqueue(encoder.encode(value))
      } catch (error) {
        onError(error)
        // Bun would print what it is given here.
        controller.error()
      }
    },
    async cancel() {
      await pieces.return?.()
    },
  })
  return new Response(body, { headers: { 'Content-Type': 'application/json', ...always } })
}

export function empty(status: number, headers: HeaderFields = {}): Response {
  return new Response(null, { status, headers: { ...always, ...headers } })
}

interface FailureOptions {
  readonly message?: string
  readonly headers?: HeaderFields
  /** What the error says beside its code and message. */
  readonly details?: Readonly<Record<string, unknown>>
}

/** A value of a request as a message names it: enough to know it by. */
export const shortened = (text: string) => (text.length > 64 ? `${text.slice(0, 64)}…` : text)

/** The REST error body, with the status of its code. */
export function failure(code: RestCode, options: FailureOptions = {}): Response {
  const { status, message } = errors[code]
  return json(
    status,
    { success: false, error: { code, message: options.message ?? message, ...options.details } },
    { ...challenge(code), ...goodbye(status), ...options.headers },
  )
}

export function healthReply({ status, body }: HealthReport): Response {
  return json(status, body, status === 503 ? retryAfter(1000) : {})
}

/** Who asks too much, or sends too much, has to connect again: what it has sent meanwhile is not read [HTTP1]. */
function goodbye(status: number): HeaderFields {
  return status === 413 || status === 429 ? { Connection: 'close' } : {}
}

/** RFC 9110 section 11.6.1: a 401 says how to authenticate. */
function challenge(code: RestCode): HeaderFields {
  if (code === 'AUTH_TOKEN_REQUIRED') return { 'WWW-Authenticate': 'Bearer' }
  if (code === 'AUTH_TOKEN_INVALID') return { 'WWW-Authenticate': 'Bearer error="invalid_token"' }
  return errors[code].status === 401 ? { 'WWW-Authenticate': 'Product-Key' } : {}
}

export function retryAfter(ms: number): HeaderFields {
  return { 'Retry-After': String(Math.max(1, Math.ceil(ms / 1000))) }
}
