/** The WebSocket subprotocol that carries a session token: the list `jwt, <token>` [WS1]. */
export const subprotocol = 'jwt'

export const webSocketPath = '/v1/ws'

export interface Subprotocols {
  readonly offered: boolean
  readonly token?: string
}

/**
 * Reads `Sec-WebSocket-Protocol`. Either order is accepted; the entry that is not the literal `jwt` is the token.
 * `offered` says whether `jwt` was there at all; a token is only looked for where it was.
 */
export function readSubprotocols(header: string | null | undefined): Subprotocols {
  if (!header) return { offered: false }
  const entries = header.split(',').map((entry) => entry.trim())
  if (!entries.includes(subprotocol)) return { offered: false }
  const token = entries.find((entry) => entry !== subprotocol && entry !== '')
  return token === undefined ? { offered: true } : { offered: true, token }
}
