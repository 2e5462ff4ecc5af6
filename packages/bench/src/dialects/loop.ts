// The relay of peers/loop.c: a message begins with the name of its receiver, in whose place the server puts the sender's.
import { candidate } from '../candidate.ts'
import { type Dialect, members, other, sameCandidate, upgradeHead } from './dialect.ts'

export const loop: Dialect = {
  credentials: async (_port, ids) => ids.map(() => ''),
  upgradeRequest: (port, id) => upgradeHead(port, `/?id=${id}`),
  ready: async () => {},
  join: async (pair) => {
    pair.callUuid = crypto.randomUUID()
  },
  candidateMessage: (pair, from) => pair[other(from)].id + JSON.stringify({ call_uuid: pair.callUuid, candidate }),
  wrongWith(text, pair, from) {
    const { id } = pair[from]
    if (!text.startsWith(id)) return 'a message for somebody else'
    const message = members(JSON.parse(text.slice(id.length)))
    if (message.call_uuid !== pair.callUuid) return 'a message for somebody else'
    return sameCandidate(message.candidate, candidate)
  },
  harmless: () => false,
  leave: async () => {},
  heartbeat: null,
}
