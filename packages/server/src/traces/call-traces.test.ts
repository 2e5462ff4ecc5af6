import { expect, test } from 'bun:test'
import { alice, bob, overCall, ringingCall, start } from '../call/call.fixture.ts'
import type { Call } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { createCallTraces } from './call-traces.ts'
import { createTraceIds } from './ids.ts'
import { spanText } from './otlp.ts'

interface Told {
  readonly name: string
  readonly status?: { readonly code: number }
  readonly attributes: readonly { readonly key: string; readonly value: Record<string, unknown> }[]
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
}

function open(participants = false) {
  const spans: Told[] = []
  const clock = { now: start }
  const traces = createCallTraces({
    ids: createTraceIds(1),
    add: (span) => void spans.push(JSON.parse(spanText(span))),
    now: () => clock.now,
    known: () => undefined,
    participants,
  })
  return { traces, spans, clock, names: () => spans.map(({ name }) => name) }
}

const stepOf = (call: Call, type: Step['event']['type']): Step => ({
  call,
  event: { type, at: start, by: null, notices: [] },
})
const attributeOf = ({ attributes }: Told, key: string) =>
  Object.values(attributes.find((one) => one.key === key)?.value ?? {})[0]

test('[OTEL1] a step that not everybody was told of is a span after 5 s, and then never again', () => {
  const { traces, spans, clock, names } = open()
  const step = stepOf(ringingCall(), 'invited')
  traces.committed(step)
  traces.sweep()
  expect(names()).toEqual([])
  clock.now += 5_000
  traces.sweep()
  expect(names()).toEqual(['invited'])
  expect(spans.map((span) => attributeOf(span, 'ringwire.told'))).toEqual([false])
  traces.told(step)
  expect(names()).toEqual(['invited'])
  traces.committed(step)
  traces.sweep(true)
  expect(names()).toEqual(['invited', 'invited'])
})

test('[OTEL1] participants are hashes, the same as in the log, unless the log names them', () => {
  const hashOf = ({ product, role, userId }: typeof alice) =>
    new Bun.CryptoHasher('sha256').update(`${product}\0${role}\0${userId}`).digest('hex').slice(0, 16)
  for (const [named, expected] of [
    [false, [hashOf(alice), hashOf(bob)]],
    [true, [alice.userId, bob.userId]],
  ] as const) {
    const { traces, spans } = open(named)
    traces.committed(stepOf(overCall(), 'ended'))
    const root = spans.find(({ name }) => name === 'call') as Told
    expect(['ringwire.caller', 'ringwire.callee'].map((key) => attributeOf(root, key))).toEqual([...expected])
  }
})

test('[OTEL1] a push is a span of its time and its result, without its device', () => {
  const { traces, spans } = open()
  const address = { platform: 'fcm', token: 'a-secret-token' } as const
  const device = { participant: bob, deviceId: 'the-phone', address, registeredAt: start }
  const message = { type: 'call.wake', callUuid: ringingCall().callUuid, payload: {}, expiresAt: start } as const
  traces.pushed('accepted', { device, message, afterMs: 40 })
  traces.pushed('failed', { device, message, afterMs: 40 })
  traces.noDevice(ringingCall(), { connected: 1, registered: 2 } as never)
  expect(spans.map(({ name, status }) => [name, status?.code ?? 0])).toEqual([
    ['push call.wake', 0],
    ['push call.wake', 2],
    ['no_device', 0],
  ])
  const [push] = spans
  expect(Number(BigInt(push?.endTimeUnixNano ?? 0) - BigInt(push?.startTimeUnixNano ?? 0))).toBe(40_000_000)
  expect(JSON.stringify(spans)).not.toMatch(/a-secret-token|the-phone|bob/)
})
