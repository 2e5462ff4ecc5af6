import { describe, expect, test } from 'bun:test'
import type { ParticipantExport, TimelineEntry } from '@ringwire/protocol/backend'
import type { CallRecord } from '@ringwire/protocol/rest'
import { someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { productKey, type Service } from '@ringwire/testkit/service'
import { quiet, request } from '../../support/sessions.ts'
import { ask } from '../backend/calls.ts'
import { type Start, serviceFor } from './composition.ts'

/** What is kept of a call to a group for its members [GROUP1, HIST1]. */
export function registerGroupMembers(name: string, start: Start): void {
  describe(`members of groups, ${name}`, () => {
    const service = serviceFor(start)
    registerHistories(service)
    registerRemovals(service)
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
    // One at whom it only rang names it late, and hears nothing new.
    expect((await request(members[0], 'call.end', { call_uuid }))?.error).toBeUndefined()
    expect(members[0].events()).toEqual(['auth.ok', 'call.ringing', 'call.cancelled'])
    expect(await historyOf(ids[1])).toMatchObject([{ call_uuid, status: 'ended', callee_group: name }])
    expect(await historyOf(callerId, 'customer')).toMatchObject([{ call_uuid, peer: { user_id: ids[1], group: name } }])
    for (const id of [ids[0], ids[2]]) expect(await historyOf(id)).toEqual([])
    const timeline = async () => (await ask(service(), 'GET', `calls/${call_uuid}/timeline`)).body
    const entriesOf = async (what: TimelineEntry['what']): Promise<TimelineEntry[]> =>
      (await timeline()).entries.filter((entry: TimelineEntry) => entry.what === what)
    await until('both numbers of members are written', async () => (await entriesOf('members')).length === 2)
    const said = new RegExp(`called the group ${name} \\(3 members\\); 3 rang; ${ids[1]} answered after [\\d.]+ s; `)
    expect((await timeline()).summary).toMatch(said)
    // It rang there before it was known who would answer.
    await until('its ring is written', async () => (await entriesOf('rung')).length > 0)
    expect((await entriesOf('rung')).map(({ who }) => who)).toEqual([{ user_id: ids[1], role: 'agent' }])
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

function registerRemovals(service: () => Service): void {
  const groupOf = (name: string, members: readonly string[]) =>
    ask(service(), 'PUT', `groups/agent/${name}`, { members, strategy: 'all' })
  const remove = async (name: string) => {
    const headers = { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret }
    const url = `${service().nextUrl()}/v1/server/groups/agent/${name}`
    return (await fetch(url, { method: 'DELETE', headers })).status
  }

  test('[GROUP1] who is taken out of a group while it rings stops ringing; the others ring on', async () => {
    const { ids, name, caller, members, call } = await people(service())
    const call_uuid = await call()
    expect((await groupOf(name, [ids[1], 'somebody new'])).status).toBe(200)
    for (const gone of [members[0], members[2]])
      expect((await gone.next('call.cancelled')).data).toMatchObject({
        ...{ call_uuid, reason: 'left_group', status: 'ringing', by: null, ended_at: null },
      })
    expect((await request(members[0], 'call.accept', { call_uuid }))?.error?.code).toBe('CALL_NOT_FOUND')
    members[1].send('call.accept', { call_uuid })
    await caller.next('call.accepted')
    // Nobody leaves a call that was answered.
    expect((await groupOf(name, [])).status).toBe(200)
    await quiet(caller, ...members)
    expect(members[1].events()).toEqual(['auth.ok', 'call.ringing'])
    expect(caller.events()).toEqual(['auth.ok', 'call.invited', 'call.accepted'])
  })

  test('[GROUP1] a group is removed while it rings: the call is over for everybody, and missed by nobody', async () => {
    const { callerId, ids, name, caller, members, call } = await people(service())
    const call_uuid = await call()
    expect(await remove(name)).toBe(204)
    const over = { call_uuid, status: 'cancelled', by: null, ended_at: expect.stringMatching(/Z$/) }
    expect((await caller.next('call.cancelled')).data).toMatchObject({ ...over, reason: 'ended_by_server' })
    for (const member of members)
      expect((await member.next('call.cancelled')).data).toMatchObject({ ...over, reason: 'left_group' })
    expect(await remove(name)).toBe(404)
    const who = { user_id: callerId, role: 'customer' }
    expect((await service().history(await service().token(who))).data).toMatchObject([
      { call_uuid, status: 'cancelled' },
    ])
    for (const user_id of ids)
      expect((await service().history(await service().token({ user_id, role: 'agent' }))).data).toEqual([])
  })

  test('[GROUP1] the last one at whom it rings leaves the group: the call is rejected where another one declined', async () => {
    const { ids, name, caller, members, call } = await people(service())
    const call_uuid = await call()
    members[0].send('call.reject', { call_uuid })
    await members[0].settle()
    expect((await groupOf(name, [ids[0]])).status).toBe(200)
    expect((await caller.next('call.rejected')).data).toMatchObject({ call_uuid, reason: 'all_declined', by: null })
  })

  test('[GROUP1] a member is taken out while it accepts: it has the call, or it never had it', async () => {
    for (let n = 0; n < 12; n++) {
      const { ids, name, caller, members, call } = await people(service())
      const call_uuid = await call()
      const put = groupOf(name, ids.slice(1))
      if (n % 3 > 0) await Bun.sleep(n % 3)
      const accepted = request(members[0], 'call.accept', { call_uuid })
      const [{ status }] = await Promise.all([put, accepted])
      expect(status).toBe(200)
      await quiet(caller, ...members)
      const isAnswered = caller.events().includes('call.accepted')
      const hasStopped = [members[0], members[1]].map((member) => member.events().includes('call.cancelled'))
      expect(hasStopped).toEqual([!isAnswered, isAnswered])
      caller.send(isAnswered ? 'call.end' : 'call.cancel', { call_uuid })
      await caller.settle()
    }
  })
}
