/**
 * Requests to URLs that strangers gave [HOOK4]: to addresses that were checked, no further, no longer, and no more than
 * was asked for.
 *
 *   const post = createPost({ guard })
 *   await post({ url, headers, body }) → { ok: true, status, body } | { ok: false, error }
 */
import { type IncomingMessage, type RequestOptions, request as requestPlain } from 'node:http'
import { request as requestTls } from 'node:https'
import { type AddressGuard, hostOf, lookupOf, resolveHost } from './addresses.ts'

/** From the look-up of the name to the status, and to the end of the body, in ms [HOOK3]. */
const deadlineMs = 10_000
/** More of an answer is not read. */
const maxReadBytes = 64 * 1024
/** More of it is not kept. */
const maxShownBytes = 1024

export interface Posted {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Ends the request before its time. */
  readonly signal?: AbortSignal
}

export type Answer =
  /** Whatever the status; `body`: its first KiB. */
  | { readonly ok: true; readonly status: number; readonly body: string }
  /** No status came. The text names what went wrong, and nothing of what was sent. */
  | { readonly ok: false; readonly error: string }

export type Post = (posted: Posted) => Promise<Answer>

export interface PostOptions {
  readonly guard: AddressGuard
  /** Names to addresses; the machine's resolver, where it is not given. */
  readonly resolve?: (host: string) => Promise<readonly string[]>
  readonly deadlineMs?: number
  /** Certificate authorities beside those of the machine, PEM. */
  readonly ca?: string
}

class Refusal extends Error {}

export function createPost({ guard, resolve = resolveHost, deadlineMs: limitMs = deadlineMs, ca }: PostOptions): Post {
  /** Addresses that may be connected to: all that the name has, or none. */
  async function addressesOf(url: URL): Promise<readonly string[]> {
    const found = await resolve(hostOf(url))
    if (found.length === 0) throw new Refusal('the name has no address')
    const isAllowed = url.protocol === 'https:' ? guard.allows : guard.allowsPlain
    if (!found.every(isAllowed)) throw new Refusal('the address is not allowed')
    return found
  }

  return async ({ url: text, headers, body, signal }) => {
    const { promise: late, reject } = Promise.withResolvers<never>()
    const abort = new AbortController()
    const giveUp = (message: string) => {
      reject(new Refusal(message))
      abort.abort()
    }
    const timer = setTimeout(giveUp, limitMs, `no answer within ${limitMs / 1_000} s`)
    const stop = () => giveUp('the request was given up')
    signal?.addEventListener('abort', stop)
    try {
      if (signal?.aborted) stop()
      const url = new URL(text)
      const addresses = await Promise.race([addressesOf(url), late])
      const options = { ...optionsOf(url, addresses, headers, body), signal: abort.signal, ...(ca && { ca }) }
      const response = await Promise.race([send(url, options, body), late])
      // The status is the answer: a body that does not come changes nothing.
      const shown = await Promise.race([readBody(response), late]).catch(() => '')
      return { ok: true, status: response.statusCode ?? 0, body: shown }
    } catch (error) {
      return { ok: false, error: said(error) }
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
      abort.abort()
    }
  }
}

function optionsOf(url: URL, addresses: readonly string[], headers: Posted['headers'], body: string): RequestOptions {
  return {
    method: 'POST',
    hostname: hostOf(url),
    port: url.port,
    path: url.pathname + url.search,
    headers: { ...headers, host: url.host, 'content-length': String(Buffer.byteLength(body)), connection: 'close' },
    agent: false,
    lookup: lookupOf(addresses),
  }
}

function send(url: URL, options: RequestOptions, body: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? requestTls : requestPlain)(options, resolve)
    request.on('error', reject)
    request.end(body)
  })
}

/** Its first KiB, of at most 64 that are read. */
async function readBody(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  response.on('error', () => {})
  for await (const chunk of response) {
    chunks.push(chunk as Buffer)
    size += (chunk as Buffer).length
    if (size >= maxReadBytes) break
  }
  response.destroy()
  return Buffer.concat(chunks).subarray(0, maxShownBytes).toString('utf8')
}

/** Codes of the system and of TLS say enough; their texts may hold more. */
function said(error: unknown): string {
  if (error instanceof Refusal) return error.message
  const { code, message } = error as NodeJS.ErrnoException
  return (code ?? message).slice(0, 200)
}
