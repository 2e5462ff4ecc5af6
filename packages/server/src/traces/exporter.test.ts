import { afterEach, beforeEach, expect, test } from 'bun:test'
import { Collector } from '@ringwire/testkit/collector'
import { soon, until } from '@ringwire/testkit/patience'
import { freePort } from '@ringwire/testkit/ports'
import { createExporter, type Exporter, type ExporterLimits } from './exporter.ts'
import { createTraceIds } from './ids.ts'
import { envelopeOf, spanText, type TracedSpan } from './otlp.ts'

const ids = createTraceIds(1)
const trace = ids.of({ product: 'shop', callUuid: '11111111-1111-4111-8111-111111111111' })
const span = (name: string): TracedSpan => ({
  trace,
  spanId: ids.newSpanId(),
  span: { name, from: 1_700_000_000_000, to: 1, attributes: {} },
})

let collector: Collector
let exporter: Exporter
let said: string[]
beforeEach(async () => {
  // One that comes back finds its port free.
  collector = await Collector.open(await freePort())
  said = []
})
afterEach(async () => {
  await exporter.stop(0)
  await collector.close()
})

function open(limits: Partial<ExporterLimits> = {}, headers = {}): Exporter {
  exporter = createExporter({
    url: `${collector.url}/v1/traces`,
    headers,
    envelope: envelopeOf({ 'service.name': 'ringwire' }, '1.2.3'),
    onLost: (cause) => said.push(`lost: ${cause}`),
    onBack: (dropped) => said.push(`back: ${dropped}`),
    limits: { everyMs: 10, pauseMs: 10, ...limits },
  })
  exporter.start()
  return exporter
}

const counts = () =>
  Object.fromEntries(
    exporter.families().flatMap(({ samples }) => samples.map(([name, value]) => [/"(\w+)"/.exec(name)?.[1], value])),
  )
const names = () => collector.spans.map(({ name }) => name)

test('[OTEL1] spans go out in order, in batches, with the headers of the operator', async () => {
  const { add } = open({ batch: 2 }, { 'api-key': 'a key' })
  for (const name of ['a', 'b', 'c', 'd', 'e']) add(span(name))
  await until('all came', () => collector.spans.length === 5)
  expect(names()).toEqual(['a', 'b', 'c', 'd', 'e'])
  expect(collector.headers.length).toBe(3)
  expect(collector.headers[0]).toMatchObject({ 'api-key': 'a key', 'user-agent': 'Ringwire' })
  expect(collector.problems).toEqual([])
  await until('they are counted', () => counts().sent === 5)
  expect(counts()).toEqual({ sent: 5, refused: 0, dropped: 0 })
})

test('[OTEL1] a collector that is gone is said once, and gets what waited when it is back', async () => {
  const { port } = collector
  const { add } = open()
  await collector.close()
  add(span('before'))
  await until('it is said', () => said.length > 0)
  add(span('meanwhile'))
  collector = await Collector.open(port)
  await until('all came', () => collector.spans.length === 2)
  expect(names()).toEqual(['before', 'meanwhile'])
  await until('that is said', () => said.length === 2)
  expect(said).toEqual([expect.stringMatching(/^lost: (ConnectionRefused|ECONNREFUSED)$/), 'back: 0'])
})

test('[OTEL1] what is too much while the collector is gone is dropped and counted, and costs no memory', async () => {
  collector.reply = { status: 503 }
  const { add } = open({ waiting: 3 })
  for (const name of ['a', 'b', 'c', 'd', 'e']) add(span(name))
  await until('it is said', () => said.length > 0)
  expect(counts().dropped).toBe(2)
  collector.reply = { status: 200 }
  await until('the rest came', () => collector.spans.length === 3)
  await until('that is said', () => said.length === 2)
  expect(said).toEqual(['lost: status 503', 'back: 2'])
  const long = span('x'.repeat(1_000))
  const { add: addLong } = open({ waitingBytes: 2 * spanText(long).length })
  addLong(long)
  addLong(long)
  await until('one is dropped', () => counts().dropped === 1)
})

test('[OTEL1] a batch that is sent again has the same spans, of any text and length', async () => {
  collector.reply = { status: 503 }
  const { add } = open()
  const first = 'ü \u20ac \u{1f600} "'
  const later = ['x'.repeat(600_000), 'y'.repeat(600_000)]
  add(span(first))
  await until('it was refused', () => said.length > 0)
  for (const name of later) add(span(name))
  collector.reply = { status: 200 }
  await until('all came', () => collector.spans.length === 3)
  expect(collector.spans.map(({ name }) => name)).toEqual([first, ...later])
  expect(collector.headers.length).toBe(2)
  expect(collector.problems).toEqual([])
})

test('[OTEL1] a batch that the collector refuses is not sent again', async () => {
  collector.reply = { status: 400 }
  const { add } = open()
  add(span('a'))
  await until('it is counted', () => counts().refused === 1)
  collector.reply = { status: 200 }
  add(span('b'))
  await until('the next one came', () => collector.spans.length === 1)
  expect(names()).toEqual(['b'])
  await until('that is said', () => said.length === 2)
  expect(said).toEqual(['lost: status 400', 'back: 0'])
})

test('[OTEL1] spans that the collector says it refused do not count as sent', async () => {
  collector.reply = { status: 200, body: { partialSuccess: { rejectedSpans: '1', errorMessage: 'no' } } }
  const { add } = open()
  add(span('a'))
  add(span('b'))
  await until('it is counted', () => counts().refused === 1)
  expect(counts()).toEqual({ sent: 1, refused: 1, dropped: 0 })
})

test('[OTEL1] a batch is given up after some attempts, so that what is newer has its turn', async () => {
  collector.reply = { status: 429 }
  const { add } = open({ attempts: 3 })
  add(span('a'))
  await until('it is dropped', () => counts().dropped === 1)
  collector.reply = { status: 200 }
  add(span('b'))
  await until('the next one came', () => collector.spans.length === 1)
  expect(names()).toEqual(['b'])
})

test('[OTEL1] a stop sends what waits, and does not wait for a collector that hangs', async () => {
  const { add, stop } = open({ everyMs: 60_000 })
  add(span('a'))
  await stop(5_000)
  expect(names()).toEqual(['a'])
  collector.reply = 'hang'
  const hanging = open({ everyMs: 60_000 })
  hanging.add(span('b'))
  const begin = performance.now()
  await hanging.stop(100)
  expect(performance.now() - begin).toBeLessThan(soon(5_000))
  expect(counts()).toEqual({ sent: 0, refused: 0, dropped: 1 })
  expect(said.at(-1)).toBe('lost: 1 spans were dropped')
})
