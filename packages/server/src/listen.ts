import { webSocketPath } from '@ringwire/protocol/subprotocol'
import type { Server } from 'bun'
import type { Config } from './config/config.ts'
import type { HttpApp } from './http/app.ts'
import { runtimeBodyBound } from './http/body.ts'
import type { ClientAddress } from './http/client-address.ts'
import { failure } from './http/replies.ts'
import { targetOf } from './http/request-target.ts'
import type { Journal } from './observability/journal.ts'
import type { MaybePromise } from './ports/maybe.ts'
import type { Gateway } from './signaling/gateway.ts'

/** Of TLS 1.2: what is recorded today cannot be read with the key of tomorrow. Those of 1.3 are all so. */
const ciphers = 'ECDHE+AESGCM:ECDHE+CHACHA20'

export interface Listener {
  readonly url: string
  stop(): Promise<void>
}

export interface ListenOptions {
  readonly config: Config
  readonly clientAddress: ClientAddress
  readonly gateway: Gateway
  readonly app: HttpApp
  /** What answers in front of the REST API, where there is a demo. */
  readonly demo:
    | { fetch(request: Request, address: string | undefined): MaybePromise<Response | undefined> }
    | undefined
  readonly journal: Journal
}

/** Opens the port: sockets go to signaling/, requests to the demo and to http/. */
export function listen({ config, clientAddress, gateway, app, demo, journal }: ListenOptions): Listener {
  const { tlsCert, tlsKey } = config
  const server = Bun.serve({
    hostname: config.host,
    port: config.port,
    reusePort: config.workers > 1,
    ...(tlsCert === null || tlsKey === null
      ? {}
      : { tls: { cert: Bun.file(tlsCert), key: Bun.file(tlsKey), ciphers } }),
    maxRequestBodySize: runtimeBodyBound,
    websocket: gateway.websocket,
    // What nobody foresaw is not shown to whoever asked, with paths and lines.
    development: false,
    error(error) {
      journal.failed(error, 'a request failed')
      return failure('INTERNAL_ERROR')
    },
    fetch(request, server) {
      // The runtime does not know it any more when a body was read.
      const address = server.requestIP(request)?.address
      const client = () => clientAddress(request.headers, address)
      const { path, query } = targetOf(request)
      if (path === webSocketPath && request.headers.get('upgrade')?.toLowerCase() === 'websocket') {
        return gateway.upgrade(request, query, server, client)
      }
      return answer(request, path, address, client)
    },
  })

  return { url: urlOf(server, config), stop: () => server.stop(true) }

  async function answer(
    request: Request,
    path: string,
    address: string | undefined,
    client: () => string | undefined,
  ): Promise<Response> {
    const begin = performance.now()
    const response = (await demo?.fetch(request, address)) ?? (await app.fetch(request, address))
    journal.answered({ method: request.method, path, client }, response, performance.now() - begin)
    return response
  }
}

function urlOf(server: Server<unknown>, config: Config): string {
  const scheme = config.tlsCert === null ? 'http' : 'https'
  const host = config.host.includes(':') ? `[${config.host}]` : config.host
  return `${scheme}://${host}:${server.port}`
}
