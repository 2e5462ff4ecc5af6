// The relay of peers/bare-bun.ts: a message names its receiver, the server adds the sender.
import { candidate } from '../candidate.ts'
import { type Dialect, members, other, sameCandidate, upgradeHead } from './dialect.ts'

export const bareBun: Dialect = {
  credentials: async (_port, ids) => ids.map(() => ''),
  upgradeRequest: (port, id) => upgradeHead(port, `/?id=${id}`),
  ready: async () => {},
  join: async (pair) => {
    pair.callUuid = crypto.randomUUID()
  },
  candidateMessage: (pair, from) =>
    JSON.stringify({
      event: 'webrtc.ice_candidate',
      to: pair[other(from)].id,
      data: { call_uuid: pair.callUuid, candidate },
    }),
  wrongWith(text, pair, from) {
    const message = members(JSON.parse(text))
    if ((message.from ?? pair[from].id) !== pair[from].id || message.to !== pair[other(from)].id)
      return 'a message for somebody else'
    return sameCandidate(members(message.data).candidate, candidate)
  },
  harmless: () => false,
  leave: async () => {},
  heartbeat: null,
}
