import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Answer, Decider } from '@ringwire/testkit/decider'
import { someone } from '@ringwire/testkit/flows'
import { inTime } from '@ringwire/testkit/patience'
import { productKey, type Service } from '@ringwire/testkit/service'
import { about, connectExtended } from '../../support/extended-flows.ts'
import { agent, namesOf, newCall, ringsFor, threeOf, toEva } from '../../support/transfer-flows.ts'
import { type Env, type Start, serviceFor } from './composition.ts'

const product = 'decided'
const env: Env = {
  RINGWIRE_BOOTSTRAP_KEYS: `${productKey.id}:${productKey.secret}:${product},shop`,
  RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1',
}

/** As the backend of the product. */
async function put(service: Service, method: string, path: string, body: object) {
  const response = await fetch(`${service.url}/v1/server/${path}?product=${product}`, {
    method,
    headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret },
    body: JSON.stringify(body),
  })
  expect(response.status).toBe(200)
  return response.json()
}

/** The backend of a product decides on transfers, as it does on invites [HOOK5, XFER1]. */
export function registerTransferHook(name: string, start: Start): void {
  describe(`a backend that decides on transfers, ${name}`, () => {
    const service = serviceFor(start, env)
    let decider: Decider
    beforeAll(async () => {
      decider = await Decider.open()
      await put(service(), 'PATCH', 'product', { invite_url: decider.url })
    })
    afterAll(() => decider?.close())

    /** Ben transfers Ann to Eva, of whom the backend says this. */
    async function asked(answer: (ids: { ben: string }) => Answer) {
      const three = await threeOf(service(), { product })
      decider.about(three.ids.eva, () => answer(three.ids))
      const reply = await three.ben.request('call.transfer', toEva(three))
      return { ...three, three, reply, next: reply.data.new_call_uuid as string }
    }
    const scenario = (name: string, work: () => Promise<void>) => test(name, () => inTime(work), 120_000)

    scenario('[HOOK5] [XFER1] it is asked about who is transferred to whom, and what it says counts', async () => {
      const answer = { decision: 'allow', metadata: { vip: true }, ring_timeout_ms: 1_500 }
      const { ann, ben, eva, ids, first, three, next } = await asked(() => answer)
      await ringsFor(three, next)
      expect(eva.pushes.find(({ event }) => event === 'call.ringing')?.data).toMatchObject({
        ...{ call_uuid: next, metadata: { vip: true }, transferred_from: first },
      })
      expect(decider.of(ids.eva).map(({ data }) => data)).toMatchObject([
        {
          call_uuid: next,
          caller: { user_id: ids.ann, role: 'customer', display_name: 'Ann' },
          callee: { user_id: ids.eva, role: 'agent' },
        },
      ])
      // Nobody answers within the time that it gives.
      const failed = { call_uuid: first, new_call_uuid: next, status: 'missed', end_reason: 'no_answer' }
      for (const client of [ann, ben]) {
        expect((await client.next('call.transfer_failed', newCall(next))).data).toEqual(failed)
      }
      expect((await eva.next('call.missed', about(next))).data).toMatchObject({ caller_user_id: ids.ann })
    })

    const refusals: readonly [Answer, string][] = [
      [{ decision: 'refuse', reason: 'closed' }, 'closed'],
      [500, 'unavailable'],
      [{ decision: 'redirect', callee: { role: 'doctor', user_id: 'x' } }, 'unavailable'],
      [{ decision: 'redirect', callee: { role: 'agent', group: 'nobody knows it' } }, 'unavailable'],
    ]
    for (const [answer, reason] of refusals) {
      scenario(`[HOOK5] [XFER1] ${JSON.stringify(answer)}: nobody rings, and the first call goes on`, async () => {
        const { ann, ben, eva, first, reply, three } = await asked(() => answer)
        expect(reply.error).toMatchObject({ code: 'CALL_REFUSED', reason })
        await eva.settle()
        await ann.settle()
        expect([eva.pushes, namesOf(ann, first)]).toEqual([[], [['call.accepted', first]]])
        decider.about(three.ids.eva, () => ({ decision: 'allow' }))
        const again = await ben.request('call.transfer', toEva(three))
        await ringsFor(three, again.data.new_call_uuid)
      })
    }

    scenario(
      '[HOOK5] [XFER1] it redirects a transfer: somebody else rings, and the side that is transferred knows',
      async () => {
        const maxId = someone('max')
        const max = await connectExtended(service(), { ...agent(maxId, 'Max'), product })
        const callee = { role: 'agent', user_id: maxId }
        const { ann, ben, eva, ids, first, next } = await asked(() => ({ decision: 'redirect', callee }))
        expect((await max.next('call.ringing', about(next))).data).toMatchObject({
          ...{ caller_user_id: ids.ann, transferred_from: first },
        })
        const told = await ann.next('call.transferring', newCall(next))
        expect(told.data.to).toEqual({ user_id: maxId, role: 'agent', display_name: null })
        await max.request('call.accept', { call_uuid: next })
        expect((await ben.next('call.ended', about(first))).data.reason).toBe('transferred')
        await eva.settle()
        expect(eva.pushes).toEqual([])
        expect(decider.of(maxId)).toEqual([])
      },
    )

    scenario('[HOOK5] [XFER1] [GROUP1] it redirects a transfer to a group, which rings as it is set', async () => {
      const [group, maxId] = [someone('group'), someone('max')]
      await put(service(), 'PUT', `groups/agent/${group}`, { members: [maxId], strategy: 'in_turn' })
      const max = await connectExtended(service(), { ...agent(maxId, 'Max'), product })
      const { ann, ben, first, next } = await asked(() => ({ decision: 'redirect', callee: { role: 'agent', group } }))
      const told = await ann.next('call.transferring', newCall(next))
      expect(told.data.to).toEqual({ user_id: null, role: 'agent', group, display_name: null })
      expect((await max.next('call.ringing', about(next))).data).toMatchObject({ callee_group: group })
      await max.request('call.accept', { call_uuid: next })
      await ben.next('call.ended', about(first))
    })

    scenario(
      '[HOOK5] [XFER1] it redirects a transfer back to the side that transfers, which is not valid',
      async () => {
        const back = ({ ben }: { ben: string }) => ({ decision: 'redirect', callee: { role: 'agent', user_id: ben } })
        const { ann, reply, first } = await asked(back)
        expect(reply.error).toMatchObject({ code: 'CALL_REFUSED', reason: 'unavailable' })
        await ann.settle()
        expect(namesOf(ann, first)).toEqual([['call.accepted', first]])
      },
    )

    scenario('[HOOK5] [SRV2] [XFER1] of a transfer that the backend asks for it is not asked', async () => {
      const three = await threeOf(service(), { product })
      const { ids, first } = three
      decider.about(ids.eva, () => ({ decision: 'refuse', reason: 'never_asked' }))
      const to = { role: 'agent', user_id: ids.eva }
      const { new_call_uuid } = await put(service(), 'POST', `calls/${first}/transfer`, { by: 'callee', to })
      await ringsFor(three, new_call_uuid)
      expect(decider.of(ids.eva)).toEqual([])
    })
  })
}
