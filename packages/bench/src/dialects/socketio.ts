// Engine.IO 4 and Socket.IO 5 packets by hand: `0` open, `2` ping, `3` pong, `40` connect, `42` event.
import { candidate } from '../candidate.ts'
import { type Dialect, members, other, sameCandidate, upgradeHead } from './dialect.ts'

const EVENT = 'webrtc.ice_candidate'

export const socketIo: Dialect = {
  credentials: async (_port, ids) => ids.map(() => ''),
  upgradeRequest: (port) => upgradeHead(port, '/socket.io/?EIO=4&transport=websocket'),
  async ready(client) {
    const open = await client.socket.next()
    if (!open.startsWith('0{')) throw new Error(`Engine.IO did not open: ${open}`)
    client.socket.send(`40${JSON.stringify({ id: client.id })}`)
    const connected = await client.socket.next()
    if (!connected.startsWith('40{')) throw new Error(`Socket.IO did not connect: ${connected}`)
  },
  join: async (pair) => {
    pair.callUuid = crypto.randomUUID()
  },
  candidateMessage: (pair, from) =>
    `42${JSON.stringify([EVENT, { to: pair[other(from)].id, call_uuid: pair.callUuid, candidate }])}`,
  wrongWith(text, pair, from) {
    if (!text.startsWith('42')) return `the packet ${text.slice(0, 2)}`
    const [event, data] = JSON.parse(text.slice(2)) as unknown[]
    if (event !== EVENT || members(data).from !== pair[from].id) return 'a message for somebody else'
    return sameCandidate(members(data).candidate, candidate)
  },
  harmless(text, client) {
    if (text !== '2') return false
    client.socket.send('3')
    return true
  },
  leave: async () => {},
  heartbeat: null,
}
