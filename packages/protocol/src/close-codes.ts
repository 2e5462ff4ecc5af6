/** WebSocket close codes [CLOSE]. 4000 to 4999 are ours, the others are RFC 6455 section 7.4.1. */
export const closeCodes = {
  1001: { name: 'GOING_AWAY', meaning: 'The other side goes away.', reconnect: true },
  1009: { name: 'MESSAGE_TOO_BIG', meaning: 'A message was over 64 KiB [WS6].', reconnect: true },
  1011: { name: 'INTERNAL', meaning: 'Something went wrong in the service.', reconnect: true },
  1012: {
    name: 'SERVICE_RESTART',
    meaning:
      'The node restarts or drains, or has more than its share of the sockets [BAL1]; the reason holds a jitter hint in milliseconds.',
    reconnect: true,
  },
  1013: { name: 'TRY_AGAIN_LATER', meaning: 'The service is overloaded, or this node drains.', reconnect: true },
  4008: {
    name: 'SLOW_CONSUMER',
    meaning: 'More than 1 MiB waited unsent, or too much on all slow sockets together [WS7].',
    reconnect: true,
  },
  4400: { name: 'MALFORMED', meaning: 'Ten malformed envelopes in a row [ENV1].', reconnect: false },
  4401: { name: 'TOKEN', meaning: 'The token is missing, invalid or expired: get a new one first.', reconnect: true },
  4403: {
    name: 'FORBIDDEN',
    meaning:
      'The origin of the web page is not allowed [WS8], a backend sent the participant away [SRV2], or its product key was disabled [KEY1].',
    reconnect: false,
  },
  4408: { name: 'NO_PONG', meaning: 'The client did not answer a ping in time [WS6].', reconnect: true },
  4409: {
    name: 'REPLACED',
    meaning:
      'A newer connection of the same session took over [RES1], or newer ones of the participant took its room [WS7].',
    reconnect: false,
  },
  4429: {
    name: 'LIMIT',
    meaning: 'Too many messages or pings, or no room for one more connection [WS7].',
    reconnect: true,
  },
} as const

export type CloseCode = keyof typeof closeCodes

/** Beside the table, so that a client does not carry its words; a test compares the two. */
const finalCodes = [1002, 1003, 1007, 1008, 4400, 4403, 4409]

/**
 * Whether a client should connect again after its socket closed with this code. After 4401 it needs a new token first.
 * Codes that Ringwire does not send (1006 above all: the connection just went away) say yes, but for the ones by which
 * an endpoint calls the client's own frames wrong.
 */
export function shouldReconnect(code: number): boolean {
  return !finalCodes.includes(code)
}
