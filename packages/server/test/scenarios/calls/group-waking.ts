import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { CallWake, CallWakeCancelled } from '@ringwire/protocol/push'
import { createValidator } from '@ringwire/protocol/validate'
import { type WakeDevice, webhookEvents } from '@ringwire/protocol/webhook-events'
import { someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { openReceiver, type Received } from '@ringwire/testkit/receiver'
import type { Service } from '@ringwire/testkit/service'
import { type Browser, status, type WebPushServer } from '../../push/web-push-server.ts'
import { request } from '../../support/sessions.ts'
import { ask } from '../backend/calls.ts'
import { agentOn, hadUnsure, pushingTo, registerPhone, startPushServer, typesOf } from './asleep.ts'
import { finish, type Start } from './composition.ts'

const isCancelled = ({ payload }: { payload: { type: string } }) => payload.type === 'call.wake_cancelled'
const both = ['call.wake', 'call.wake_cancelled']

/** Members of a called group who sleep are woken, each for itself [GROUP1, PUSH2]. */
export function registerGroupWaking(name: string, start: Start): void {
  describe(`waking of members, ${name}`, () => {
    let push: WebPushServer
    let service: Service
    beforeAll(async () => {
      push = await startPushServer()
      service = await start(pushingTo(push))
    })
    afterAll(async () => {
      await finish(service)
      await push.stop()
    })

    async function groupOf(members: readonly string[]): Promise<string> {
      const group = someone('group')
      expect((await ask(service, 'PUT', `groups/agent/${group}`, { members, strategy: 'all' })).status).toBe(200)
      return group
    }
    const connectCaller = () => service.connect({ user_id: someone('caller'), role: 'customer' })
    const phoneOf = (userId: string, device?: string) => registerPhone(service, push, userId, device)
    const withTicket = (path: string, ticket: string, method = 'POST') =>
      fetch(`${service.nextUrl()}/v1/call/ring${path}`, { method, headers: { Authorization: `Bearer ${ticket}` } })

    /** A caller, and members who sleep, each with a phone that was woken. */
    async function woken(count = 2, more: readonly string[] = []) {
      const ids = Array.from({ length: count }, () => someone('member'))
      const phones = await Promise.all(ids.map((userId) => phoneOf(userId)))
      const group = await groupOf([...ids, ...more])
      const caller = await connectCaller()
      const call = async () =>
        (await request(caller, 'call.invite', { callee_role: 'agent', callee_group: group }))?.data.call_uuid as string
      return { ids, phones: phones as [Browser, Browser, ...Browser[]], group, caller, call }
    }

    test('[GROUP1] [PUSH2] members who sleep are woken; one accepts, and the devices of the others hear that', async () => {
      const [awake, nobody] = [someone('awake'), someone('nobody')]
      const { ids, phones, group, caller, call } = await woken(2, [awake, nobody])
      const desk = await phoneOf(awake, 'desk')
      const atDesk = await service.connect(agentOn(awake, 'desk'))
      const callUuid = await call()
      await atDesk.next('call.ringing')
      for (const { inbox } of phones) {
        const { payload } = await inbox.next()
        expect(createValidator(CallWake)(payload).ok).toBe(true)
        expect(payload).toMatchObject({ type: 'call.wake', call_uuid: callUuid, callee_group: group })
        expect((await withTicket('', payload.ring_ticket, 'GET')).status).toBe(200)
      }
      const member = await service.connect(agentOn(ids[0] ?? ''))
      await member.next('call.ringing')
      member.send('call.accept', { call_uuid: callUuid })
      await caller.next('call.accepted')
      const { payload } = await phones[1].inbox.next()
      expect(createValidator(CallWakeCancelled)(payload).ok).toBe(true)
      expect(payload).toMatchObject({ call_uuid: callUuid, status: 'accepted', end_reason: null })
      expect(typesOf(phones[0])).toEqual(['call.wake'])
      if (typesOf(desk).length > 0) await hadUnsure(service, callUuid, 'desk')
    })

    test('[GROUP1] [TICK1] a member declines with its ticket: its other devices hear that, and no other member does', async () => {
      const { ids, phones, caller, call } = await woken()
      const tablet = await phoneOf(ids[0] ?? '', 'tablet')
      const callUuid = await call()
      const [{ payload }] = await Promise.all([phones[0].inbox.next(), phones[1].inbox.next(), tablet.inbox.next()])
      expect((await withTicket('/reject', payload.ring_ticket)).status).toBe(200)
      expect((await tablet.inbox.next()).payload).toMatchObject({ type: 'call.wake_cancelled', status: 'ringing' })
      caller.send('call.cancel', { call_uuid: callUuid })
      expect((await phones[1].inbox.next()).payload).toMatchObject({ call_uuid: callUuid, status: 'cancelled' })
      expect([...phones, tablet].map(typesOf)).toEqual([['call.wake'], both, both])
    })

    test('[GROUP1] [PUSH2] a member who declines while its phone is woken is not pushed to again, on whichever node', async () => {
      const { ids, phones, caller, call } = await woken()
      const desk = await service.connect(agentOn(ids[0] ?? '', 'desk'))
      push.requests.skip()
      push.answers(status(503))
      push.answers(status(503))
      const callUuid = await call()
      await desk.next('call.ringing')
      for (let n = 0; n < 2; n++) await push.requests.next(({ status }) => status === 503)
      desk.send('call.reject', { call_uuid: callUuid })
      expect((await phones[0].inbox.next()).payload).toMatchObject({ type: 'call.wake_cancelled', status: 'ringing' })
      // The other one is tried again.
      expect((await phones[1].inbox.next()).payload).toMatchObject({ type: 'call.wake', call_uuid: callUuid })
      caller.send('call.cancel', { call_uuid: callUuid })
      await phones[1].inbox.next(isCancelled)
      // Both nodes may tell it.
      expect(typesOf(phones[0])).not.toContain('call.wake')
      expect(typesOf(phones[1])).toEqual(both)
    })

    test('[GROUP1] [PUSH2] the phone of a member that falls asleep while it rings is woken, and no other', async () => {
      const { phones, caller, call, ids } = await woken()
      const member = await service.connect(agentOn(ids[0] ?? ''))
      const callUuid = await call()
      await Promise.all([member.next('call.ringing'), phones[1].inbox.next()])
      await member.die()
      expect((await phones[0].inbox.next()).payload).toMatchObject({ type: 'call.wake', call_uuid: callUuid })
      caller.send('call.cancel', { call_uuid: callUuid })
      await Promise.all(phones.map(({ inbox }) => inbox.next(isCancelled)))
      expect(phones.map(typesOf)).toEqual([both, both])
    })

    test('[GROUP1] [PUSH2] a member of two groups that are called at once is woken for both, and hears of each', async () => {
      const { ids, phones, caller, call } = await woken(2)
      const other = await connectCaller()
      const second = await groupOf([ids[0] ?? ''])
      const invite = request(other, 'call.invite', { callee_role: 'agent', callee_group: second })
      const [first, reply] = await Promise.all([call(), invite])
      const calls = [first, reply?.data.call_uuid as string]
      const wakes = [await phones[0].inbox.next(), await phones[0].inbox.next(), await phones[1].inbox.next()]
      const callOf = ({ payload }: { payload: { call_uuid: string } }) => payload.call_uuid
      expect(wakes.slice(0, 2).map(callOf).sort()).toEqual(calls.toSorted())
      other.send('call.cancel', { call_uuid: calls[1] })
      const over = await phones[0].inbox.next()
      expect([over.payload.type, callOf(over)]).toEqual(['call.wake_cancelled', calls[1] ?? ''])
      caller.send('call.cancel', { call_uuid: first })
      for (const { inbox } of phones) expect(callOf(await inbox.next(isCancelled))).toBe(first)
    })

    test('[GROUP1] [HOOK2] a backend that pushes by itself hears of each member, with its ticket, and when it is over', async () => {
      const receiver = await openReceiver()
      const made = await ask(service, 'POST', 'webhooks', { url: receiver.url, events: both })
      expect(made.status).toBe(201)
      try {
        const { ids, phones, caller, call } = await woken()
        const desk = await service.connect(agentOn(ids[1] ?? '', 'desk'))
        let callUuid = ''
        const of = (type: string) =>
          receiver.received.filter((one) => one.type === type && one.data.call_uuid === callUuid)
        // Each node reads the endpoints every second.
        await until('each member is told of', async () => {
          if (callUuid !== '') {
            caller.send('call.cancel', { call_uuid: callUuid })
            await desk.next('call.cancelled')
          }
          callUuid = await call()
          await until('it hears', () => of('call.wake').length === 2, 1_500).catch(() => {})
          return of('call.wake').length === 2
        })
        const [first, second] = of('call.wake').toSorted((a, b) => ids.indexOf(memberOf(a)) - ids.indexOf(memberOf(b)))
        if (first === undefined || second === undefined) throw new Error('they were there')
        for (const one of [first, second])
          expect(
            createValidator(webhookEvents['call.wake'])({ ...one, timestamp: '2026-01-01T00:00:00.000Z' }).ok,
          ).toBe(true)
        expect([first, second].map(memberOf)).toEqual(ids)
        expect(devicesOf(first)).toEqual([['phone', false, true]])
        expect(devicesOf(second).toSorted()).toEqual([
          ['desk', true, false],
          ['phone', false, true],
        ])
        expect((await withTicket('/reject', dataOf(first).ring_ticket)).status).toBe(200)
        await until('its end is told', () => of('call.wake_cancelled').length === 1)
        const [declined] = of('call.wake_cancelled')
        expect(declined?.data).toMatchObject({ status: 'ringing', member: { user_id: ids[0], role: 'agent' } })
        desk.send('call.accept', { call_uuid: callUuid })
        await until('the rest is told', () => of('call.wake_cancelled').length === 2)
        expect(of('call.wake_cancelled')[1]?.data).toMatchObject({ status: 'accepted', member: { user_id: ids[1] } })
        await phones[1].inbox.next(isCancelled)
      } finally {
        await receiver.close()
      }
    })
  })
}

interface WakeData {
  readonly ring_ticket: string
  readonly member: { readonly user_id: string }
  readonly devices: readonly WakeDevice[]
}
const dataOf = ({ data }: Received) => data as unknown as WakeData
const memberOf = (received: Received) => dataOf(received).member.user_id
const devicesOf = (received: Received) =>
  dataOf(received).devices.map(({ device_id, reached, pushed }) => [device_id, reached, pushed] as const)
