import { describe, expect, test } from 'bun:test'
import type { ParticipantExport } from '@ringwire/protocol/backend'
import type { CallRecord } from '@ringwire/protocol/rest'
import { someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { request } from '../../support/sessions.ts'
import { ask } from '../backend/calls.ts'
import { type Start, serviceFor } from './composition.ts'

/** What is kept of a call to a group for its members [GROUP1, HIST1]. */
export function registerGroupMembers(name: string, start: Start): void {
  describe(`members of groups, ${name}`, () => {
    registerHistories(serviceFor(start))
  })
}

/** A caller, and three members with a session each. */
export async function people(service: Service) {
  const callerId = someone('caller')
  const ids = Array.from({ length: 3 }, () => someone('member')) as [string, string, string]
  const name = someone('group')
  expect((await ask(service, 'PUT', `groups/agent/${name}`, { members: ids, strategy: 'all' })).status).toBe(200)
  const caller = await service.connect({ user_id: callerId, role: 'customer' })
  const connect = (user_id: string) => service.connect({ user_id, role: 'agent' })
  const members = [await connect(ids[0]), await connect(ids[1]), await connect(ids[2])] as const
  /** Rings at all of them. */
  const call = async (): Promise<string> => {
    const reply = await request(caller, 'call.invite', { callee_role: 'agent', callee_group: name })
    const { call_uuid } = reply?.data ?? {}
    await Promise.all(members.map((member) => member.next('call.ringing', ({ data }) => data.call_uuid === call_uuid)))
    return call_uuid
  }
  return { callerId, ids, name, caller, members, call }
}

function registerHistories(service: () => Service): void {
  const historyOf = async (user_id: string, role = 'agent', query = ''): Promise<CallRecord[]> =>
    (await service().history(await service().token({ user_id, role }), query)).data

  test('[GROUP1] [HIST2] nobody answers: the call is in the history of the members at whom it rang to its end', async () => {
    const { callerId, ids, name, caller, members, call } = await people(service())
    const call_uuid = await call()
    members[0].send('call.reject', { call_uuid })
    await members[0].settle()
    expect(await historyOf(ids[0])).toEqual([])
    expect(await historyOf(ids[1])).toMatchObject([{ call_uuid, status: 'ringing', ended_at: null }])
    caller.send('call.cancel', { call_uuid })
    await members[1].next('call.cancelled')
    for (const id of ids.slice(1))
      expect(await historyOf(id)).toMatchObject([
        {
          ...{
            call_uuid,
            status: 'cancelled',
            end_reason: 'caller_cancelled',
            direction: 'incoming',
            accepted_at: null,
          },
          ...{ peer: { user_id: callerId, role: 'customer' }, callee_group: name, duration_ms: null },
        },
      ])
    expect(await historyOf(ids[0])).toEqual([])
    expect(await historyOf(callerId, 'customer')).toMatchObject([{ call_uuid, peer: { user_id: null, group: name } }])
    const listed = (await ask(service(), 'GET', `calls?role=agent&user_id=${ids[1]}`)).body.data
    expect(listed).toMatchObject([{ call_uuid, callee: { user_id: null, group: name } }])
    const exported: ParticipantExport = (await ask(service(), 'GET', `participants/agent/${ids[1]}/export`)).body
    expect(exported.calls.map(({ call }) => call.call_uuid)).toEqual([call_uuid])
  })

  test('[GROUP1] [HIST2] a member answers: the call is in no history but those of the two who talk', async () => {
    const { callerId, ids, name, caller, members, call } = await people(service())
    const call_uuid = await call()
    members[1].send('call.accept', { call_uuid })
    await caller.next('call.accepted')
    caller.send('call.end', { call_uuid })
    await members[1].next('call.ended')
    expect(await historyOf(ids[1])).toMatchObject([{ call_uuid, status: 'ended', callee_group: name }])
    expect(await historyOf(callerId, 'customer')).toMatchObject([{ call_uuid, peer: { user_id: ids[1], group: name } }])
    for (const id of [ids[0], ids[2]]) expect(await historyOf(id)).toEqual([])
  })

  test('[GROUP1] [HIST1] the pages of a member have its own calls and missed calls to the group, in one order', async () => {
    const { ids, caller, members, call } = await people(service())
    const uuids: string[] = []
    for (let n = 0; n < 6; n++) {
      const call_uuid =
        n % 2 === 0
          ? await call()
          : (await request(caller, 'call.invite', { callee_role: 'agent', callee_user_id: ids[0] }))?.data.call_uuid
      caller.send('call.cancel', { call_uuid })
      await members[0].next('call.cancelled', ({ data }) => data.call_uuid === call_uuid)
      uuids.unshift(call_uuid)
    }
    const token = await service().token({ user_id: ids[0], role: 'agent' })
    const found: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await service().history(token, `?limit=2${cursor && `&cursor=${cursor}`}`)
      found.push(...page.data.map(({ call_uuid }: CallRecord) => call_uuid))
      cursor = page.next_cursor
    }
    expect(found).toEqual(uuids)
  })
}
