import { describe, expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { someone } from '@ringwire/testkit/flows'
import { answeredCall, connectExtended, connectExtendedPair, ringingCall } from '../../support/extended-flows.ts'
import { setProduct } from '../../support/products.ts'
import { type Start, serviceFor } from '../calls/composition.ts'

const agents = (...ids: readonly string[]) => ({ participants: ids.map((user_id) => ({ role: 'agent', user_id })) })

/** Asks again while the policy is not known yet, or the last request was a moment ago: the test's time is the patience. */
export async function watch(client: ExtendedClient, data: object) {
  for (;;) {
    const reply = await client.request('presence.watch', data)
    if (!['ACTION_NOT_ALLOWED', 'RATE_LIMITED'].includes(reply.error?.code)) return reply
    await Bun.sleep(100)
  }
}

export function registerPresence(name: string, start: Start): void {
  describe(`who is there, ${name}`, () => {
    const service = serviceFor(start)

    test('[PRES1] peers see who comes, in extended sessions, where the product says so and the token allows the role', async () => {
      const [ben, eva] = [someone('ben'), someone('eva')]
      const ann = await connectExtended(service(), { user_id: someone('ann'), role: 'customer' })
      expect((await ann.request('presence.watch', agents(ben))).error.code).toBe('ACTION_NOT_ALLOWED')
      await setProduct(service(), 'shop', '--presence', 'peers')
      await connectExtended(service(), { user_id: ben, role: 'agent' })
      const reply = await watch(ann, agents(ben, eva, ben))
      expect([reply.event, reply.data]).toEqual([
        'presence.state',
        {
          participants: [
            { role: 'agent', user_id: ben, online: true, in_call: false },
            { role: 'agent', user_id: eva, online: false, in_call: false },
          ],
        },
      ])
      await service().connect({ user_id: eva, role: 'agent' })
      const changed = await ann.next('presence.changed')
      expect(changed.data).toEqual({ participants: [{ role: 'agent', user_id: eva, online: true, in_call: false }] })

      // A person who is watched already stays so.
      expect((await watch(ann, agents(ben, eva))).data).toEqual({
        participants: [ben, eva].map((user_id) => ({ role: 'agent', user_id, online: true, in_call: false })),
      })
      const customer = { participants: [{ role: 'customer', user_id: 'x' }] }
      expect((await ann.request('presence.watch', customer)).error.code).toBe('ACTION_NOT_ALLOWED')
      const many = agents(...Array.from({ length: 201 }, (_, i) => `a${i}`))
      expect((await ann.request('presence.watch', many)).error.code).toBe('INVALID_PAYLOAD')
      const base = await service().connect({ user_id: someone('base'), role: 'customer' })
      base.send('presence.watch', agents(ben), 'r')
      expect((await base.next('call.error')).error.code).toBe('UNKNOWN_EVENT')
      expect((await watch(ann, agents())).data).toEqual({ participants: [] })
    })

    test('[PRES1] [INV5] a caller is in a call from its invite, a callee from its accept, both until the end', async () => {
      await setProduct(service(), 'shop', '--presence', 'peers')
      const pair = await connectExtendedPair(service())
      const ann = await connectExtended(service(), { user_id: someone('ann'), role: 'customer' })
      const ben = await connectExtended(service(), {
        ...{ user_id: someone('ben'), role: 'agent', allowed_peer_role: 'customer' },
      })
      const states = (client: ExtendedClient) =>
        client.all.flatMap(({ event, data }) =>
          event.startsWith('presence.') ? data.participants.map((one: { in_call?: boolean }) => one.in_call) : [],
        )
      await watch(ann, agents(pair.calleeId))
      await watch(ben, { participants: [{ role: 'customer', user_id: pair.callerId }] })
      const callUuid = await ringingCall(pair)
      await ben.next('presence.changed')
      expect([states(ann), states(ben)]).toEqual([[false], [false, true]])
      await pair.callee.request('call.accept', { call_uuid: callUuid })
      await ann.next('presence.changed')
      await pair.caller.request('call.end', { call_uuid: callUuid })
      await Promise.all([ann.next('presence.changed'), ben.next('presence.changed')])
      // A call that was answered before anybody looks.
      const second = await answeredCall(pair)
      await Promise.all([ann.next('presence.changed'), ben.next('presence.changed')])
      await pair.callee.request('call.end', { call_uuid: second })
      await Promise.all([ann.next('presence.changed'), ben.next('presence.changed')])
      const both = [false, true, false, true, false]
      expect([states(ann), states(ben)]).toEqual([both, both])
      for (const client of [ann, ben, pair.caller, pair.callee]) client.stop()
    })

    test('[PRES1] [WS5] a session that is resumed with a token of other peer roles watches nobody until it asks', async () => {
      await setProduct(service(), 'shop', '--presence', 'peers')
      const agent = { user_id: someone('ben'), role: 'agent' }
      const [ann, eva] = [
        await connectExtended(service(), { user_id: someone('ann'), role: 'customer' }),
        await connectExtended(service(), { user_id: someone('eva'), role: 'customer' }),
      ]
      for (const client of [ann, eva])
        expect((await watch(client, agents(agent.user_id))).data.participants[0].online).toBe(false)
      ann.token = await service().token({ user_id: ann.trace.userId, role: 'customer', allowed_peer_role: 'guest' })
      // The previous socket is there until this one takes over.
      expect((await ann.connect()).data.recovered).toBe(true)
      const ben = await connectExtended(service(), agent)
      await eva.next('presence.changed')
      // Each node looks for itself: its next look is over when it reports the coming of somebody else, too.
      const other = { user_id: someone('other'), role: 'guest' }
      expect((await watch(ann, { participants: [{ role: 'guest', user_id: other.user_id }] })).event).toBe(
        'presence.state',
      )
      await service().connect(other)
      await ann.next('presence.changed')
      const told = ann.all.flatMap(({ event, data }) => (event === 'presence.changed' ? data.participants : []))
      expect(told.map(({ role }) => role)).toEqual(['guest'])
      for (const client of [ann, eva, ben]) client.stop()
    })
  })
}
