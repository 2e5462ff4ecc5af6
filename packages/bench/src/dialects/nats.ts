// The NATS client protocol over WebSocket. Each client subscribes to its own name; the reply subject names the sender.
import { candidate } from '../candidate.ts'
import { type Dialect, members, other, sameCandidate, upgradeHead } from './dialect.ts'

const CRLF = '\r\n'
const CR = 0x0d
const SUBSCRIPTION = '1'

/** The server writes all that waits for a client as one frame: `MSG` with its payload, and lines like `PING`. */
export function splitNats(frame: Uint8Array): Uint8Array[] {
  const messages: Uint8Array[] = []
  for (let at = 0; at < frame.length; ) {
    const lineEnd = frame.indexOf(CR, at)
    if (lineEnd < 0) throw new Error('A line of NATS without its end')
    const line = Buffer.from(frame.subarray(at, lineEnd)).toString('latin1')
    const payloadBytes = /^MSG .* (\d+)$/.exec(line)?.[1]
    const end = lineEnd + CRLF.length + (payloadBytes === undefined ? 0 : Number(payloadBytes) + CRLF.length)
    messages.push(frame.subarray(at, end))
    at = end
  }
  return messages
}

export const nats: Dialect = {
  framing: { binary: true, split: splitNats },
  credentials: async (_port, ids) => ids.map(() => ''),
  upgradeRequest: (port) => upgradeHead(port, '/'),
  async ready({ id, socket }) {
    const info = await socket.next()
    if (!info.startsWith('INFO ')) throw new Error(`NATS did not begin with INFO: ${info.slice(0, 100)}`)
    const settings = JSON.stringify({ verbose: false, pedantic: false, lang: 'bench', version: '1' })
    socket.send([`CONNECT ${settings}`, `SUB ${id} ${SUBSCRIPTION}`, 'PING', ''].join(CRLF))
    const pong = await socket.next()
    if (pong !== `PONG${CRLF}`) throw new Error(`NATS did not subscribe: ${pong.trim()}`)
  },
  join: async (pair) => {
    pair.callUuid = crypto.randomUUID()
  },
  candidateMessage(pair, from) {
    const payload = JSON.stringify({ call_uuid: pair.callUuid, candidate })
    return `PUB ${pair[other(from)].id} ${pair[from].id} ${payload.length}${CRLF}${payload}${CRLF}`
  },
  wrongWith(text, pair, from) {
    const [head = '', payload = ''] = text.split(CRLF)
    const [verb, subject, , reply] = head.split(' ')
    if (verb !== 'MSG') return `a ${verb}`
    if (subject !== pair[other(from)].id || reply !== pair[from].id) return 'a message for somebody else'
    return sameCandidate(members(JSON.parse(payload)).candidate, candidate)
  },
  harmless(text, { socket }) {
    if (text !== `PING${CRLF}`) return false
    socket.send(`PONG${CRLF}`)
    return true
  },
  leave: async () => {},
  heartbeat: null,
}
