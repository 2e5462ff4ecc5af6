/** Where the client under test connects: it gets its tokens and its socket there, and the kit can end and refuse both. */
import { createServer, type Socket } from 'node:net'
import type { TokenResponse } from '@ringwire/protocol/rest'
import type { Access } from '../access.ts'
import { type PlainAnswer, type PlainRequest, serveConnection } from './http.ts'
import { Link, type LinkObserver, type Traffic } from './link.ts'

export interface GateOptions {
  readonly access: Access
  /** Where it listens; port 0: any. */
  readonly host: string
  readonly port: number
  /** Where the service's sockets are. */
  readonly wsUrl: string
  /** A token of the client under test, whom nobody has to give a product key. */
  issue(): Promise<TokenResponse>
  readonly observer: LinkObserver
  /** Somebody tried to connect. */
  onAttempt(isRefused: boolean): void
}

export interface Gate {
  /** As http://127.0.0.1:PORT: the client takes it for the service. */
  readonly url: string
  readonly links: readonly Link[]
  traffic: Traffic
  /** Connections are reset. */
  isRefusing: boolean
  /** What becomes of the query of the next sockets. */
  query: (search: string) => string
  /** Of tokens that are issued from now on, in seconds; undefined: as the service says. */
  expiresIn: number | undefined
  close(): void
}

export const untouched: Traffic = { up: () => true, down: (text) => [text] }
/** The path at which a client gets a session without a product key. */
export const sessionPath = '/conformance/session'

export async function openGate(options: GateOptions): Promise<Gate> {
  const links: Link[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    socket.setNoDelay(true)
    if (gate.isRefusing) {
      options.onAttempt(true)
      socket.resetAndDestroy()
      return
    }
    serveConnection(
      socket,
      (request) => answerPlain(options, gate, request),
      (request) => {
        options.onAttempt(false)
        if (!URL.canParse(request.target, gate.url)) return void socket.resetAndDestroy()
        const { pathname, search } = new URL(request.target, gate.url)
        const base = new URL(options.wsUrl)
        // The path is the client's: a wrong one shows.
        base.pathname = pathname
        const wsUrl = `${base.origin.replace(/^http/, 'ws')}${pathname}${gate.query(search)}`
        const traffic = () => gate.traffic
        links.push(new Link({ number: links.length + 1, socket, request, wsUrl, traffic, observer: options.observer }))
      },
    )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, options.host, resolve)
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : options.port
  const gate: Gate = {
    url: `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`,
    links,
    traffic: untouched,
    isRefusing: false,
    query: (search) => search,
    expiresIn: undefined,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
  return gate
}

async function answerPlain(options: GateOptions, gate: Gate, request: PlainRequest): Promise<PlainAnswer> {
  const { method, target, headers, body } = request
  try {
    if (new URL(target, gate.url).pathname === sessionPath) return json(200, ownSession(gate, await options.issue()))
    const kept = [...headers].filter(([name]) => !['host', 'connection', 'content-length'].includes(name))
    const hasBody = body.length > 0
    const init = { method, headers: kept, ...(hasBody && { body: new Uint8Array(body) }) }
    const answer = await options.access.request(target, init)
    const isSession = typeof (answer.body as Partial<TokenResponse> | undefined)?.ws_url === 'string'
    return json(answer.status, isSession ? ownSession(gate, answer.body as TokenResponse) : answer.body)
  } catch {
    return json(502, { success: false, error: { code: 'SERVICE_UNAVAILABLE', message: 'The service is away.' } })
  }
}

/** As the service gave it, but that the socket is the kit's. */
export function ownSession({ url, expiresIn }: Pick<Gate, 'url' | 'expiresIn'>, session: TokenResponse): TokenResponse {
  const ws_url = `${url.replace(/^http/, 'ws')}${new URL(session.ws_url).pathname}`
  const ends = expiresIn === undefined ? {} : { expires_at: new Date(Date.now() + expiresIn * 1_000).toISOString() }
  return { ...session, ws_url, ...ends }
}

const json = (status: number, body: unknown): PlainAnswer => ({
  status,
  contentType: 'application/json',
  text: JSON.stringify(body ?? {}),
})
