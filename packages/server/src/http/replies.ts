import { errors, type RestCode } from '@ringwire/protocol/errors'
import type { HealthReport } from '../observability/health.ts'

/** Every REST answer carries these, where it says nothing else: nothing here is to be kept or guessed at. */
const always = { 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' } as const

type HeaderFields = Readonly<Record<string, string>>

/** A body that is larger goes out in pieces of this size, as it is read [HTTP3]. In bytes. */
const pieceBytes = 16 * 1024
/** A page of calls that is being read from the store, and what is made of it. In bytes. */
const streamBytes = 512 * 1024

/** What an answer holds until its client has read it. */
export interface Held {
  readonly bytes: number
  /** Resolves when it holds nothing any more. */
  readonly over: Promise<void>
  /** Ends its connection. */
  cut(): void
}

const held = Symbol('held')

/** Undefined where the buffers of the connection are enough. */
export function heldBy(response: Response & { readonly [held]?: Held }): Held | undefined {
  return response[held]
}

export function json(status: number, body: unknown, headers: HeaderFields = {}): Response {
  const text = JSON.stringify(body)
  const init = { status, headers: { 'Content-Type': 'application/json', ...always, ...headers } }
  if (text.length <= pieceBytes) return new Response(text, init)
  const bytes = new TextEncoder().encode(text)
  return heldResponse(slices(bytes), bytes.length, init)
}

async function* slices(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
}

/**
 * JSON that is sent while it is made, as fast as it is read. A failure before the first piece rejects; after it, the
 * connection is cut: a client must not take a part for the whole.
 */
export async function jsonStream(
  pieces: AsyncIterableIterator<string>,
  onError: (error: unknown) => void,
): Promise<Response> {
  const first = await pieces.next()
  const encoder = new TextEncoder()
  async function* encoded(): AsyncGenerator<Uint8Array> {
    try {
      if (!first.done) yield encoder.encode(first.value)
      for await (const piece of pieces) yield encoder.encode(piece)
    } finally {
      await pieces.return?.()
    }
  }
  const headers = { 'Content-Type': 'application/json', ...always }
  return heldResponse(encoded(), streamBytes, { headers }, onError)
}

/** Its body is made as it is read. */
function heldResponse(
  pieces: AsyncGenerator<Uint8Array>,
  bytes: number,
  init: ResponseInit,
  onError: (error: unknown) => void = () => {},
): Response {
  const { promise: over, resolve } = Promise.withResolvers<void>()
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  const end = (close: (open: ReadableStreamDefaultController<Uint8Array>) => void) => {
    if (controller !== undefined) close(controller)
    controller = undefined
    resolve()
    // A generator that is making its next piece ends after that.
    void pieces.return(undefined).catch(onError)
  }
  // Bun would print what it is given here.
  const cut = () => end((open) => open.error())
  const body = new ReadableStream<Uint8Array>({
    start(own) {
      controller = own
    },
    async pull() {
      try {
        const { done, value } = await pieces.next()
        if (done) end((open) => open.close())
        else controller?.enqueue(value)
      } catch (error) {
        onError(error)
        cut()
      }
    },
    cancel: () => end(() => {}),
  })
  return Object.assign(new Response(body, init), { [held]: { bytes, over, cut } })
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
