import { expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import type { ExtendedMessage } from '@ringwire/testkit/extended-trace'
import { acceptedCall, candidate, someone } from '@ringwire/testkit/flows'
import { soon } from '@ringwire/testkit/patience'
import { earlyMs } from '../support/clocks.ts'
import { answeredCall, connectedCall, type ExtendedPair, ringingCall } from '../support/extended-flows.ts'
import { inviteOf } from '../support/sessions.ts'
import { hangUp, historyOf, numbersTo, pairOn, stopAll } from './people.ts'
import { becomesReady, toldOf, worldFor } from './world.ts'

const world = worldFor()

const aboutCall =
  (callUuid: string) =>
  ({ data }: { data: { call_uuid?: string } }) =>
    data?.call_uuid === callUuid

/** A request that takes effect, and whose reply its client never reads. */
interface Unheard {
  readonly client: ExtendedClient
  readonly reply: Promise<ExtendedMessage>
}

/** Its reply stays in the socket that is about to die. */
function unheard(client: ExtendedClient, event: string, data: object): Unheard {
  client.pause()
  return { client, reply: client.request(event, data) }
}

/** Everybody of the node that is gone comes back to another one, as the session that it was. */
async function comeBack(clients: readonly ExtendedClient[], url: string): Promise<void> {
  await Promise.all(
    clients.map(async (client) => {
      const session = client.point?.session_id
      client.url = url
      const hello = await client.connect()
      expect(hello.data).toMatchObject({ recovered: true, session_id: session })
    }),
  )
}

test('[RES1] [RES3] [EXT4] a node is killed during calls in every state: all come back on the other one, and what was asked takes effect once', async () => {
  const { one, two } = world()
  const stay = (pair: ExtendedPair) => [pair.caller, pair.callee]
  // Callers on the node that dies, callees on both.
  const [inviting, ringing, accepting, accepted, connected, ending, asked] = await Promise.all([
    pairOn(one, two),
    pairOn(one, one),
    pairOn(two, one),
    pairOn(one, two),
    pairOn(one, one),
    pairOn(one, two),
    pairOn(one, two),
  ])
  const invited = crypto.randomUUID()
  const rings = await ringingCall(ringing)
  const toAccept = await ringingCall(accepting)
  const answered = await answeredCall(accepted)
  const talking = await connectedCall(connected)
  const toEnd = await connectedCall(ending)
  const relaying = await connectedCall(asked)
  for (const [pair, call] of [
    [connected, talking],
    [asked, relaying],
  ] as const) {
    for (const client of stay(pair)) await client.request('webrtc.ice_candidate', candidate(call, 0))
  }

  // Taken and handed on, and nobody knows that they were.
  const taken: Unheard[] = [
    unheard(inviting.caller, 'call.invite', inviteOf(inviting.calleeId, { call_uuid: invited })),
    unheard(accepting.callee, 'call.accept', { call_uuid: toAccept }),
    unheard(ending.caller, 'call.end', { call_uuid: toEnd }),
    unheard(asked.caller, 'webrtc.ice_candidate', candidate(relaying, 1)),
  ]
  await inviting.callee.next('call.ringing', aboutCall(invited))
  await accepting.caller.next('call.accepted', aboutCall(toAccept))
  await ending.callee.next('call.ended', aboutCall(toEnd))
  await asked.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':1'))
  // Sent, and never read by anybody.
  one.signal('SIGSTOP')
  const unread = [
    accepted.caller.request('call.connected', { call_uuid: answered }),
    connected.caller.request('webrtc.ice_candidate', candidate(talking, 1)),
    ringing.callee.request('call.accept', { call_uuid: rings }),
  ]
  const ofOne = [
    inviting.caller,
    ...stay(ringing),
    accepting.callee,
    accepted.caller,
    ...stay(connected),
    ending.caller,
    asked.caller,
  ]
  // Their clients let go first, so that no reply is read from a dead node's socket.
  await Promise.all(ofOne.map((client) => client.die()))
  await one.kill()
  const killedAt = performance.now()
  await comeBack(ofOne, two.url)
  expect(performance.now() - killedAt).toBeLessThan(soon(8_000))

  const replies = await Promise.all([...taken.map(({ reply }) => reply), ...unread])
  expect(replies.map(({ event, error }) => error?.code ?? event)).toEqual([
    'call.invited',
    'call.ack',
    'call.ack',
    'call.ack',
    'call.ack',
    'call.ack',
    'call.ack',
  ])
  await accepted.callee.next('call.status', aboutCall(answered))
  await connected.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':1'))
  await ringing.caller.next('call.accepted', aboutCall(rings))
  for (const [pair, call] of [
    [ringing, rings],
    [accepting, toAccept],
    [accepted, answered],
    [connected, talking],
    [asked, relaying],
  ] as const) {
    await hangUp(two, pair, call)
  }
  await inviting.callee.request('call.reject', { call_uuid: invited })
  await inviting.caller.next('call.rejected', aboutCall(invited))
  expect(await historyOf(two, ending, toEnd)).toMatchObject({ status: 'ended', end_reason: 'hangup' })
  for (const [client, event, call] of [
    [inviting.callee, 'call.ringing', invited],
    [ringing.caller, 'call.accepted', rings],
    [accepting.caller, 'call.accepted', toAccept],
    [accepted.callee, 'call.status', answered],
    [ending.callee, 'call.ended', toEnd],
  ] as const) {
    expect([event, toldOf(client, event, call)]).toEqual([event, 1])
  }
  expect(numbersTo(asked.callee, relaying)).toEqual([0, 1])
  expect(numbersTo(connected.callee, talking)).toEqual([0, 1])
  await one.start()
  await becomesReady(one)
  stopAll(inviting, ringing, accepting, accepted, connected, ending, asked)
}, 240_000)

test('[PLACE2] [RES3] base clients come back on the other node with the device that they had, and can hang up', async () => {
  const { one, two } = world()
  const wishes = [
    { user_id: someone('caller'), role: 'customer', device_id: 'desk' },
    { user_id: someone('callee'), role: 'agent', device_id: 'phone' },
  ] as const
  const [caller, callee] = await Promise.all([one.connect(wishes[0]), one.connect(wishes[1])])
  const call = await acceptedCall({ caller, callee, calleeId: wishes[1].user_id })
  await one.kill()
  const [back, peer] = await Promise.all([two.connect(wishes[0]), two.connect(wishes[1])])
  back.send('webrtc.ice_candidate', candidate(call, 1))
  await peer.next('webrtc.ice_candidate')
  peer.send('call.end', { call_uuid: call })
  expect((await back.next('call.ended')).data).toMatchObject({ call_uuid: call, reason: 'hangup' })
  await one.start()
  await becomesReady(one)
}, 240_000)

test('[RING1] ring timers of a node that is killed fire on the other one within 1 s of their time', async () => {
  const { one, two } = world()
  // Over before, while and after the others know that the node is dead.
  const rings = [1_500, 4_000, 7_000]
  const calls = await Promise.all(
    rings.map(async (ring_timeout_ms) => {
      const pair = await pairOn(one, two)
      const call = await ringingCall(pair, { ring_timeout_ms })
      const ringing = pair.callee.all.find(({ event }) => event === 'call.ringing')
      // Heard from now on: the shortest one may be over before all of them ring.
      const missedAt = pair.callee.next('call.missed', aboutCall(call)).then(() => Date.now())
      return { pair, call, missedAt, expiresAt: Date.parse(ringing?.data.expires_at) }
    }),
  )
  await one.kill()
  await Promise.all(
    calls.map(async ({ pair, call, missedAt, expiresAt }) => {
      expect((await missedAt) - expiresAt).toBeWithin(-earlyMs, soon(1_000))
      expect(await historyOf(two, pair, call)).toMatchObject({ status: 'missed', end_reason: 'no_answer' })
      expect(toldOf(pair.callee, 'call.missed', call)).toBe(1)
    }),
  )
  await one.start()
  await becomesReady(one)
  stopAll(...calls.map(({ pair }) => pair))
}, 240_000)
