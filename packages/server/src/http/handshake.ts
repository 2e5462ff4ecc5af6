/** The opening handshake of a WebSocket, RFC 6455 section 4.2.1 [WS1]. */
import { failure } from './replies.ts'

/** `none`: the request does not ask for a WebSocket. */
export type Handshake = 'none' | 'wrong version' | 'wrong key' | 'good'

/** 16 bytes in base64. */
const keyPattern = /^[A-Za-z0-9+/]{21}[AQgw]==$/
const version = '13'

/**
 * The runtime does not say which version of HTTP a request has (oven-sh/bun#17250). It refuses a request of HTTP/1.1
 * without a Host header itself, so one that has none is HTTP/1.0, which knows no upgrades.
 */
export function handshakeOf({ method, headers }: Request): Handshake {
  const isAsked =
    headers.get('upgrade')?.toLowerCase() === 'websocket' && hasToken(headers.get('connection'), 'upgrade')
  if (method !== 'GET' || !isAsked || !headers.has('host')) return 'none'
  if (headers.get('sec-websocket-version') !== version) return 'wrong version'
  return keyPattern.test(headers.get('sec-websocket-key') ?? '') ? 'good' : 'wrong key'
}

function hasToken(list: string | null, token: string): boolean {
  if (list?.toLowerCase() === token) return true
  return list?.split(',').some((each) => each.trim().toLowerCase() === token) ?? false
}

const upgrade = { Upgrade: 'websocket', Connection: 'Upgrade' }

/** Answers a request for the path of the WebSocket that cannot become one. */
export function refuseHandshake(request: Request): Response {
  const handshake = handshakeOf(request)
  if (handshake === 'wrong key') return failure('INVALID_UPGRADE', { headers: { Connection: 'close' } })
  if (handshake !== 'wrong version') return failure('UPGRADE_REQUIRED', { headers: upgrade })
  const message = `This path speaks version ${version} of the WebSocket protocol. Send "Sec-WebSocket-Version: ${version}".`
  return failure('UPGRADE_REQUIRED', { message, headers: { ...upgrade, 'Sec-WebSocket-Version': version } })
}
