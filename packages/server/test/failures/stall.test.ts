import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Client } from '@ringwire/testkit/client'
import { acceptedCall, candidate, invite, someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { finish } from '../scenarios/calls/composition.ts'
import { answeredCall, connectExtended } from '../support/extended-flows.ts'
import { inviteOf, received, request } from '../support/sessions.ts'
import { worldFor } from './world.ts'

/** A process that stands still, as in a paused machine: what was sent to it meanwhile is read late. */
const world = worldFor()
let alone: Service
beforeAll(async () => {
  alone = await new Service({ RINGWIRE_WS_RATE: 'off' }).start()
})
afterAll(() => finish(alone))

/** After so long a process counts as one that stood still, in ms. */
const stallMs = 3_000

/** The node stands still while its clients do something: one test at a time, or one would let it go on for the other. */
async function standStill(node: Service, meanwhile: () => Promise<void>): Promise<void> {
  process.kill(node.pid, 'SIGSTOP')
  const since = performance.now()
  try {
    await meanwhile()
    await Bun.sleep(stallMs + 200 - (performance.now() - since))
  } finally {
    process.kill(node.pid, 'SIGCONT')
  }
}

interface Person {
  readonly id: string
  readonly connect: (at: Service) => Promise<Client>
}

function person(name: string, role: 'customer' | 'agent'): Person {
  const id = someone(name)
  return { id, connect: (at) => at.connect({ user_id: id, role }) }
}

const events = (client: Client) => received(client).map(({ event }) => event)

/** Everything that was sent to the node before has been read and decided. */
async function caughtUp(node: Service): Promise<void> {
  const client = await node.connect({ user_id: someone('witness'), role: 'customer' })
  // An invite is committed after what was read before it.
  const callUuid = await invite(client, someone('nobody'))
  await request(client, 'call.cancel', { call_uuid: callUuid })
  await client.close()
}

/** Two nodes, of which one stands still; or one process, to which everybody comes back. */
const compositions = [
  ['nodes', () => ({ still: world().one, other: world().two })],
  ['embedded', () => ({ still: alone, other: alone })],
] as const

for (const [name, nodes] of compositions) {
  test(`[ORD1] ${name}: after a stall only hang-ups of clients that are gone take effect, and all that was sent by those who are there`, async () => {
    const { still, other } = nodes()
    const ann = person('ann', 'customer')
    const ben = person('ben', 'agent')
    const [annAtOther, benAtStill] = [await ann.connect(other), await ben.connect(still)]
    const rung = { call_uuid: await invite(annAtOther, ben.id) }
    await benAtStill.next('call.ringing')
    const [cleo, dan] = [person('cleo', 'customer'), person('dan', 'agent')]
    const [cleoAtStill, danAtOther] = [await cleo.connect(still), await dan.connect(other)]
    const [eve, fay] = [await person('eve', 'customer').connect(still), person('fay', 'agent')]
    const fayAtOther = await fay.connect(other)
    const pair = { caller: eve, callee: fayAtOther, calleeId: fay.id }
    const hungUp = { call_uuid: await acceptedCall(pair) }
    const [gil, hal] = [await person('gil', 'customer').connect(still), person('hal', 'agent')]
    const halAtOther = await hal.connect(other)

    await standStill(still, async () => {
      benAtStill.send('call.accept', rung)
      void benAtStill.close(1001)
      cleoAtStill.send('call.invite', inviteOf(dan.id))
      void cleoAtStill.close(1001)
      eve.send('call.end', hungUp)
      void eve.close(1001)
      gil.send('call.invite', inviteOf(hal.id, { metadata: { nth: 1 } }))
      gil.send('test.unknown', {}, 'after it')
      if (other === still) return
      // The newer call of the same person.
      const cleoAtOther = await cleo.connect(other)
      await invite(cleoAtOther, dan.id)
    })

    // A connected client gets its answers, in order.
    await gil.error('after it')
    expect(events(gil).slice(0, 3)).toEqual(['auth.ok', 'call.invited', 'call.error'])
    expect((await halAtOther.next('call.ringing')).data.metadata).toEqual({ nth: 1 })
    await caughtUp(still)
    // A client that hung up and went has hung up.
    expect((await fayAtOther.next('call.ended')).data).toMatchObject({ ...hungUp, reason: 'hangup' })
    // Nobody answered: it rings where they are now.
    const benAgain = await ben.connect(other)
    await benAgain.next('call.ringing', ({ data }) => data.call_uuid === rung.call_uuid)
    benAgain.send('call.reject', rung)
    await annAtOther.next('call.rejected')
    expect(events(annAtOther)).not.toContain('call.accepted')
    // And nobody called anew.
    await danAtOther.settle()
    expect(events(danAtOther)).toEqual(other === still ? ['auth.ok'] : ['auth.ok', 'call.ringing'])
  }, 240_000)

  test(`[EXT4] ${name}: an extended client that was gone after a stall, and comes back, has a reply to all that it asked for`, async () => {
    const { still, other } = nodes()
    const [callerId, calleeId] = [someone('ina'), someone('jon')]
    const caller = await connectExtended(still, { user_id: callerId, role: 'customer' })
    const callee = await connectExtended(other, { user_id: calleeId, role: 'agent' })
    const callUuid = await answeredCall({ caller, callee, callerId, calleeId })
    const asked: Promise<{ event: string }>[] = []
    await standStill(still, async () => {
      asked.push(caller.request('webrtc.ice_candidate', candidate(callUuid, 1)))
      asked.push(caller.request('call.end', { call_uuid: callUuid }))
      await caller.die()
    })
    // It hung up before it went.
    await callee.next('call.ended')
    await caller.connect()
    expect((await Promise.all(asked)).map(({ event }) => event)).toEqual(['call.ack', 'call.ack'])
    caller.stop()
    callee.stop()
  }, 240_000)
}
