import { expect, test } from 'bun:test'
import { acceptedCall, candidate, someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { candidatesOf, connectedCall } from '../support/extended-flows.ts'
import { received } from '../support/sessions.ts'
import { pairOn, stopAll } from './people.ts'
import { worldFor } from './world.ts'

const world = worldFor()

/** Longer than until a node counts as silent, and shorter than until it counts as dead. In ms. */
const stallMs = 3_500

test('[PLACE2] [PLACE4] a node that stands still loses only the place of a client that came back elsewhere', async () => {
  const { one, two } = world()
  const wishes = [
    { user_id: someone('caller'), role: 'customer', device_id: 'desk' },
    { user_id: someone('callee'), role: 'agent', device_id: 'phone' },
  ] as const
  const [leaves, peer] = [await one.connect(wishes[0]), await two.connect(wishes[1])]
  const call = await acceptedCall({ caller: leaves, callee: peer, calleeId: wishes[1].user_id })
  // A machine that stands still for longer makes its clients come back, and they go on.
  const stays = await pairOn(one, two, true)
  const stayed = await connectedCall(stays)
  const session = stays.caller.point?.session_id
  const numbers = Array.from({ length: 20 }, (_, i) => i)

  process.kill(one.pid, 'SIGSTOP')
  const since = performance.now()
  const back = await two.connect(wishes[0])
  const asked = numbers.map(async (n) => {
    await Bun.sleep((n * stallMs) / numbers.length)
    peer.send('webrtc.ice_candidate', candidate(call, n))
    const { event } = await stays.callee.request('webrtc.ice_candidate', candidate(stayed, n))
    return event === 'call.ack' ? [n] : []
  })
  await Bun.sleep(stallMs - (performance.now() - since))
  process.kill(one.pid, 'SIGCONT')

  // Nobody hears anything twice, or misses an acknowledged message.
  const acknowledged = (await Promise.all(asked)).flat()
  const heard = () => candidatesOf(stays.caller, stayed)
  await until('all came', () => acknowledged.every((n) => heard().includes(n)), 30_000)
  expect(new Set(heard()).size).toBe(heard().length)
  expect(stays.caller.point?.session_id).toBe(session)
  peer.send('call.end', { call_uuid: call })
  await back.next('call.ended')
  const came = received(back).filter(({ event }) => event === 'webrtc.ice_candidate')
  const refused = received(peer).filter(({ event }) => event === 'call.error')
  // A relay that was refused may still have come.
  expect(came.length).toBeWithin(numbers.length - refused.length, numbers.length + 1)
  await stays.caller.request('call.end', { call_uuid: stayed })
  await stays.callee.next('call.ended')
  stopAll(stays)
}, 240_000)
