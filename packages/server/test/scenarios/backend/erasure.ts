import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { ParticipantExport } from '@ringwire/protocol/backend'
import { createValidator } from '@ringwire/protocol/validate'
import { acceptedCall, connectPair, invite, someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { openReceiver, type Receiver } from '@ringwire/testkit/receiver'
import { productKey, type Service } from '@ringwire/testkit/service'
import { openStore } from '../../../src/backend.ts'
import { newAuditId } from '../../../src/ports/audit.ts'
import { dumpOf } from '../../support/dump.ts'
import { about, connectExtended, ringingCall } from '../../support/extended-flows.ts'
import { request } from '../../support/sessions.ts'
import { finish, type Start } from '../calls/composition.ts'
import { ask, erase as eraseAt } from './calls.ts'

const isExport = createValidator(ParticipantExport)
const nothing = { calls: 0, devices: 0, timeline_entries: 0, webhook_deliveries: 0 }

/** A backend has a participant exported, and erased [SRV2]. */
export function registerBackendErasure(name: string, start: Start): void {
  describe(`backends and what is kept of participants, ${name}`, () => {
    let receiver: Receiver
    let running: Service
    const service = () => running
    beforeAll(async () => {
      receiver = await openReceiver()
      running = await start({ RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' })
      await ask(running, 'POST', 'webhooks', { url: receiver.url })
      // Each node knows of it within a second: on a pair one tells of the invite, the other one of the answer.
      await until('every node tells it', async () => {
        await oneCall()
        return ['call.ringing', 'call.rejected'].every((type) => receiver.received.some((told) => told.type === type))
      })
    }, 240_000)
    afterAll(async () => {
      await finish(running)
      await receiver.close()
    })

    async function oneCall(): Promise<void> {
      const pair = await connectPair(running)
      const callUuid = await invite(pair.caller, pair.calleeId)
      pair.callee.send('call.reject', { call_uuid: callUuid })
      await pair.caller.next('call.rejected')
    }

    const dump = () => {
      const { DATABASE_URL: url } = running.env
      return dumpOf(url === undefined ? { sqlite: join(running.dataDir, 'ringwire.db') } : { url })
    }
    /** The tables whose rows name somebody: each row begins with its table's name. */
    const tablesWith = async (...texts: string[]) => {
      const lines = (await dump()).split('\n').filter((line) => texts.some((text) => line.includes(text)))
      return [...new Set(lines.map((line) => /^(?:\{"table":")?(\w+)/.exec(line)?.[1]))].sort()
    }
    const erase = (role: string, userId: string) => eraseAt(service(), role, userId)
    const exported = async (role: string, userId: string) => {
      const { status, body } = await ask(service(), 'GET', `participants/${role}/${userId}/export`)
      expect([status, isExport(body).ok]).toEqual([200, true])
      return body as ParticipantExport
    }

    /** A change that is about somebody, and cuts nobody off: the instant is long ago. */
    async function audited(userId: string): Promise<void> {
      const until = new Date(Date.now() - 86_400_000).toISOString()
      const store = await openStore({
        ...{ databaseUrl: running.env.DATABASE_URL ?? null, dataDir: running.dataDir, sqliteSynchronous: 'NORMAL' },
      })
      const change = { actor: { kind: 'cli', name: 'root' }, action: 'participant.disconnect', subject: '' } as const
      const participant = { role: 'customer', userId }
      await store.audit.add({ ...change, id: newAuditId(Date.now()), product: 'shop', participant, detail: { until } })
      await store.close()
    }

    /** Somebody who has left something in every table that can name a participant. */
    async function known() {
      const ann = { user_id: someone('ann'), display_name: someone('Ann Äther'), device_id: someone('phone') }
      const ben = { user_id: someone('ben'), display_name: someone('Ben'), device_id: someone('desk') }
      const caller = await connectExtended(service(), { ...ann, role: 'customer' })
      const callee = await connectExtended(service(), { ...ben, role: 'agent' })
      const pair = { caller, callee, callerId: ann.user_id, calleeId: ben.user_id }
      const { token } = await service().issue({ ...ann, role: 'customer' })
      await fetch(`${service().url}/v1/call/device`, {
        method: 'PUT',
        headers: { Authorization: `Bearer ${token}` },
        body: JSON.stringify({ platform: 'fcm', token: crypto.randomUUID() }),
      })
      const group = { members: [ann.user_id, ben.user_id], strategy: 'all' }
      await ask(service(), 'PUT', `groups/customer/${ann.user_id.length}`, group)
      await audited(ann.user_id)
      const refused = crypto.randomUUID()
      const wrong = { callee_user_id: ben.user_id, callee_role: 'nobody', call_uuid: refused }
      await caller.request('call.invite', wrong).catch(() => undefined)
      const missed = await ringingCall(pair, { metadata: { who: ann.display_name } })
      await caller.request('call.cancel', { call_uuid: missed })
      await callee.next('call.cancelled', about(missed))
      const callUuid = await ringingCall(pair)
      await callee.request('call.accept', { call_uuid: callUuid })
      await caller.next('call.accepted', about(callUuid))
      return { ann, ben, pair, missed, callUuid, refused, token }
    }

    test('[SRV2] who is erased while in a call: sockets are closed, the call ends, and no table names it', async () => {
      const { ann, ben, pair, missed, callUuid, refused, token } = await known()
      const names = [ann.user_id, ann.display_name, ann.device_id]
      const kept = [
        'audit',
        'call_events',
        'call_group_members',
        'call_timeline',
        'calls',
        'devices',
        'webhook_deliveries',
      ]
      await until('everything is written', async () => (await tablesWith(...names)).join() === kept.join())
      const tablesOfBen = () => tablesWith(ben.user_id, ben.display_name, ben.device_id)
      // Another node writes what was seen of him.
      await until('his entries are written', async () => (await tablesOfBen()).includes('call_timeline'))
      const ofBen = await tablesOfBen()

      const { status, body } = await erase('customer', ann.user_id)
      expect([status, body]).toEqual([
        200,
        {
          success: true,
          tokens_from: expect.stringMatching(/Z$/),
          calls: 2,
          devices: 1,
          timeline_entries: expect.any(Number),
          webhook_deliveries: expect.any(Number),
        },
      ])
      expect(body.timeline_entries).toBeGreaterThan(0)
      expect((await pair.caller.closed).code).toBe(4403)
      const over = await pair.callee.next('call.ended', about(callUuid))
      expect(over.data).toMatchObject({ status: 'ended', reason: 'ended_by_server', by: null })
      expect(await tablesWith(...names)).toEqual([])

      expect(await tablesOfBen()).toEqual(ofBen)
      const { data } = await service().history(await service().token({ user_id: ben.user_id, role: 'agent' }))
      const peer = { user_id: '', role: 'customer', display_name: null }
      expect(data.map(({ call_uuid, peer }: { call_uuid: string; peer: object }) => [call_uuid, peer])).toEqual([
        [callUuid, peer],
        [missed, peer],
      ])
      for (const [uuid, status] of [
        [callUuid, 'ended'],
        [missed, 'cancelled'],
      ]) {
        const { call } = (await ask(service(), 'GET', `calls/${uuid}`)).body
        expect(call).toMatchObject({ status, caller: peer, callee: { user_id: ben.user_id }, metadata: null })
        expect(call.started_at < call.ended_at).toBe(true)
        expect((await ask(service(), 'GET', `calls/${uuid}/timeline`)).status).toBe(200)
      }
      expect((await ask(service(), 'GET', `calls/${refused}/timeline`)).status).toBe(404)
      const headers = { Authorization: `Bearer ${token}` }
      await until('its tokens are refused by each node', async () => {
        const answers = [1, 2].map(() => fetch(`${service().url}/v1/calls/history`, { headers }))
        return (await Promise.all(answers)).every(({ status }) => status === 401)
      })

      const again = await erase('customer', ann.user_id)
      expect([again.status, again.body]).toMatchObject([200, nothing])
      // Later deliveries about its calls, and repeated ones, do not name it either.
      const { data: hooks } = (await ask(service(), 'GET', 'webhooks')).body
      const list = (await ask(service(), 'GET', `webhooks/${hooks[0].id}/deliveries?limit=100`)).body
      const [delivery] = list.data.filter(({ type }: { type: string }) => type === 'call.accepted')
      const before = receiver.received.length
      await ask(service(), 'POST', `webhooks/${hooks[0].id}/deliveries/${delivery.id}/retry`)
      // A first delivery may come between.
      const retold = () => receiver.received.slice(before).find(({ id }) => id === delivery.id)
      await until('it is told again', () => retold() !== undefined)
      const told = retold()
      expect([told?.data.call_uuid, told?.data]).toEqual([callUuid, expect.objectContaining({ caller: peer })])
    })

    test('[SRV2] a call that rings at who is erased is cancelled, and a token of later finds nothing', async () => {
      const pair = await connectPair(service())
      const over = await acceptedCall(pair)
      pair.callee.send('call.end', { call_uuid: over })
      await pair.caller.next('call.ended')
      const callUuid = await invite(pair.caller, pair.calleeId)
      await pair.callee.next('call.ringing', ({ data }) => data.call_uuid === callUuid)
      expect((await erase('agent', pair.calleeId)).body).toMatchObject({ calls: 2 })
      expect((await pair.callee.closed).code).toBe(4403)
      const { data } = await pair.caller.next('call.cancelled')
      expect(data).toMatchObject({ call_uuid: callUuid, reason: 'ended_by_server' })
      expect((await exported('agent', pair.calleeId)).calls).toEqual([])
      const begun = Math.floor(Date.now() / 1000)
      await until('the next second has begun', () => Math.floor(Date.now() / 1000) > begun)
      const fresh = await service().connect({ user_id: pair.calleeId, role: 'agent' })
      const token = await service().token({ user_id: pair.calleeId, role: 'agent' })
      expect((await service().history(token)).data).toEqual([])
      const next = await invite(pair.caller, pair.calleeId)
      expect((await fresh.next('call.ringing')).data.call_uuid).toBe(next)
    })

    /** A caller, and a group of two, each with a session. */
    async function groupOf() {
      const [ann, ben] = [someone('member'), someone('member')]
      const name = someone('group')
      const group = { members: [ann, ben], strategy: 'all' }
      expect((await ask(service(), 'PUT', `groups/agent/${name}`, group)).status).toBe(200)
      const caller = await service().connect({ user_id: someone('caller'), role: 'customer' })
      const member = await service().connect({ user_id: ann, role: 'agent' })
      const other = await service().connect({ user_id: ben, role: 'agent' })
      const call = async () => {
        const reply = await request(caller, 'call.invite', { callee_role: 'agent', callee_group: name })
        const { call_uuid } = reply?.data ?? {}
        const isIt = ({ data }: { data: { call_uuid?: string } }) => data.call_uuid === call_uuid
        await Promise.all([member.next('call.ringing', isIt), other.next('call.ringing', isIt)])
        return call_uuid as string
      }
      return { ann, ben, name, caller, member, other, call }
    }

    test('[GROUP1] [SRV2] a member who is erased: it rings there no more, and no table names it', async () => {
      const { ann, ben, name, caller, member, other, call } = await groupOf()
      const declined = await call()
      member.send('call.reject', { call_uuid: declined })
      await member.settle()
      other.send('call.accept', { call_uuid: declined })
      await caller.next('call.accepted')
      caller.send('call.end', { call_uuid: declined })
      await other.next('call.ended')
      const missed = await call()
      caller.send('call.cancel', { call_uuid: missed })
      await member.next('call.cancelled', ({ data }) => data.call_uuid === missed)
      expect((await exported('agent', ann)).calls.map(({ call }) => call.call_uuid)).toEqual([missed])
      expect((await exported('agent', ann)).groups).toEqual([name])
      await until('it is told', () =>
        receiver.received.some(({ data }) => data.call_uuid === missed && data.status === 'cancelled'),
      )

      expect((await erase('agent', ann)).body).toMatchObject({ success: true, calls: 2 })
      expect(await tablesWith(ann)).toEqual([])
      expect((await exported('agent', ann)).calls).toEqual([])
      expect((await exported('agent', ben)).calls.map(({ call }) => call.call_uuid)).toEqual([missed, declined])
      expect((await ask(service(), 'GET', `groups/agent/${name}`)).body.members).toEqual([ben])
      expect((await ask(service(), 'GET', `calls/${declined}/timeline`)).status).toBe(200)
    })

    test('[GROUP1] [SRV2] a member is erased while the call goes on: it has declined, or it rings there', async () => {
      for (const hasDeclined of [true, false]) {
        const { ann, ben, caller, member, other, call } = await groupOf()
        const call_uuid = await call()
        if (hasDeclined) member.send('call.reject', { call_uuid })
        await member.settle()
        expect((await erase('agent', ann)).body).toMatchObject({ success: true, calls: 1 })
        expect((await member.closed).code).toBe(4403)
        expect(await tablesWith(ann)).toEqual([])
        other.send('call.accept', { call_uuid })
        expect((await caller.next('call.accepted')).data).toMatchObject({ call_uuid })
        caller.send('call.end', { call_uuid })
        await other.next('call.ended')
        expect(await tablesWith(ann)).toEqual([])
        // The one who answered is erased once, too.
        expect((await erase('agent', ben)).body).toMatchObject({ success: true, calls: 1 })
        expect(await tablesWith(ben)).toEqual([])
      }
    })

    test('[SRV2] who is not known has nothing, the same user_id in another role loses nothing, and no name is no name', async () => {
      const pair = await connectPair(service())
      await acceptedCall(pair)
      for (const id of [someone('nobody'), encodeURIComponent("x' OR 1=1--/ä")])
        expect((await erase('customer', id)).body).toMatchObject({ success: true, ...nothing })
      expect((await erase('agent', pair.callerId)).body).toMatchObject(nothing)
      expect((await exported('customer', pair.callerId)).calls).toHaveLength(1)
      for (const bad of ['x'.repeat(256), 'a%00b', '%20'])
        for (const path of [`participants/customer/${bad}`, `participants/${bad}/ann`])
          for (const [method, below] of [
            ['DELETE', ''],
            ['GET', '/export'],
          ] as const) {
            const { status, body } = await ask(service(), method, path + below)
            expect([status, body.error.code]).toEqual([404, 'NOT_FOUND'])
          }
      const refused = await fetch(`${service().url}/v1/server/participants/customer/${pair.callerId}`, {
        method: 'DELETE',
        headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': 'wrong' },
      })
      expect(refused.status).toBe(401)
      const other = await ask(service(), 'DELETE', `participants/customer/${pair.callerId}?product=clinic`)
      expect(other.body.error.code).toBe('PRODUCT_AUTH_PRODUCT_MISMATCH')
    })

    test('[SRV2] an export has everything of a participant, over pages, and nothing of others', async () => {
      const { ann, ben, pair, missed, callUuid, refused } = await known()
      await until('everything is written', async () => {
        const { calls, refused } = await exported('customer', ann.user_id)
        return refused.length === 1 && calls.every(({ entries }) => entries.length > 0)
      })
      const all = await exported('customer', ann.user_id)
      expect(all).toMatchObject({ user_id: ann.user_id, role: 'customer', tokens_from: null })
      expect(all.sessions.map(({ device_id }) => device_id)).toEqual([ann.device_id])
      expect(all.devices).toMatchObject([{ device_id: ann.device_id, platform: 'fcm' }])
      expect(all.calls.map(({ call }) => call.call_uuid)).toEqual([callUuid, missed])
      expect(all.calls[1]?.call.metadata).toEqual({ who: ann.display_name })
      expect(all.changes).toMatchObject([{ action: 'participant.disconnect', by: 'cli' }])
      expect(all.refused).toMatchObject([{ call_uuid: refused, entry: { what: 'refused' } }])
      const entries = all.calls.flatMap(({ entries }) => entries)
      expect(entries.map(({ who }) => who?.user_id)).toEqual(entries.map(() => ann.user_id))
      expect(JSON.stringify(all)).not.toContain(ben.device_id)

      const uuids = [callUuid, missed]
      for (let n = 0; n < 110; n++) {
        const uuid = await ringingCall(pair)
        await pair.caller.request('call.cancel', { call_uuid: uuid })
        uuids.unshift(uuid)
      }
      const calls = (await exported('customer', ann.user_id)).calls.map(({ call }) => call.call_uuid)
      expect(calls.toSorted()).toEqual(uuids.toSorted())
    })
  })
}
