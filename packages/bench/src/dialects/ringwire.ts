// A base client of Ringwire: nothing but the interface, no extended mode.
import { candidate, type Side } from '../candidate.ts'
import { mintTokens } from '../tokens.ts'
import { type Client, type Dialect, members, other, type Pair, sameCandidate, upgradeHead } from './dialect.ts'

/** The next message of that event; `call.invited` (INV2) and the like may come before it. */
export async function nextEvent(client: Client, event: string): Promise<Record<string, unknown>> {
  for (;;) {
    const text = await client.socket.next()
    const message = members(JSON.parse(text))
    if (message.event === event) return message
    if (message.event === 'call.error') throw new Error(`Waiting for ${event}: ${text}`)
  }
}

/** Rings and answers: the callee has accepted when this resolves, and candidates may flow both ways. */
async function callAndAccept(pair: Pair): Promise<void> {
  pair.caller.socket.send(
    JSON.stringify({ event: 'call.invite', data: { callee_user_id: pair.callee.id, callee_role: 'callee' } }),
  )
  const ringing = members((await nextEvent(pair.callee, 'call.ringing')).data)
  if (typeof ringing.call_uuid !== 'string') throw new Error('call.ringing without a call_uuid')
  pair.callUuid = ringing.call_uuid
  pair.callee.socket.send(JSON.stringify({ event: 'call.accept', data: { call_uuid: pair.callUuid } }))
  await nextEvent(pair.caller, 'call.accepted')
}

export const ringwire: Dialect = {
  credentials: (port, ids) => mintTokens(port, ids),
  upgradeRequest: (port, _id, token) => upgradeHead(port, '/v1/ws', [`Sec-WebSocket-Protocol: jwt, ${token}`]),
  async ready(client) {
    await nextEvent(client, 'auth.ok')
  },
  join: callAndAccept,
  candidateMessage: (pair, _from: Side) =>
    JSON.stringify({ event: 'webrtc.ice_candidate', data: { call_uuid: pair.callUuid, candidate } }),
  wrongWith(text, pair, from) {
    const message = members(JSON.parse(text))
    const data = members(message.data)
    if (message.event !== 'webrtc.ice_candidate') return `a ${String(message.event)}`
    if (data.call_uuid !== pair.callUuid || data.from_user_id !== pair[from].id) return 'a message for somebody else'
    return sameCandidate(data.candidate, candidate)
  },
  harmless: () => false,
  async leave(pair) {
    pair.caller.socket.send(JSON.stringify({ event: 'call.end', data: { call_uuid: pair.callUuid } }))
    await nextEvent(pair[other('caller')], 'call.ended')
  },
  heartbeat: null,
}
