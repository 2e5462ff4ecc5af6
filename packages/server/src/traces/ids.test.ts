import { expect, test } from 'bun:test'
import { createTraceIds, spanIdOf, traceparentOf } from './ids.ts'

const call = (n: number) => ({
  product: 'shop',
  callUuid: crypto.randomUUID().replace(/^.{8}/, String(n).padStart(8, '0')),
})

test('[OTEL1] every node derives the same trace and the same root span of a call', () => {
  const ref = call(1)
  const [one, two] = [createTraceIds(1).of(ref), createTraceIds(1).of({ ...ref })]
  expect(one).toEqual(two)
  expect(one.traceId).toMatch(/^[0-9a-f]{32}$/)
  expect(one.rootId).toMatch(/^[0-9a-f]{16}$/)
  expect(one.traceId).not.toContain(one.rootId)
  expect(createTraceIds(1).of({ ...ref, product: 'shop2' }).traceId).not.toBe(one.traceId)
})

test('[OTEL1] calls of two products have traces of their own, also with one uuid', () => {
  const shop = call(1)
  const bank = { ...shop, product: 'bank' }
  const ids = createTraceIds(1)
  for (const ref of [shop, bank, bank, shop]) expect(ids.of(ref)).toEqual(createTraceIds(1).of(ref))
  expect(ids.of(shop).traceId).not.toBe(ids.of(bank).traceId)
})

test('[OTEL1] nodes sample the same share of the calls, and a larger ratio has all calls of a smaller one', () => {
  const calls = Array.from({ length: 4_000 }, (_, n) => call(n))
  const sampledAt = (ratio: number) => {
    const ids = createTraceIds(ratio)
    return new Set(calls.filter((ref) => ids.of(ref).isSampled))
  }
  expect(sampledAt(1).size).toBe(calls.length)
  expect(sampledAt(0).size).toBe(0)
  const [tenth, half] = [sampledAt(0.1), sampledAt(0.5)]
  // Six times the standard deviation of this many coins.
  expect(Math.abs(tenth.size - 400)).toBeLessThan(115)
  expect(Math.abs(half.size - 2_000)).toBeLessThan(190)
  expect(tenth.isSubsetOf(half)).toBe(true)
  expect(sampledAt(0.5)).toEqual(half)
})

test('[OTEL1] no two spans of a process have one id, nor those of two processes', () => {
  const [one, two] = [createTraceIds(1), createTraceIds(1)]
  const made = [one, two].flatMap((ids) => Array.from({ length: 1_000 }, () => ids.newSpanId()))
  expect(new Set(made).size).toBe(2_000)
  for (const id of made) expect(id).toMatch(/^[0-9a-f]{16}$/)
})

test('[OTEL1] a traceparent is one of W3C Trace Context, and says whether the call is sampled', () => {
  const ref = call(1)
  const { traceId } = createTraceIds(1).of(ref)
  const header = traceparentOf(createTraceIds(1).of(ref), '00f067aa0ba902b7')
  expect(header).toBe(`00-${traceId}-00f067aa0ba902b7-01`)
  expect(spanIdOf(header)).toBe('00f067aa0ba902b7')
  expect(traceparentOf(createTraceIds(0).of(ref), '00f067aa0ba902b7')).toBe(`00-${traceId}-00f067aa0ba902b7-00`)
})
