import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Collector } from '@ringwire/testkit/collector'
import { Decider } from '@ringwire/testkit/decider'
import { acceptedCall, candidate, connectPair, invite } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { openReceiver, type Receiver } from '@ringwire/testkit/receiver'
import { productKey, type Service } from '@ringwire/testkit/service'
import { compositions, type Env, finish, type Start } from '../scenarios/calls/composition.ts'
import { named, spansOf, tracedTo } from './traces.ts'

const keys = { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret }

async function asked(service: Service, method: string, path: string, body: object): Promise<void> {
  const response = await fetch(service.url + path, { method, headers: keys, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
}

const whole = ['call', 'ring', 'connect', 'talk', 'invited', 'accepted', 'connected', 'ended']
const relays = ['webrtc.offer', 'webrtc.answer', 'webrtc.ice_candidate']
const told = ['webhook call.ringing', 'webhook call.accepted', 'webhook call.connected', 'webhook call.ended']
const sdp = (type: string) => ({ type, sdp: 'v=0\r\na=fingerprint:sha-256 AA' })

function register(name: string, start: Start, nodes: number): void {
  describe(`traces, ${name}`, () => {
    let collector: Collector
    let receiver: Receiver
    let decider: Decider
    let service: Service
    beforeAll(async () => {
      ;[collector, receiver, decider] = await Promise.all([Collector.open(), openReceiver(), Decider.open()])
      const env: Env = {
        RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=prod',
      }
      service = await start({ ...env, ...tracedTo(collector) })
      await asked(service, 'POST', '/v1/server/webhooks', { url: receiver.url })
      await asked(service, 'PATCH', '/v1/server/product', { invite_url: decider.url })
      // Until each node has heard of both: the caller's commits the invite, the callee's the rest.
      await until('calls are told', async () => {
        const pair = await connectPair(service)
        const callUuid = await acceptedCall(pair)
        pair.callee.send('call.end', { call_uuid: callUuid })
        await pair.caller.next('call.ended')
        const toldOf = new Set(receiver.received.map(({ type }) => type))
        return toldOf.has('call.ringing') && toldOf.has('call.ended') && decider.of(pair.calleeId).length > 0
      })
    }, 240_000)
    afterAll(async () => {
      await finish(service)
      await Promise.all([collector.close(), receiver.close(), decider.close()])
    })

    test('[OTEL1] a call is one trace over all nodes, with webhooks and the invite hook as children', async () => {
      const pair = await connectPair(service)
      const { caller, callee, calleeId } = pair
      const callUuid = await acceptedCall(pair)
      caller.send('webrtc.offer', { call_uuid: callUuid, sdp: sdp('offer') })
      await callee.next('webrtc.offer')
      callee.send('webrtc.answer', { call_uuid: callUuid, sdp: sdp('answer') })
      await caller.next('webrtc.answer')
      for (const n of [1, 2]) {
        caller.send('webrtc.ice_candidate', candidate(callUuid, n))
        await callee.next('webrtc.ice_candidate')
      }
      caller.send('call.connected', { call_uuid: callUuid })
      const isTold = () =>
        receiver.received.some((one) => one.type === 'call.connected' && one.data.call_uuid === callUuid)
      await until('that is told', isTold)
      callee.send('call.end', { call_uuid: callUuid })
      await caller.next('call.ended')

      const { root, spans } = await spansOf(collector, callUuid, [...whole, ...relays, ...told, 'invite_hook'])
      expect(collector.problems).toEqual([])
      expect(root.parentSpanId).toBeUndefined()
      for (const span of spans) if (span !== root) expect(span.parentSpanId).toBe(root.spanId)
      for (const one of [...whole, ...relays, 'invite_hook']) expect(named(spans, one)).toHaveLength(1)
      expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length)
      expect(root.attributes).toMatchObject({
        'ringwire.product': 'shop',
        'ringwire.status': 'ended',
        'ringwire.end_reason': 'hangup',
        'ringwire.caller.role': 'customer',
        'ringwire.callee.role': 'agent',
      })
      for (const { attributes } of whole.slice(4).flatMap((one) => named(spans, one))) {
        expect(attributes).toMatchObject({ 'ringwire.told': true })
      }
      const [ring, connect, talk] = ['ring', 'connect', 'talk'].map((one) => named(spans, one)[0])
      expect([ring?.from, ring?.to, connect?.to, talk?.to]).toEqual([root.from, connect?.from, talk?.from, root.to])
      const instances = new Set(spans.map(({ resource }) => resource['service.instance.id']))
      expect(instances.size).toBe(nodes)
      expect(root.resource).toMatchObject({ 'service.name': 'ringwire', 'deployment.environment.name': 'prod' })

      const hooks = receiver.received.filter(({ data }) => data.call_uuid === callUuid)
      const sent = [...hooks.map(({ headers }) => headers), ...decider.of(calleeId).map(({ headers }) => headers)]
      const children = spans.filter((span) => /^(webhook|invite_hook)/.test(span.name))
      expect(sent.map(({ traceparent }) => traceparent).sort()).toEqual(
        children.map(({ spanId }) => `00-${root.traceId}-${spanId}-01`).sort(),
      )
      for (const { kind, status } of children) expect([kind, status]).toEqual([3, 0])
      // Nobody is named, and nothing of what they say is there.
      const all = collector.texts.join('\n')
      for (const secret of [pair.callerId, calleeId, 'fingerprint', 'candidate:', '127.0.0.1', receiver.url, 'eyJ']) {
        expect(all).not.toContain(secret)
      }
    }, 240_000)

    test('[OTEL1] a call that nobody answered has no talk, and a device that cannot be woken is said', async () => {
      const pair = await connectPair(service)
      const callUuid = await invite(pair.caller, pair.calleeId)
      await pair.callee.next('call.ringing')
      pair.callee.send('call.reject', { call_uuid: callUuid })
      await pair.caller.next('call.rejected')
      const { spans, root } = await spansOf(collector, callUuid, ['call', 'ring', 'invited', 'rejected'])
      expect(spans.filter(({ name }) => name === 'talk' || name === 'connect')).toEqual([])
      expect(root.attributes['ringwire.status']).toBe('rejected')
    }, 240_000)
  })
}

for (const [composition, nodes] of [
  ['embedded', 1],
  ['postgres', 1],
  ['nodes', 2],
] as const) {
  const { name, start } = compositions[composition]()
  register(name, start, nodes)
}
