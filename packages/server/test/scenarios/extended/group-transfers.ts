import { describe, expect, test } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { about, answeredCall, connectExtended } from '../../support/extended-flows.ts'
import { ask } from '../backend/calls.ts'
import { type Start, serviceFor } from '../calls/composition.ts'

const agent = (user_id: string) => ({ user_id, role: 'agent', allowed_peer_role: 'agent', display_name: user_id })

/** Ann calls Ben, who answers. Eva and Max are the members of a group, and so is Ben. */
interface People {
  readonly ann: ExtendedClient
  readonly ben: ExtendedClient
  readonly eva: ExtendedClient
  readonly max: ExtendedClient
  readonly ids: { readonly ann: string; readonly ben: string; readonly eva: string; readonly max: string }
  readonly name: string
  readonly first: string
}

async function peopleOf(service: Service): Promise<People> {
  const ids = { ann: someone('ann'), ben: someone('ben'), eva: someone('eva'), max: someone('max') }
  const name = someone('group')
  await ask(service, 'PUT', `groups/agent/${name}`, { members: [ids.ben, ids.eva, ids.max], strategy: 'all' })
  const can = { can: 'transfer' }
  const [ann, ben, eva, max] = await Promise.all([
    connectExtended(service, { user_id: ids.ann, role: 'customer', display_name: 'Ann' }, can),
    connectExtended(service, agent(ids.ben), can),
    connectExtended(service, agent(ids.eva)),
    connectExtended(service, agent(ids.max)),
  ])
  const first = await answeredCall({ caller: ann, callee: ben, callerId: ids.ann, calleeId: ids.ben })
  return { ann, ben, eva, max, ids, name, first }
}

/** Ben transfers Ann to the group; it rings at Eva and Max. */
async function transferred({ ann, ben, eva, max, first, name }: People): Promise<string> {
  const reply = await ben.request('call.transfer', { call_uuid: first, to_role: 'agent', to_group: name })
  expect(reply.event).toBe('call.transfer_started')
  const next = reply.data.new_call_uuid
  await Promise.all([eva.next('call.ringing', about(next)), max.next('call.ringing', about(next))])
  await ann.next('call.transferring', ({ data }) => data.new_call_uuid === next)
  return next
}

/** A side of an answered call is handed over to the member of a group who answers [XFER1, GROUP1]. */
export function registerGroupTransfers(name: string, start: Start): void {
  describe(`transfers to groups, ${name}`, () => {
    const service = serviceFor(start)

    test('[XFER1] [GROUP1] it rings at the members, and whoever answers goes on with the side that is transferred', async () => {
      const people = await peopleOf(service())
      const { ann, ben, eva, max, ids, first } = people
      const next = await transferred(people)
      const to = { user_id: null, role: 'agent', group: people.name, display_name: null }
      expect(ann.pushes.find(({ event }) => event === 'call.transferring')?.data).toMatchObject({ to })
      const rings = eva.pushes.find(({ event }) => event === 'call.ringing')?.data
      expect(rings).toMatchObject({ callee_group: people.name, transferred_from: first, caller_user_id: ids.ann })
      // One of them does not want it: it rings on at the other.
      await eva.request('call.reject', { call_uuid: next })
      await max.request('call.accept', { call_uuid: next })
      await Promise.all([ann.next('call.accepted', about(next)), ben.next('call.ended', about(first))])
      expect((await ann.next('call.ended', about(first))).data.reason).toBe('transferred')
      const { call } = (await ask(service(), 'GET', `calls/${next}`)).body
      expect(call).toMatchObject({ status: 'accepted', callee: { user_id: ids.max, group: people.name } })
      const { summary } = (await ask(service(), 'GET', `calls/${next}/timeline`)).body
      expect(summary).toMatch(
        new RegExp(`^${ids.ben} transferred Ann to ${ids.max}, who answered after [\\d.]+ s\\.$`, 'i'),
      )
      // The transferring side, who is a member too, was not rung.
      expect(ben.pushes.filter(({ data }) => data.call_uuid === next)).toEqual([])
    })

    test('[XFER1] [GROUP1] all members decline, or nobody is free: the first call goes on', async () => {
      const people = await peopleOf(service())
      const { ann, ben, eva, max, first } = people
      const next = await transferred(people)
      await eva.request('call.reject', { call_uuid: next })
      await max.request('call.reject', { call_uuid: next })
      const failed = { call_uuid: first, new_call_uuid: next, status: 'rejected', end_reason: 'all_declined' }
      for (const client of [ann, ben]) expect((await client.next('call.transfer_failed')).data).toEqual(failed)
      const unknown = { call_uuid: first, to_role: 'agent', to_group: someone('group') }
      expect((await ben.request('call.transfer', unknown)).error?.code).toBe('GROUP_NOT_FOUND')
      const doctors = { ...unknown, to_role: 'doctor' }
      expect((await ben.request('call.transfer', doctors)).error?.code).toBe('CALL_PEER_ROLE_NOT_ALLOWED')
      // Ann waits for the group already.
      const group = { callee_role: 'agent', callee_group: people.name }
      const own = (await ann.request('call.invite', group)).data.call_uuid
      const again = { call_uuid: first, to_role: 'agent', to_group: people.name }
      expect((await ben.request('call.transfer', again)).error?.code).toBe('CALL_INVALID_STATE')
      await ann.request('call.cancel', { call_uuid: own })
      await transferred(people)
    })

    test('[XFER1] [GROUP1] the last member declines while the transferring side hangs up: both calls are over', async () => {
      const people = await peopleOf(service())
      const { ann, ben, eva, max, first } = people
      const next = await transferred(people)
      await eva.request('call.reject', { call_uuid: next })
      await Promise.all([
        max.request('call.reject', { call_uuid: next }),
        ben.request('call.end', { call_uuid: first }),
      ])
      expect((await ann.next('call.ended', about(first))).data.reason).toBe('hangup')
      const { call } = (await ask(service(), 'GET', `calls/${next}`)).body
      expect(['rejected all_declined', 'cancelled transfer_cancelled']).toContain(`${call.status} ${call.end_reason}`)
    })

    test('[XFER1] [GROUP1] a call that somebody of a group answered is transferred', async () => {
      const people = await peopleOf(service())
      const { ann, ben, eva, max, ids, first } = people
      await ann.request('call.end', { call_uuid: first })
      await ben.next('call.ended', about(first))
      const group = { callee_role: 'agent', callee_group: people.name }
      const call_uuid = (await ann.request('call.invite', group)).data.call_uuid
      await ben.next('call.ringing', about(call_uuid))
      await ben.request('call.accept', { call_uuid })
      for (const other of [eva, max]) await other.next('call.cancelled', about(call_uuid))
      const data = { call_uuid, to_role: 'agent', to_user_id: ids.eva }
      // A member who did not answer has no say in it.
      expect((await max.request('call.transfer', data)).error?.code).toBe('CALL_NOT_FOUND')
      const next = (await ben.request('call.transfer', data)).data.new_call_uuid
      await eva.next('call.ringing', about(next))
      await eva.request('call.accept', { call_uuid: next })
      await ben.next('call.ended', about(call_uuid))
      const shown = (await ask(service(), 'GET', `calls/${next}`)).body.call
      expect(shown.callee).toEqual({ user_id: ids.eva, role: 'agent', display_name: ids.eva })
    })
  })
}
