import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { CallShown, type TimelineEntry } from '@ringwire/protocol/backend'
import { createValidator } from '@ringwire/protocol/validate'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { openReceiver, type Receiver } from '@ringwire/testkit/receiver'
import type { Service } from '@ringwire/testkit/service'
import { about, answeredCall, connectExtended, type ExtendedPair } from '../../support/extended-flows.ts'
import { inviteOf } from '../../support/sessions.ts'
import { ask } from '../backend/calls.ts'
import { finish, type Start } from '../calls/composition.ts'

const isCall = createValidator(CallShown)
const speaks = { audio: true, video: false, screen: false }
const holding = { audio: false, video: false, screen: false, held: true }
const resumed = { ...speaks, held: false }

interface Parts {
  readonly service: () => Service
  readonly receiver: () => Receiver
}

/** A side puts the call on hold, and goes on with it [HOLD1]. */
export function registerHolds(name: string, start: Start): void {
  describe(`holds, ${name}`, () => {
    let running: Service
    let hooks: Receiver
    beforeAll(async () => {
      hooks = await openReceiver()
      running = await start({ RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' })
      await ask(running, 'POST', 'webhooks', { url: hooks.url, events: ['call.ended'] })
    }, 240_000)
    afterAll(async () => {
      await finish(running)
      await hooks.close()
    })
    const parts = { service: () => running, receiver: () => hooks }
    registerTold(parts)
    registerKept(parts)
    registerWritten(parts)
  })
}

async function pairOf(service: Service): Promise<ExtendedPair> {
  const [callerId, calleeId] = [someone('caller'), someone('callee')]
  const [caller, callee] = await Promise.all([
    connectExtended(service, { user_id: callerId, role: 'customer', device_id: 'desk', display_name: 'Ann' }),
    connectExtended(service, { user_id: calleeId, role: 'agent', device_id: 'phone', display_name: 'Ben' }),
  ])
  return { caller, callee, callerId, calleeId }
}

/** What a client heard of the other side's media, without the sender. */
const told = ({ pushes }: ExtendedClient, call_uuid: string) =>
  pushes
    .filter(({ event, data }) => event === 'call.media' && data.call_uuid === call_uuid)
    .map(({ data: { call_uuid: _, from_user_id: _id, from_role: _role, ...said } }) => said)

const says = (client: ExtendedClient, call_uuid: string, said: object) =>
  client.request('call.media', { call_uuid, ...said })

function registerTold({ service }: Parts): void {
  test('[HOLD1] [MEDIA1] the peer hears of it with what is sent; who never says it sends the message of before', async () => {
    const pair = await pairOf(service())
    const call = await answeredCall(pair)
    for (const said of [speaks, holding, resumed])
      expect((await says(pair.caller, call, said)).data.status).toBe('accepted')
    await says(pair.callee, call, holding)
    await pair.callee.settle()
    await pair.caller.settle()
    expect(told(pair.callee, call)).toEqual([speaks, holding, resumed])
    expect(told(pair.caller, call)).toEqual([holding])
    for (const held of ['true', 1, null])
      expect((await says(pair.caller, call, { ...speaks, held })).error.code).toBe('INVALID_PAYLOAD')
  })

  test('[HOLD1] a base peer hears nothing, and the hold is written down all the same', async () => {
    const calleeId = someone('base')
    const base = await service().connect({ user_id: calleeId, role: 'agent' })
    const caller = await connectExtended(service(), { user_id: someone('caller'), role: 'customer' })
    const { data } = await caller.request('call.invite', inviteOf(calleeId))
    const call = data.call_uuid
    await base.next('call.ringing')
    base.send('call.accept', { call_uuid: call })
    await caller.next('call.accepted')
    expect((await says(caller, call, holding)).event).toBe('call.ack')
    await until('the hold is written', async () => (await entriesOf(service(), call)).length === 1)
    await caller.request('call.end', { call_uuid: call })
    await base.next('call.ended')
    expect(base.all.map(({ event }) => event)).toEqual(['auth.ok', 'call.ringing', 'call.ended'])
    base.close()
  })
}

async function entriesOf(service: Service, call: string): Promise<TimelineEntry[]> {
  const { body } = await ask(service, 'GET', `calls/${call}/timeline`)
  return body.entries.filter(({ what }: TimelineEntry) => what === 'held' || what === 'resumed')
}

function registerKept({ service }: Parts): void {
  test('[HOLD1] [PLACE2] who resumes, also on another node, or takes the place hears that the peer holds the call', async () => {
    const pair = await pairOf(service())
    const call = await answeredCall(pair)
    await says(pair.caller, call, holding)
    await pair.callee.settle()
    await pair.callee.die()
    pair.callee.url = service().nextUrl()
    expect((await pair.callee.connect()).data.recovered).toBe(true)
    await pair.callee.settle()
    expect(told(pair.callee, call)).toEqual([holding, holding])
    await pair.callee.die()
    const next = await connectExtended(service(), { user_id: pair.calleeId, role: 'agent', device_id: 'phone' })
    await next.settle()
    expect(told(next, call)).toEqual([holding])
  })

  test('[HOLD1] who holds the call and comes back, on whichever node, holds it still, and ends it there', async () => {
    const pair = await pairOf(service())
    const call = await answeredCall(pair)
    await says(pair.caller, call, holding)
    for (let n = 0; n < 2; n++) {
      await pair.caller.die()
      pair.caller.url = service().nextUrl()
      expect((await pair.caller.connect()).data.recovered).toBe(true)
      await says(pair.caller, call, holding)
    }
    await pair.caller.die()
    pair.caller.url = service().nextUrl()
    await pair.caller.connect()
    await says(pair.caller, call, resumed)
    await pair.callee.next('call.media', (message) => about(call)(message) && message.data.held === false)
    await until('both are written', async () => (await entriesOf(service(), call)).length > 1)
    expect((await entriesOf(service(), call)).map(({ what }) => what)).toEqual(['held', 'resumed'])
  })
}

function registerWritten({ service, receiver }: Parts): void {
  const hookOf = (callUuid: string) => receiver().received.find(({ data }) => data.call_uuid === callUuid)
  const heldOf = async (call: string) => {
    const { body } = await ask(service(), 'GET', `calls/${call}`)
    expect(isCall(body).ok).toBe(true)
    return body.call.held
  }

  /** Another node may know the endpoint only a moment later. Whether it does, the end of a call shows. */
  async function hearsEnds(by: 'caller' | 'callee'): Promise<boolean> {
    const pair = await pairOf(service())
    const call = await answeredCall(pair)
    await pair[by].request('call.end', { call_uuid: call })
    const begin = performance.now()
    while (hookOf(call) === undefined && performance.now() - begin < 2_000) await Bun.sleep(10)
    return hookOf(call) !== undefined
  }

  test('[HOLD1] [HOOK2] the timeline, the call and its end say for how long each side held it; lists do not', async () => {
    for (const by of ['caller', 'callee'] as const) await until('the endpoint is known', () => hearsEnds(by))
    const pair = await pairOf(service())
    const call = await answeredCall(pair)
    expect(await heldOf(call)).toEqual({ caller_ms: 0, callee_ms: 0 })
    await says(pair.caller, call, speaks)
    await says(pair.caller, call, holding)
    await says(pair.callee, call, holding)
    await until('both are written', async () => (await entriesOf(service(), call)).length === 2)
    const live = await ask(service(), 'GET', `calls/${call}/timeline`)
    expect(live.body.summary).toEndWith('; Ann and Ben have it on hold.')
    const first = await heldOf(call)
    await until('time passes', async () => (await heldOf(call)).callee_ms > first.callee_ms + 100)
    await says(pair.caller, call, resumed)
    await until('the hold is over', async () => (await entriesOf(service(), call)).length === 3)
    const { caller_ms } = await heldOf(call)
    await until('the callee held it for longer', async () => (await heldOf(call)).callee_ms > caller_ms)
    await pair.callee.request('call.end', { call_uuid: call })
    await until('the end is told', () => hookOf(call) !== undefined)
    const held = await heldOf(call)
    expect(hookOf(call)?.data).toMatchObject({ held })
    expect([held.caller_ms, held.callee_ms > caller_ms]).toEqual([caller_ms, true])
    const { entries, summary } = (await ask(service(), 'GET', `calls/${call}/timeline`)).body
    const shown: TimelineEntry[] = entries.filter(({ what }: TimelineEntry) => what === 'held' || what === 'resumed')
    expect(shown.map(({ what, who, device_id }) => [what, who?.user_id, device_id])).toEqual([
      ['held', pair.callerId, 'desk'],
      ['held', pair.calleeId, 'phone'],
      ['resumed', pair.callerId, 'desk'],
    ])
    expect(summary).toMatch(/; Ann had it on hold for [\d.]+ s, Ben had it on hold for [\d.]+ s\.$/)
    const { data } = (await ask(service(), 'GET', `calls?user_id=${pair.callerId}&role=customer`)).body
    expect(Object.keys(data[0])).not.toContain('held')
  })

  test('[HOLD1] the webhook of a call that nobody held says so', async () => {
    const pair = await pairOf(service())
    const call = await answeredCall(pair)
    await says(pair.caller, call, speaks)
    await pair.caller.request('call.end', { call_uuid: call })
    await until('the end is told', () => hookOf(call) !== undefined)
    expect(hookOf(call)?.data).toMatchObject({ held: { caller_ms: 0, callee_ms: 0 } })
    expect(await entriesOf(service(), call)).toEqual([])
  })
}
