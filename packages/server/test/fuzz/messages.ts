import { encodeFrame, opcodes } from '@ringwire/testkit/frames'
import type { Findings } from './findings.ts'
import { FuzzSocket } from './fuzz-socket.ts'
import { mutateBytes, mutateJson, respell } from './mutations.ts'
import type { Random } from './random.ts'

/** Two people on sockets of their own, and how to let each in again. */
export interface FuzzPair {
  readonly url: string
  readonly callerToken: string
  readonly calleeToken: string
  readonly calleeId: string
  /** Both are extended clients, or claim to be. */
  readonly extended: boolean
}

/** Envelopes between two checks that the sockets are still there. */
const roundSize = 40
/** Rounds of one call. */
const roundsOfCall = 6

/** Relays come often, and what ends a call seldom, so that most of it meets a live one. */
function anyEnvelope(
  callUuid: string,
  { calleeId, callerToken, calleeToken, extended }: FuzzPair,
  random: Random,
): object {
  const sdp = (type: string) => ({ call_uuid: callUuid, sdp: { type, sdp: 'v=0\r\n'.repeat(1 + random.int(200)) } })
  const relays = [
    { event: 'webrtc.offer', request_id: 'r', data: sdp('offer') },
    { event: 'webrtc.answer', request_id: 'r', data: sdp('answer') },
    {
      event: 'webrtc.ice_candidate',
      request_id: 'r',
      data: { call_uuid: callUuid, candidate: { candidate: 'candidate:1', sdpMid: '0', sdpMLineIndex: 0 } },
    },
    { event: 'call.connected', request_id: 'r', data: { call_uuid: callUuid } },
  ]
  const verbs = [
    { event: 'call.invite', request_id: 'r', data: { callee_user_id: calleeId, callee_role: 'agent' } },
    {
      event: 'call.invite',
      request_id: 'r',
      data: {
        callee_user_id: calleeId,
        callee_role: 'agent',
        context_type: 'order',
        context_id: '1',
        call_type: 'video',
        call_uuid: callUuid,
        ring_timeout_ms: 500,
        metadata: { a: [1, { b: 'c' }] },
      },
    },
    { event: 'call.accept', request_id: 'r', data: { call_uuid: callUuid } },
    { event: 'call.reject', request_id: 'r', data: { call_uuid: callUuid, reason: 'busy' } },
    { event: 'call.cancel', request_id: 'r', data: { call_uuid: callUuid } },
    { event: 'call.alerting', request_id: 'r', data: { call_uuid: callUuid } },
    { event: 'call.transfer', request_id: 'r', data: { call_uuid: callUuid, to_role: 'agent', to_user_id: 'eva' } },
    { event: 'call.media', request_id: 'r', data: { call_uuid: callUuid, audio: true, video: false, screen: true } },
    { event: 'presence.watch', request_id: 'r', data: { participants: [{ role: 'agent', user_id: calleeId }] } },
    { event: 'auth.refresh', request_id: 'r', data: { token: random.pick([callerToken, calleeToken]) } },
  ]
  const envelope = random.pick<object>(random.chance(0.9) ? relays : verbs)
  // Numbers that go on, stand still, go back and jump.
  return extended && random.chance(0.5)
    ? { ...envelope, n: random.pick([1, 2, random.int(1_000), 2 ** 53 - 1]) }
    : envelope
}

/** One frame with an envelope that is right, or changed as a value, as a text or as bytes. */
function messageFrame(random: Random, envelope: object): { frame: Buffer; input: Uint8Array } {
  let value: unknown = envelope
  if (random.chance(0.6)) for (let i = 1 + random.int(2); i > 0; i--) value = mutateJson(random, value)
  const written = JSON.stringify(value) ?? ''
  const text = Buffer.from(random.chance(0.3) ? respell(random, written) : written)
  const isText = random.chance(0.7)
  // A text frame that is no UTF-8 ends the connection: bytes are changed in binary frames, and rarely in texts.
  const payload = random.chance(isText ? 0.02 : 0.6) ? mutateBytes(random, text) : text
  return { frame: encodeFrame(isText ? opcodes.text : opcodes.binary, payload), input: payload }
}

/** Calls between two people who also say a lot that makes no sense, on both sides. */
export async function fuzzMessages(pair: FuzzPair, random: Random, count: number, findings: Findings): Promise<void> {
  let caller: FuzzSocket | undefined
  let callee: FuzzSocket | undefined
  const sessions: Session[] = []
  const query = () => (pair.extended ? anyQuery(random, sessions) : '')
  for (let left = count; left > 0; ) {
    caller = await opened(caller, pair.url, pair.callerToken, findings, query())
    callee = await opened(callee, pair.url, pair.calleeToken, findings, query())
    for (const { session } of [caller, callee]) if (session !== undefined) sessions.push(session)
    if (pair.extended && random.chance(0.3)) random.pick([caller, callee]).destroy()
    const callUuid = await beginCall(caller, callee, pair.calleeId)
    for (let round = 0; round < roundsOfCall && left > 0 && !caller.isClosed && !callee.isClosed; round++) {
      for (let i = 0; i < roundSize; i++, left--) {
        const socket = random.chance(0.5) ? caller : callee
        const { frame, input } = messageFrame(random, anyEnvelope(callUuid, pair, random))
        findings.sent++
        socket.input = input
        socket.frame(frame)
      }
      await Promise.all([caller.barrier(), callee.barrier()])
    }
    for (const socket of [caller, callee]) {
      socket.frame(encodeFrame(opcodes.text, JSON.stringify({ event: 'call.end', data: { call_uuid: callUuid } })))
    }
    await Promise.all([caller.barrier(), callee.barrier()])
  }
  caller?.destroy()
  callee?.destroy()
}

type Session = NonNullable<FuzzSocket['session']>

/** Resumes of sessions that were there, of others' and of none, from anywhere [RES1, RES2]. */
function anyQuery(random: Random, sessions: readonly Session[]): string {
  const { session_id, epoch } = sessions.length > 0 ? random.pick(sessions) : { session_id: '', epoch: '' }
  const numbers = ['0', '1', '5', '-1', '1e9', '', 'x', '99999999999999999999', String(random.int(600))]
  const resume = new URLSearchParams({
    resume: random.pick([session_id, session_id, session_id, 'x'.repeat(500), '\0', '{"a":1}']),
    epoch: random.pick([epoch, epoch, epoch, 'old', '*']),
    seq: random.pick(numbers),
    n: random.pick(numbers),
  })
  return random.pick([
    '?ext=1',
    `?ext=1&${resume}`,
    `?ext=1&${resume}`,
    `?ext=1&${resume}&${resume}`,
    '?ext=2&ext=1',
    '?ext',
  ])
}

async function opened(socket: FuzzSocket | undefined, url: string, token: string, findings: Findings, query: string) {
  if (socket !== undefined && !socket.isClosed) return socket
  const fresh = new FuzzSocket(url, token, findings, { query })
  await fresh.opened
  return fresh
}

/** A call that was accepted, where both are still there: a new one, or one that still rang between the two. */
async function beginCall(caller: FuzzSocket, callee: FuzzSocket, calleeId: string): Promise<string> {
  const data = { callee_user_id: calleeId, callee_role: 'agent' }
  const invited = caller.next('call.invited')
  caller.frame(encodeFrame(opcodes.text, JSON.stringify({ event: 'call.invite', request_id: 'invite', data })))
  const callUuid = (await Promise.race([invited, caller.barrier()]))?.call_uuid ?? crypto.randomUUID()
  callee.frame(encodeFrame(opcodes.text, JSON.stringify({ event: 'call.accept', data: { call_uuid: callUuid } })))
  await callee.barrier()
  return callUuid
}
