// PeerServer's WebSocket protocol, as the peerjs client speaks it.
import { candidate } from '../candidate.ts'
import { type Dialect, members, other, sameCandidate, upgradeHead } from './dialect.ts'

export const peerServer: Dialect = {
  credentials: async (_port, ids) => ids.map((_, i) => `token${String(i).padStart(7, '0')}`),
  upgradeRequest: (port, id, token) => upgradeHead(port, `/peerjs?key=peerjs&id=${id}&token=${token}&version=1.5.5`),
  async ready(client) {
    const text = await client.socket.next()
    if (members(JSON.parse(text)).type !== 'OPEN') throw new Error(`PeerServer did not open: ${text}`)
  },
  join: async (pair) => {
    pair.callUuid = crypto.randomUUID()
  },
  candidateMessage: (pair, from) =>
    JSON.stringify({
      type: 'CANDIDATE',
      payload: { candidate, type: 'media', connectionId: `mc_${pair.callUuid}` },
      dst: pair[other(from)].id,
    }),
  wrongWith(text, pair, from) {
    const message = members(JSON.parse(text))
    if (message.type !== 'CANDIDATE') return `a ${String(message.type)}`
    if (message.src !== pair[from].id || message.dst !== pair[other(from)].id) return 'a message for somebody else'
    return sameCandidate(members(message.payload).candidate, candidate)
  },
  harmless: () => false,
  leave: async () => {},
  heartbeat: JSON.stringify({ type: 'HEARTBEAT' }),
}
