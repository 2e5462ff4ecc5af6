/**
 * Requests to URLs that strangers gave [HOOK4]. Requests only go to checked addresses, and an answer takes bounded time,
 * bytes and memory.
 *
 *   const post = createPost({ guard })
 *   await post({ url, headers, body }) → { ok: true, status, retryAfter, body } | { ok: false, error, cause?, wasStale? }
 */
import { type ClientRequest, type IncomingMessage, type RequestOptions, request as requestPlain } from 'node:http'
import { request as requestTls } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { type AddressGuard, hostOf, lookupOf, resolveHost } from './addresses.ts'
import { createAgents, type KeptLimits } from './kept.ts'

/** From the look-up of the name to the status, and to the end of the body, in ms [HOOK3]. */
const deadlineMs = 10_000
/** Of an answer, in bytes: all that the connection brings, and the header section of a message [HOOK4]. */
const maxReadBytes = 64 * 1024
const maxHeaderBytes = 16 * 1024
/** An answer may begin with 8 informational ones, such as 100 and 103 (RFC 9110 section 15.2) [HOOK4]. */
const maxInformational = 8
/** The part of a body that is kept, in bytes. */
const usualShownBytes = 1024
/** The one text for every request that got no connection: it must not tell internal names apart [HOOK4]. */
export const noConnection = 'no connection to an allowed address'

export interface Posted {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
  /** Ends the request before its time. */
  readonly signal?: AbortSignal
}

export type Answer =
  /** Whatever the status; `body`: its first bytes. `isCut`: the body ended before its end, or at a limit. */
  | {
      readonly ok: true
      readonly status: number
      readonly retryAfter?: string | undefined
      readonly body: string
      readonly isCut?: boolean
    }
  /**
   * No status came. `error` says what went wrong, and nothing of what was sent. `cause` says why there was no connection; only
   * the operator may read that. `wasStale`: a kept connection ended under the request, which may have arrived or not. It may
   * go again at once, on a new connection.
   */
  | { readonly ok: false; readonly error: string; readonly cause?: string; readonly wasStale?: boolean }

export type Post = (posted: Posted) => Promise<Answer>

export interface PostOptions {
  readonly guard: AddressGuard
  /** Origins that may be anywhere, also without TLS. */
  readonly trusted?: readonly string[]
  /** Names to addresses; the machine's resolver, where it is not given. */
  readonly resolve?: (host: string) => Promise<readonly string[]>
  readonly deadlineMs?: number
  /** Certificate authorities beside those of the machine, PEM. */
  readonly ca?: string
  readonly kept?: Partial<KeptLimits>
  /** The part of a body that is kept, in bytes; 1 KiB unless given. */
  readonly shownBytes?: number
}

class Refusal extends Error {}

/** A connection that ended without an answer. */
const endedCodes = new Set(['ECONNRESET', 'EPIPE'])

export function createPost(options: PostOptions): Post {
  const { guard, trusted = [], resolve = resolveHost, deadlineMs: limitMs = deadlineMs, ca, kept } = options
  const { shownBytes = usualShownBytes } = options
  const agents = createAgents(kept)
  const { addressesOf, lookupFor } = createCheckedNames(guard, trusted, resolve)

  return async ({ url: text, headers, body, signal }) => {
    const ending = createEnding(limitMs, signal)
    let isConnected = false
    const connected = () => {
      isConnected = true
    }
    let request: ClientRequest | undefined
    try {
      const url = new URL(text)
      // node:http does not look up a literal address.
      if (isIP(hostOf(url)) !== 0) await Promise.race([addressesOf(url), ending.early])
      const isTls = url.protocol === 'https:'
      const asked: RequestOptions = {
        ...optionsOf(url, headers, body),
        agent: isTls ? agents.tls : agents.plain,
        lookup: lookupFor(url, ending.fail),
        signal: ending.signal,
        ...(ca && { ca }),
      }
      request = (isTls ? requestTls : requestPlain)(asked)
      const reading = readingOf(request, shownBytes, ending.fail)
      request.on('socket', (socket) => {
        if (socket.connecting) socket.once('connect', connected)
        else connected()
        agents.meters.begin(socket, maxReadBytes, () => {
          reading.keep()
          ending.fail(new Refusal('the answer is too large'))
        })
      })
      request.end(body)
      const response = await Promise.race([reading.answered, ending.early])
      const status = response.statusCode ?? 0
      if (status < 200) throw new Refusal('the answer is no final one')
      // The status is the answer: a body that does not come changes nothing.
      await Promise.race([reading.over, ending.early]).catch(() => {})
      // A body without a length ends with its connection, also where a limit ended that.
      const isCut = ending.signal.aborted || !response.complete
      if (isCut) response.destroy()
      const retryAfter = response.headers['retry-after']
      return { ok: true, status, retryAfter, body: reading.shown(), ...(isCut && { isCut }) }
    } catch (error) {
      ending.fail(error)
      if (signal?.aborted && signal.reason?.name !== 'TimeoutError') return { ok: false, error: said(error) }
      if (!isConnected) return { ok: false, error: noConnection, cause: said(error) }
      const wasStale = request?.reusedSocket === true && endedCodes.has((error as NodeJS.ErrnoException).code ?? '')
      return { ok: false, error: said(error), ...(wasStale && { wasStale }) }
    } finally {
      ending.over()
    }
  }
}

/** Addresses of names, each of which may be connected to. */
function createCheckedNames(
  guard: AddressGuard,
  trusted: readonly string[],
  resolve: (host: string) => Promise<readonly string[]>,
) {
  /** All addresses of the name, where each may be connected to. */
  async function addressesOf(url: URL): Promise<readonly string[]> {
    const found = await resolve(hostOf(url))
    if (found.length === 0) throw new Refusal('the name has no address')
    const isAllowed = url.protocol === 'https:' ? guard.allows : guard.allowsPlain
    if (!trusted.includes(url.origin) && !found.every(isAllowed)) throw new Refusal('the address is not allowed')
    return found
  }

  /** An agent only asks this for a new connection. */
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

  return { addressesOf, lookupFor }
}

/** What ends a request before its answer does: its deadline, its caller, or a limit. */
function createEnding(limitMs: number, outer: AbortSignal | undefined) {
  const { promise: early, reject } = Promise.withResolvers<never>()
  early.catch(() => {})
  const abort = new AbortController()
  const fail = (error: unknown) => {
    reject(error)
    abort.abort()
  }
  const timer = setTimeout(() => fail(new Refusal(`no answer within ${limitMs / 1_000} s`)), limitMs)
  const stop = () => fail(new Refusal(outer?.reason?.name === 'TimeoutError' ? 'timeout' : 'the request was given up'))
  outer?.addEventListener('abort', stop)
  if (outer?.aborted) stop()
  return {
    early,
    signal: abort.signal,
    fail,
    over() {
      clearTimeout(timer)
      outer?.removeEventListener('abort', stop)
    },
  }
}

function optionsOf(url: URL, headers: Posted['headers'], body: Posted['body']): RequestOptions {
  return {
    method: 'POST',
    hostname: hostOf(url),
    port: url.port,
    path: url.pathname + url.search,
    headers: { ...headers, host: url.host, 'content-length': String(Buffer.byteLength(body)) },
    maxHeaderSize: maxHeaderBytes,
  }
}

/** Reads the answer to a request, and the first bytes of its body. `refused` gets a reason not to wait for it. */
function readingOf(request: ClientRequest, shownBytes: number, refused: (error: unknown) => void) {
  const { promise: answered, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const { promise: over, resolve: end } = Promise.withResolvers<void>()
  const chunks: Buffer[] = []
  let size = 0
  let keep = () => {}
  let informational = 0
  request.on('information', () => {
    if (++informational > maxInformational) refused(new Refusal('too many informational answers'))
  })
  // Nobody asked for another protocol, and no answer follows.
  request.on('upgrade', (_, socket) => {
    socket.destroy()
    reject(new Refusal('the answer is another protocol'))
  })
  request.on('response', (response) => {
    keep = () => {
      for (let chunk = response.read(); chunk !== null; chunk = response.read()) {
        if (size < shownBytes) chunks.push(chunk)
        size += chunk.length
      }
    }
    response.on('readable', keep)
    response.on('error', () => {})
    response.on('end', end)
    response.on('close', end)
    resolve(response)
  })
  request.on('error', reject)
  return {
    answered,
    /** Its body has ended, or broken off. */
    over,
    /** Takes what has arrived: a connection that is destroyed drops it. */
    keep: () => keep(),
    shown: () => Buffer.concat(chunks).subarray(0, shownBytes).toString('utf8'),
  }
}

/** Codes of the system and of TLS say enough; their texts may hold more. */
function said(error: unknown): string {
  if (error instanceof Refusal) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  return (code ?? message).slice(0, 200)
}
