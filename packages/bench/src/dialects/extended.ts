// An extended client of Ringwire: requests numbered by `n`, pushes by `seq` [EXT1, EXT4].
import { candidate, type Side } from '../candidate.ts'
import { mintTokens } from '../tokens.ts'
import { type Client, type Dialect, members, other, type Pair, sameCandidate, upgradeHead } from './dialect.ts'
import { nextEvent } from './ringwire.ts'

/** The number of the first candidate: either side has sent one message before it. */
const FIRST = 2

async function callAndAccept(pair: Pair): Promise<void> {
  const { caller, callee } = pair
  ask(caller, 1, 'call.invite', { callee_user_id: callee.id, callee_role: 'callee' })
  const ringing = members((await nextEvent(callee, 'call.ringing')).data)
  if (typeof ringing.call_uuid !== 'string') throw new Error('call.ringing without a call_uuid')
  pair.callUuid = ringing.call_uuid
  ask(callee, 1, 'call.accept', { call_uuid: pair.callUuid })
  await nextEvent(caller, 'call.accepted')
}

function ask({ socket }: Client, n: number, event: string, data: object): void {
  socket.send(JSON.stringify({ event, n, data }))
}

/** The query after `?ext=1` resumes a session [RES1]. */
export function extendedUpgrade(port: number, token: string, resume = ''): string {
  return upgradeHead(port, `/v1/ws?ext=1${resume}`, [`Sec-WebSocket-Protocol: jwt, ${token}`])
}

function dialect(requestId: string | undefined): Dialect {
  return {
    credentials: (port, ids) => mintTokens(port, ids),
    upgradeRequest: (port, _id, token) => extendedUpgrade(port, token),
    async ready(client) {
      await nextEvent(client, 'auth.ok')
    },
    join: callAndAccept,
    candidateMessage: (pair, _from: Side) => {
      const data = { call_uuid: pair.callUuid, candidate }
      return JSON.stringify({ event: 'webrtc.ice_candidate', request_id: requestId, n: FIRST, data })
    },
    wrongWith(text, pair, from) {
      const message = members(JSON.parse(text))
      const data = members(message.data)
      if (message.event !== 'webrtc.ice_candidate') return `a ${String(message.event)}`
      if (data.call_uuid !== pair.callUuid || data.from_user_id !== pair[from].id) return 'a message for somebody else'
      return sameCandidate(data.candidate, candidate)
    },
    harmless: (text) => text.startsWith('{"event":"call.ack"'),
    async leave(pair) {
      // Without a number it has no place in the order [EXT4].
      pair.caller.socket.send(JSON.stringify({ event: 'call.end', data: { call_uuid: pair.callUuid } }))
      await nextEvent(pair[other('caller')], 'call.ended')
    },
    heartbeat: null,
    numbered: {
      first: FIRST,
      sentAfter: '"n":',
      receivedAfter: ',"seq":',
      reply: requestId === undefined ? null : '{"event":"call.ack"',
    },
  }
}

export const extended = dialect(undefined)
/** With a `request_id` every relay is answered by `call.ack` [EXT2, EXT3]. */
export const acknowledged = dialect('r')
