import { webSocketPath } from '@ringwire/protocol/subprotocol'
import type { Server } from 'bun'
import { claimPort } from './claim-port.ts'
import type { Config } from './config/config.ts'
import type { TlsPair } from './config/tls-files.ts'
import type { HttpApp } from './http/app.ts'
import { runtimeBodyBound } from './http/body.ts'
import type { ClientAddress } from './http/client-address.ts'
import { handshakeOf } from './http/handshake.ts'
import { failure } from './http/replies.ts'
import { targetOf } from './http/request-target.ts'
import { createUnread, maxUnreadBytes, type Unread } from './http/unread.ts'
import type { Journal } from './observability/journal.ts'
import { macrotask } from './ports/macrotask.ts'
import type { MaybePromise } from './ports/maybe.ts'
import type { Gateway } from './signaling/gateway.ts'

/** Of TLS 1.2: what is recorded today cannot be read with the key of tomorrow. All ciphers of 1.3 are so. */
const ciphers = 'ECDHE+AESGCM:ECDHE+CHACHA20'
/** An unfinished request ends 12 s after it began: the runtime counts in steps of 4 s [HTTP2]. */
const unfinishedS = 10
/** The most that the runtime takes, and how much earlier than asked for it may close. */
const mostIdleS = 255
const earlyS = 4
/** A connection that is cut is closed this much later, and up to 4 s more. */
const closingS = 1
/** While both listeners are there, the kernel gives new connections to either of them. */
const overlapMs = 50

export interface Listener {
  readonly url: string
  /**
   * Resolves when new connections get this certificate. Those that are there stay. Rejects where the runtime refuses the pair.
   */
  renew(pair: TlsPair): Promise<void>
  /** Newcomers are refused by the kernel until `resume`. Connections that are there stay. */
  pause(): void
  resume(): void
  /** Closes connections that wait for another request. */
  closeIdle(): void
  stop(): Promise<void>
}

export interface ListenOptions {
  readonly config: Pick<Config, 'host' | 'port' | 'workers' | 'httpIdleMs'>
  /** Undefined: plain HTTP. */
  readonly tls: TlsPair | undefined
  readonly clientAddress: ClientAddress
  readonly gateway: Gateway
  readonly app: HttpApp
  /** The demo answers before the REST API, if there is a demo. */
  readonly demo:
    | { fetch(request: Request, address: string | undefined): MaybePromise<Response | undefined> }
    | undefined
  readonly journal: Journal
  /** Whether connections may stay open for another request. */
  readonly keepsIdle: () => boolean
}

type Bound = Server<unknown>
type Client = () => string | undefined

/** Opens the port: sockets go to signaling/, requests to the demo and to http/. */
export function listen(options: ListenOptions): Listener {
  const { config, tls } = options
  const unread = createUnread({ limit: maxUnreadBytes })
  // A second listener on the port is how the certificate is renewed: the runtime's reload() leaves TLS as it is (#43815).
  if (tls !== undefined && config.workers === 1 && config.port !== 0) claimPort(config.host, config.port)
  let pair = tls
  /** Undefined while nobody new is let in. */
  let current: Bound | undefined = bind(options, unread, pair, config.port)
  /** They accept nothing any more, and have connections. */
  const retired = new Set<Bound>()
  const port = current.port ?? config.port

  function retire(server: Bound): void {
    void server.stop(false).then(() => retired.delete(server))
  }

  return {
    url: urlOf(config.host, port, tls !== undefined),
    async renew(next) {
      const before = current
      if (before !== undefined) current = bind(options, unread, next, port)
      pair = next
      if (before === undefined) return
      retired.add(before)
      await Bun.sleep(overlapMs)
      // Connections that wait to be accepted are lost with a listener. Right after the runtime has accepted, that is hardly
      // any.
      await macrotask()
      retire(before)
    },
    pause() {
      if (current === undefined) return
      retired.add(current)
      retire(current)
      current = undefined
    },
    resume() {
      current ??= bind(options, unread, pair, port)
    },
    closeIdle() {
      for (const server of [...retired, ...(current === undefined ? [] : [current])]) server.closeIdleConnections()
    },
    async stop() {
      await Promise.all([...retired, ...(current === undefined ? [] : [current])].map((server) => server.stop(true)))
    },
  }
}

function bind(options: ListenOptions, unread: Unread, pair: TlsPair | undefined, port: number): Bound {
  const { config, clientAddress, gateway, app, demo, journal, keepsIdle } = options
  const keepAlive = createKeepAlive(config.httpIdleMs, keepsIdle)

  async function answer(request: Request, path: string, address: string | undefined, client: Client) {
    const begin = performance.now()
    const response = (await demo?.fetch(request, address)) ?? (await app.fetch(request, address))
    journal.answered({ method: request.method, path, client }, response, performance.now() - begin)
    const kept = keepAlive(request, response, server)
    // The runtime has no way to close a connection but its time.
    unread.add(kept, () => server.timeout(request, closingS))
    return kept
  }

  const server: Bound = Bun.serve({
    hostname: config.host,
    port,
    reusePort: config.workers > 1 || pair !== undefined,
    ...(pair !== undefined && { tls: { ...pair, ciphers } }),
    maxRequestBodySize: runtimeBodyBound,
    idleTimeout: unfinishedS,
    websocket: gateway.websocket,
    // An unforeseen error is not shown to clients with paths and lines.
    development: false,
    error(error) {
      journal.failed(error, 'a request failed')
      return failure('INTERNAL_ERROR')
    },
    fetch(request) {
      const { path, query } = targetOf(request)
      if (path === webSocketPath && handshakeOf(request) === 'good') {
        // Only a client that is refused is asked for its address, and that is before the upgrade.
        const stranger = () => clientAddress(request.headers, server.requestIP(request)?.address)
        return gateway.upgrade(request, query, server, stranger)
      }
      // The runtime does not know it any more when a body was read.
      const address = server.requestIP(request)?.address
      const client = () => clientAddress(request.headers, address)
      return answer(request, path, address, client)
    },
  })
  return server
}

/** Lets a connection wait for the next request once this one is answered, and says for how long [HTTP2]. */
function createKeepAlive(idleMs: number, keepsIdle: () => boolean) {
  const seconds = Math.ceil(idleMs / 1_000)
  const asked = Math.min(mostIdleS, seconds + earlyS)
  const said = `timeout=${Math.min(seconds, asked - earlyS)}`
  return (request: Request, response: Response, server: Bound): Response => {
    if (!keepsIdle()) response.headers.set('Connection', 'close')
    if (response.headers.get('connection')?.toLowerCase() === 'close') return response
    // A request that is answered before it is whole has no more time than before.
    if (hasBody(request) && !request.bodyUsed) return response
    server.timeout(request, asked)
    response.headers.set('Keep-Alive', said)
    return response
  }
}

function hasBody({ headers }: Request): boolean {
  return headers.has('transfer-encoding') || Number(headers.get('content-length') ?? 0) > 0
}

function urlOf(address: string, port: number, isSecure: boolean): string {
  const host = address.includes(':') ? `[${address}]` : address
  return `${isSecure ? 'https' : 'http'}://${host}:${port}`
}
