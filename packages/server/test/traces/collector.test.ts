import { afterEach, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Collector } from '@ringwire/testkit/collector'
import { acceptedCall, connectPair } from '@ringwire/testkit/flows'
import { soon, until } from '@ringwire/testkit/patience'
import { openReceiver, type Receiver } from '@ringwire/testkit/receiver'
import { productKey, Service } from '@ringwire/testkit/service'
import { metricsOf } from '../admin/observed.ts'
import { named, spansOf, tracedTo } from './traces.ts'

let collector: Collector
let receiver: Receiver
let service: Service | undefined
beforeEach(async () => {
  ;[collector, receiver] = await Promise.all([Collector.open(), openReceiver()])
})
afterEach(async () => {
  await service?.dispose()
  await Promise.all([collector.close(), receiver.close()])
})

async function start(env: Record<string, string>): Promise<Service> {
  service = new Service({ RINGWIRE_ADMIN_PORT: '0', RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1', ...env })
  await service.start()
  const response = await fetch(`${service.url}/v1/server/webhooks`, {
    method: 'POST',
    headers: { 'X-SVC-Product-Key-ID': productKey.id, 'X-SVC-Product-Secret': productKey.secret },
    body: JSON.stringify({ url: receiver.url }),
  })
  if (response.status !== 201) throw new Error(await response.text())
  return service
}

/** A whole call, of which the endpoint has heard the end. */
async function call(of: Service): Promise<string> {
  const pair = await connectPair(of)
  const callUuid = await acceptedCall(pair)
  pair.callee.send('call.end', { call_uuid: callUuid })
  await pair.caller.next('call.ended')
  const isTold = () => receiver.received.some(({ type, data }) => type === 'call.ended' && data.call_uuid === callUuid)
  await until('the end is told', isTold)
  return callUuid
}

const traceparents = (callUuid: string) =>
  receiver.received.filter(({ data }) => data.call_uuid === callUuid).map(({ headers }) => headers.traceparent)
const sent = 'ringwire_trace_spans_total{result="sent"}'
const dropped = 'ringwire_trace_spans_total{result="dropped"}'

test('[OTEL1] without a collector there is no header, no metric, and no code of traces', async () => {
  const off = await start({ RINGWIRE_TRACE_RATIO: '1' })
  expect(new Set(traceparents(await call(off)))).toEqual(new Set([undefined]))
  expect([...(await metricsOf(off)).keys()].filter((name) => name.includes('trace'))).toEqual([])
  const server = join(import.meta.dir, '../../src/server.ts')
  const script = `await import(${JSON.stringify(server)}); console.log(Object.keys(require.cache).join('\\n'))`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'inherit' })
  const loaded = (await new Response(child.stdout).text()).split('\n')
  expect(loaded).toContain(server)
  expect(loaded.filter((file) => file.includes('/src/traces/')).map((file) => file.replace(/.*\//, ''))).toEqual([
    'open.ts',
  ])
}, 100_000)

test('[OTEL1] calls go on while the collector is gone, and what waited arrives when it is back', async () => {
  const { port } = collector
  const traced = await start(tracedTo(collector))
  await collector.close()
  const first = await call(traced)
  await until('the log says so', () => traced.log.includes('the collector of traces takes no spans'))
  const second = await call(traced)
  collector = await Collector.open(port)
  const names = ['call', 'ring', 'invited', 'accepted', 'ended', 'webhook call.ended']
  for (const callUuid of [first, second]) await spansOf(collector, callUuid, names)
  await until('the log says so', () => traced.log.includes('the collector of traces takes spans again'))
  expect(traced.log.split('the collector of traces takes no spans')).toHaveLength(2)
  expect(traced.log).not.toContain(String(port))
  expect(await metricsOf(traced)).toMatchObject(new Map([[dropped, 0]]))
  // A batch counts when its answer has come.
  await until('all that arrived counts', async () => (await metricsOf(traced)).get(sent) === collector.spans.length)
}, 100_000)

test('[OTEL1] a service that stops sends what waits, and does not wait for a collector that hangs', async () => {
  const traced = await start(tracedTo(collector))
  const callUuid = await call(traced)
  expect(await traced.terminate()).toBe(0)
  const { spans } = await spansOf(collector, callUuid, ['call', 'ended', 'webhook call.ended'])
  expect(named(spans, 'call')).toHaveLength(1)

  collector.reply = 'hang'
  await traced.start()
  await call(traced)
  const begin = performance.now()
  expect(await traced.terminate()).toBe(0)
  expect(performance.now() - begin).toBeLessThan(soon(9_000))
  expect(traced.log).toMatch(/"cause":"\d+ spans were dropped"/)
}, 100_000)

test('[OTEL1] a call that is not sampled has no span, and its webhooks say so', async () => {
  const traced = await start({ ...tracedTo(collector), RINGWIRE_TRACE_RATIO: '0' })
  const callUuid = await call(traced)
  const headers = traceparents(callUuid)
  expect(headers.length).toBeGreaterThanOrEqual(3)
  for (const header of headers) expect(header).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/)
  const hash = new Bun.CryptoHasher('sha256').update(`ringwire trace\0shop\0${callUuid}`).digest('hex')
  expect(headers[0]).toContain(hash.slice(0, 32))
  await traced.terminate()
  expect(collector.spans).toEqual([])
}, 100_000)
