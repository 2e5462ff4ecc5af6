import { errorBody } from '@ringwire/protocol/errors'
import { readSubprotocols, subprotocol, webSocketPath } from '@ringwire/protocol/subprotocol'
import type { Server } from 'bun'
import type { MaybePromise } from '../ports/maybe.ts'
import { type Admission, createAdmission, refusal } from './admission.ts'
import type { GatewayOptions } from './gateway-options.ts'
import { createTarpit } from './tarpit.ts'

/**
 * Answers GET /v1/ws; returns undefined if the socket was upgraded. Nothing is awaited before an upgrade. The client's
 * address is only looked up if the upgrade is refused.
 */
export type Upgrade = (
  request: Request,
  query: string,
  server: Server<unknown>,
  clientAddress: () => string | undefined,
) => MaybePromise<Response> | undefined

type UpgradesOptions = Pick<
  GatewayOptions,
  'config' | 'tokens' | 'localLimits' | 'state' | 'roomForNewcomer' | 'journal'
>

/** Milliseconds that a client waits for its answer if it is refused too often, and how many clients wait at most. */
const tarpitMs = 1_000
const maxInTarpit = 1_000

/** Which requests become sockets: the node has to be ready, it needs a free descriptor, and the client has to be admitted. */
export function createUpgrades(options: UpgradesOptions): Upgrade {
  const { config, state, roomForNewcomer, journal } = options
  const admission = createAdmission({ ...options, allowedOrigins: config.allowedOrigins })
  const tarpit = createTarpit({ holdMs: tarpitMs, most: maxInTarpit })

  return (request, query, server, clientAddress) => {
    const subprotocols = readSubprotocols(request.headers.get('sec-websocket-protocol'))
    if (state() !== 'ready') return turnAway(request, server, subprotocols.offered, draining)
    const room = roomForNewcomer()
    if (room !== 'free') {
      journal.full()
      // A browser's socket holds its descriptor until the browser has closed it.
      return room === 'low' ? turnAway(request, server, subprotocols.offered, full) : refusal(full.code, full.message)
    }
    const admitted = admission.admit(request.headers, query, subprotocols, clientAddress)
    if (admitted.kind === 'turned away') {
      const { answer, isLate } = admitted
      journal.answered({ method: 'GET', path: webSocketPath, client: clientAddress }, answer, 0)
      return isLate ? tarpit.hold(answer, request.signal) : answer
    }
    if (admitted.kind === 'refused') journal.turnedAway(admitted.code, admitted.reason, clientAddress)
    if (server.upgrade(request, { data: admitted, headers: selecting(subprotocols.offered) })) return undefined
    return refusal('UPGRADE_REQUIRED')
  }
}

/** Why the node lets nobody in. */
interface Shut {
  readonly code: 'SERVICE_DRAINING' | 'SERVICE_UNAVAILABLE'
  readonly reason: string
  readonly message?: string
}

const draining: Shut = { code: 'SERVICE_DRAINING', reason: 'draining, try again' }
const full: Shut = {
  code: 'SERVICE_UNAVAILABLE',
  reason: 'no room, try again',
  message: 'The service has no file descriptor left for another connection. Try again later.',
}

/** A browser, which sends its Origin, would show a refused upgrade as 1006: it is let in to hear when to come back. */
function turnAway(request: Request, server: Server<unknown>, offered: boolean, shut: Shut): Response | undefined {
  const { code, reason, message } = shut
  const error = errorBody(code, message === undefined ? {} : { message })
  const data: Admission = { kind: 'refused', code: 1013, reason, error }
  const isBrowser = request.headers.has('origin')
  if (isBrowser && server.upgrade(request, { data, headers: selecting(offered) })) return undefined
  return refusal(code, message)
}

/**
 * Header of an upgrade: if the client offered the subprotocol, the answer selects it [WS1]. Without any such header the
 * runtime selects the first one that was offered, which may be a token (oven-sh/bun#18243); an empty one selects none.
 */
const selecting = (isOffered: boolean) => (isOffered ? selectingIt : selectingNone)
const selectingIt = new Headers({ 'Sec-WebSocket-Protocol': subprotocol })
const selectingNone = new Headers({ 'Sec-WebSocket-Protocol': '' })
