/**
 * Requests to URLs that strangers gave [HOOK4]: to addresses that were checked, no further, no longer, and no more than
 * was asked for.
 *
 *   const post = createPost({ guard })
 *   await post({ url, headers, body }) → { ok: true, status, retryAfter, body } | { ok: false, error, wasStale? }
 */
import { type ClientRequest, type IncomingMessage, type RequestOptions, request as requestPlain } from 'node:http'
import { request as requestTls } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { type AddressGuard, hostOf, lookupOf, resolveHost } from './addresses.ts'
import { createAgents, type KeptLimits } from './kept.ts'

/** From the look-up of the name to the status, and to the end of the body, in ms [HOOK3]. */
const deadlineMs = 10_000
/** More of an answer is not read. */
const maxReadBytes = 64 * 1024
/** More of it is not kept. */
const maxShownBytes = 1024

export interface Posted {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
  /** Ends the request before its time. */
  readonly signal?: AbortSignal
}

export type Answer =
  /** Whatever the status; `body`: its first KiB. */
  | { readonly ok: true; readonly status: number; readonly retryAfter?: string | undefined; readonly body: string }
  /**
   * No status came. The text names what went wrong, and nothing of what was sent. `wasStale`: a connection that was kept
   * ended under it. It may have arrived or not; on a new one it may go at once.
   */
  | { readonly ok: false; readonly error: string; readonly wasStale?: boolean }

export type Post = (posted: Posted) => Promise<Answer>

export interface PostOptions {
  readonly guard: AddressGuard
  /** An origin that may be anywhere, also without TLS. */
  readonly trusted?: string | null
  /** Names to addresses; the machine's resolver, where it is not given. */
  readonly resolve?: (host: string) => Promise<readonly string[]>
  readonly deadlineMs?: number
  /** Certificate authorities beside those of the machine, PEM. */
  readonly ca?: string
  readonly kept?: Partial<KeptLimits>
}

class Refusal extends Error {}

/** A connection that ended without an answer. */
const endedCodes = new Set(['ECONNRESET', 'EPIPE'])

export function createPost(options: PostOptions): Post {
  const { guard, trusted = null, resolve = resolveHost, deadlineMs: limitMs = deadlineMs, ca, kept } = options
  const agents = createAgents(kept)

  /** Addresses that may be connected to: all that the name has, or none. */
  async function addressesOf(url: URL): Promise<readonly string[]> {
    const found = await resolve(hostOf(url))
    if (found.length === 0) throw new Refusal('the name has no address')
    const isAllowed = url.protocol === 'https:' ? guard.allows : guard.allowsPlain
    if (url.origin !== trusted && !found.every(isAllowed)) throw new Refusal('the address is not allowed')
    return found
  }

  /** Is asked for each new connection, and for no other. */
  function lookupFor(url: URL, refused: (error: unknown) => void): LookupFunction {
    return (host, wanted, callback) => {
      addressesOf(url).then(
        (addresses) => lookupOf(addresses)(host, wanted, callback),
        (error) => {
          refused(error)
          callback(error, '')
        },
      )
    }
  }

  return async ({ url: text, headers, body, signal }) => {
    const { promise: late, reject } = Promise.withResolvers<never>()
    late.catch(() => {})
    const abort = new AbortController()
    const giveUp = (message: string) => {
      reject(new Refusal(message))
      abort.abort()
    }
    const timer = setTimeout(giveUp, limitMs, `no answer within ${limitMs / 1_000} s`)
    const stop = () => giveUp(signal?.reason?.name === 'TimeoutError' ? 'timeout' : 'the request was given up')
    signal?.addEventListener('abort', stop)
    let request: ClientRequest | undefined
    try {
      if (signal?.aborted) stop()
      const url = new URL(text)
      // An address is looked up nowhere.
      if (isIP(hostOf(url)) !== 0) await Promise.race([addressesOf(url), late])
      const isTls = url.protocol === 'https:'
      const asked: RequestOptions = {
        ...optionsOf(url, headers, body),
        agent: isTls ? agents.tls : agents.plain,
        lookup: lookupFor(url, reject),
        signal: abort.signal,
        ...(ca && { ca }),
      }
      const { promise: answered, resolve, reject: failed } = Promise.withResolvers<IncomingMessage>()
      request = (isTls ? requestTls : requestPlain)(asked, resolve)
      request.on('error', failed)
      // Nobody asked for another protocol: no answer comes any more.
      request.on('upgrade', (_, socket) => {
        socket.destroy()
        failed(new Refusal('the answer is another protocol'))
      })
      request.end(body)
      const response = await Promise.race([answered, late])
      // The status is the answer: a body that does not come changes nothing.
      const shown = await Promise.race([readBody(response), late]).catch(() => '')
      const retryAfter = response.headers['retry-after']
      return { ok: true, status: response.statusCode ?? 0, retryAfter, body: shown }
    } catch (error) {
      abort.abort()
      const wasStale = request?.reusedSocket === true && endedCodes.has((error as NodeJS.ErrnoException).code ?? '')
      return { ok: false, error: said(error), ...(wasStale && { wasStale }) }
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    }
  }
}

function optionsOf(url: URL, headers: Posted['headers'], body: Posted['body']): RequestOptions {
  return {
    method: 'POST',
    hostname: hostOf(url),
    port: url.port,
    path: url.pathname + url.search,
    headers: { ...headers, host: url.host, 'content-length': String(Buffer.byteLength(body)) },
  }
}

/** Its first KiB, of at most 64 that are read: who sends more is not asked again on this connection. */
async function readBody(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  response.on('error', () => {})
  for await (const chunk of response) {
    chunks.push(chunk as Buffer)
    size += (chunk as Buffer).length
    if (size >= maxReadBytes) break
  }
  if (!response.complete) response.destroy()
  return Buffer.concat(chunks).subarray(0, maxShownBytes).toString('utf8')
}

/** Codes of the system and of TLS say enough; their texts may hold more. */
function said(error: unknown): string {
  if (error instanceof Refusal) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  return (code ?? message).slice(0, 200)
}
