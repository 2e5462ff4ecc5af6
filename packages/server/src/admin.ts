/**
 * The listener for operators [ADM1, ADM2]: a port of its own, that no client has to reach.
 *
 *   const admin = listenForAdmin({ config, status, journal, counters: createMemoryCounters() })
 *   admin?.url, admin?.stop()
 */

import { bearerToken } from './auth/bearer.ts'
import { type Config, isLoopbackHost } from './config/config.ts'
import { saysTooLarge } from './http/body.ts'
import { failure, healthReply } from './http/replies.ts'
import { targetOf } from './http/request-target.ts'
import type { LocalCounters } from './limits/limits.ts'
import { metricsType, textOf } from './observability/families.ts'
import type { Journal } from './observability/journal.ts'
import type { Status } from './observability/status.ts'
import { type AdminTokens, createAdminTokens } from './operators/admin-token.ts'
import { createOperatorApi, type OperatorApiOptions } from './operators/api.ts'
import { createDoor } from './operators/door.ts'
import { createSamples } from './operators/samples.ts'
import type { MaybePromise } from './ports/maybe.ts'

export interface AdminOptions {
  readonly config: Pick<Config, 'adminPort' | 'adminHost' | 'adminTokens'>
  readonly status: Status
  readonly journal: Pick<Journal, 'operator' | 'failed'>
  readonly counters: LocalCounters
  /** The settings of this machine, without secrets; nothing if nobody knows its environment. */
  readonly settings?: OperatorApiOptions['settings'] | undefined
}

export interface AdminListener {
  readonly url: string
  stop(): Promise<void>
}

/** No body of an operator is larger, and outside of /admin/api/ there is none. In bytes. */
const maxBodyBytes = 160 * 1024
const noBodyBytes = 1024
/** A connection that says nothing for this time is closed. In seconds. */
const idleS = 30

/** Opens it where the configuration has a port for it. Throws where it cannot. */
export function listenForAdmin(options: AdminOptions): AdminListener | undefined {
  const { config, status, journal, counters } = options
  const { adminPort: port, adminHost: host, adminTokens } = config
  if (port === null) return undefined
  const isLoopback = isLoopbackHost(host)
  const tokens = adminTokens === null ? undefined : createAdminTokens(adminTokens, counters)
  const operators = tokens && openOperators(options, tokens)
  const answer = createAnswers(status, isLoopback, tokens)

  const server = bind(host, () =>
    Bun.serve({
      hostname: host,
      port,
      // Without this option the runtime shares the port with any other process that has it.
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
        const ofPage = path === '/admin' || path.startsWith('/admin/') ? operators : undefined
        const response =
          refusalOfHost(isLoopback, request) ??
          (await ofPage?.door(request, path, address)) ??
          (await answer(request, path, address))
        journal.operator({ method: request.method, path, client: () => address }, response, performance.now() - begin)
        return response
      },
    }),
  )
  operators?.samples.start()
  const name = host.includes(':') ? `[${host}]` : host
  return {
    url: `http://${name}:${server.port}`,
    async stop() {
      operators?.samples.stop()
      await server.stop(true)
    },
  }
}

/** The operator's page, and what it asks. */
function openOperators({ status, counters, settings = () => [] }: AdminOptions, tokens: AdminTokens) {
  const { now } = Date
  const samples = createSamples({ families: async () => status.families(), now })
  const door = createDoor({ tokens, counters, now, answer: createOperatorApi({ status, samples, settings, now }) })
  return { door, samples }
}

/** Answers the requests of monitoring. */
function createAnswers(status: Status, isLoopback: boolean, tokens: AdminTokens | undefined) {
  const routes: Readonly<Record<string, () => MaybePromise<Response>>> = {
    '/metrics': async () => new Response(textOf(await status.families()), { headers: textHeaders }),
    '/healthz': async () => healthReply(await status.live()),
    '/readyz': async () => healthReply(await status.ready()),
  }

  return async ({ method, headers }: Request, path: string, address: string | undefined): Promise<Response> => {
    const isOpen = isLoopback && path === '/metrics'
    const refusal = isOpen ? undefined : tokens?.refusalOf(bearerToken(headers.get('authorization')), address)
    if (refusal !== undefined) return refusal
    if (saysTooLarge(headers, noBodyBytes)) return failure('REQUEST_BODY_TOO_LARGE')
    const route = Object.hasOwn(routes, path) ? routes[path] : undefined
    if (route === undefined) return failure('NOT_FOUND')
    const isRead = method === 'GET' || method === 'HEAD'
    return isRead ? route() : failure('METHOD_NOT_ALLOWED', { headers: { Allow: 'GET, HEAD' } })
  }
}

const textHeaders = { 'Content-Type': metricsType, 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }
const strange = 'This listener only answers to a name of this machine, as 127.0.0.1 or localhost.'

/** A web page whose host name leads here would send its own name: DNS rebinding. */
function refusalOfHost(isLoopback: boolean, { headers }: Request): Response | undefined {
  return isLoopback && !isOfLoopback(headers.get('host')) ? failure('NOT_FOUND', { message: strange }) : undefined
}

/** The port is anybody's to choose: a tunnel has another one. */
function isOfLoopback(host: string | null): boolean {
  return host !== null && isLoopbackHost(host.replace(/:\d+$/, ''))
}

/** The reader of the error has to know which of the two listeners it is about. */
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
