/**
 * The listener for operators [ADM1]: a port of its own, that no client has to reach.
 *
 *   const admin = listenForAdmin({ config, status, journal, counters: createMemoryCounters() })
 *   admin?.url, admin?.stop()
 */

import { createHash, timingSafeEqual } from 'node:crypto'
import { bearerToken } from './auth/bearer.ts'
import { type Config, isLoopbackHost } from './config/config.ts'
import { failure, healthReply, retryAfter } from './http/replies.ts'
import { targetOf } from './http/request-target.ts'
import { addressKey, type LocalCounters } from './limits/limits.ts'
import { metricsType, textOf } from './observability/families.ts'
import type { Journal } from './observability/journal.ts'
import type { Status } from './observability/status.ts'
import type { MaybePromise } from './ports/maybe.ts'

export interface AdminOptions {
  readonly config: Pick<Config, 'adminPort' | 'adminHost' | 'adminTokens'>
  readonly status: Status
  readonly journal: Pick<Journal, 'operator' | 'failed'>
  readonly counters: LocalCounters
}

export interface AdminListener {
  readonly url: string
  stop(): Promise<void>
}

/** Nothing here has a body. In bytes. */
const maxBodyBytes = 1024
/** A connection that says nothing for this time is closed. In seconds. */
const idleS = 30
/** So many wrong tokens from one address (IPv6: from its /64); over it further ones are refused unread. */
const wrongTokens = { count: 20, seconds: 60 }

/** Opens it where the configuration has a port for it. Throws where it cannot. */
export function listenForAdmin({ config, status, journal, counters }: AdminOptions): AdminListener | undefined {
  const { adminPort: port, adminHost: host, adminTokens } = config
  if (port === null) return undefined
  const isLoopback = isLoopbackHost(host)
  const isKnown = adminTokens === null ? undefined : createCheck(adminTokens)
  const guesses = counters.counter('admin-address', wrongTokens)

  const routes: Readonly<Record<string, () => MaybePromise<Response>>> = {
    '/metrics': async () => new Response(textOf(await status.families()), { headers: textHeaders }),
    '/healthz': async () => healthReply(await status.live()),
    '/readyz': async () => healthReply(await status.ready()),
  }

  /** A right token is no guess. Over the limit none is looked at: a guess that is right would pass. */
  function tokenRefusal(token: string | undefined, address: string | undefined): Response | undefined {
    if (isKnown === undefined) return undefined
    if (token === undefined)
      return failure('AUTH_TOKEN_REQUIRED', { message: 'Send the admin token as "Authorization: Bearer <token>".' })
    const subject = addressKey(address)
    const retryAfterMs = guesses.consume(subject)
    if (retryAfterMs > 0) return failure('RATE_LIMITED', { headers: retryAfter(retryAfterMs) })
    if (!isKnown(token)) return failure('AUTH_TOKEN_INVALID', { message: 'This is not the admin token.' })
    guesses.refund(subject)
    return undefined
  }

  function refusalOf({ method, headers }: Request, path: string, address: string | undefined): Response | undefined {
    // A web page whose host name leads here would be asked by its own name: DNS rebinding.
    if (isLoopback && !isOfLoopback(headers.get('host'))) return failure('NOT_FOUND', { message: strange })
    const isOpen = isLoopback && path === '/metrics'
    const refusal = isOpen ? undefined : tokenRefusal(bearerToken(headers.get('authorization')), address)
    if (refusal !== undefined) return refusal
    if (!Object.hasOwn(routes, path)) return failure('NOT_FOUND')
    const isRead = method === 'GET' || method === 'HEAD'
    return isRead ? undefined : failure('METHOD_NOT_ALLOWED', { headers: { Allow: 'GET, HEAD' } })
  }

  const server = bind(host, () =>
    Bun.serve({
      hostname: host,
      port,
      // Left out, the runtime shares the port with whoever has it.
      reusePort: false,
      maxRequestBodySize: maxBodyBytes,
      idleTimeout: idleS,
      development: false,
      error(error) {
        journal.failed(error, 'a request of an operator failed')
        return failure('INTERNAL_ERROR')
      },
      async fetch(request, server) {
        const { path } = targetOf(request)
        const begin = performance.now()
        const address = server.requestIP(request)?.address
        const response = refusalOf(request, path, address) ?? (await routes[path]?.()) ?? failure('NOT_FOUND')
        journal.operator({ method: request.method, path, client: () => address }, response, performance.now() - begin)
        return response
      },
    }),
  )
  const name = host.includes(':') ? `[${host}]` : host
  return { url: `http://${name}:${server.port}`, stop: () => server.stop(true) }
}

const textHeaders = { 'Content-Type': metricsType, 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }
const strange = 'This listener only answers to a name of this machine, as 127.0.0.1 or localhost.'

/** The port is anybody's to choose: a tunnel has another one. */
function isOfLoopback(host: string | null): boolean {
  return host !== null && isLoopbackHost(host.replace(/:\d+$/, ''))
}

/** Compares hashes, which are of one length, in constant time, and with each token, whichever is right [KEY1]. */
function createCheck(tokens: readonly string[]): (given: string) => boolean {
  const hashOf = (text: string) => createHash('sha256').update(text).digest()
  const expected = tokens.map(hashOf)
  return (given) => {
    const hash = hashOf(given)
    return expected.filter((each) => timingSafeEqual(hash, each)).length > 0
  }
}

/** Whoever reads the error has to know which of the two listeners it is about. */
function bind<T>(host: string, listen: () => T): T {
  try {
    return listen()
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? `${error.code}` : String(error)
    throw new Error(
      `the listener for operators cannot have ${host} (RINGWIRE_ADMIN_HOST, RINGWIRE_ADMIN_PORT): ${reason}`,
    )
  }
}
