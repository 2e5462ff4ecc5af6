import { randomBytes } from 'node:crypto'
import type { CallRef } from '../call/call.ts'

/** The trace of a call [OTEL1]. Every node derives the same one from the call, so no node tells another one of it. */
export interface CallTrace {
  readonly product: string
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits: the span of the whole call, to which all others belong. */
  readonly rootId: string
  readonly isSampled: boolean
}

export interface TraceIds {
  of(ref: CallRef): CallTrace
  /** A span id that no other span of the trace has. */
  newSpanId(): string
}

/** A call asks about 15 times: this many are remembered, and as many before them. */
const mostKnown = 5_000
/**
 * The part of a trace id that decides whether it is sampled: 6 of the 7 bytes that are random to W3C Trace Context, level
 * 2.
 */
const randomness = { from: 18, to: 30, range: 2 ** 48 }

/** All of these have eight hexadecimal digits. */
const spanNumbers = { from: 0x1000_0000, to: 0xffff_ffff }

/** `ratio`: the share of the calls that are traced, from 0 to 1. */
export function createTraceIds(ratio: number): TraceIds {
  let known = new Map<string, CallTrace>()
  let before = known
  const run = randomBytes(4).toString('hex')
  let spans = spanNumbers.from

  function derive({ product, callUuid }: CallRef): CallTrace {
    const digest = Bun.SHA256.hash(`ringwire trace\0${product}\0${callUuid}`, 'hex')
    const traceId = digest.slice(0, 32)
    const random = Number.parseInt(traceId.slice(randomness.from, randomness.to), 16) / randomness.range
    return { product, traceId, rootId: digest.slice(32, 48), isSampled: random >= 1 - ratio }
  }

  return {
    of(ref) {
      // The uuid is a key that is there, and no text to put together. Two products may have the same one.
      const { product, callUuid } = ref
      const found = known.get(callUuid)
      if (found?.product === product) return found
      const older = before.get(callUuid)
      const trace = older?.product === product ? older : derive(ref)
      // To remove the oldest one by one would read past all that were removed before.
      if (known.size >= mostKnown) {
        before = known
        known = new Map()
      }
      known.set(callUuid, trace)
      return trace
    },
    newSpanId() {
      spans = spans === spanNumbers.to ? spanNumbers.from : spans + 1
      return run + spans.toString(16)
    },
  }
}

/** The header of W3C Trace Context that names a span as the parent of what its receiver does. */
export function traceparentOf({ traceId, isSampled }: CallTrace, spanId: string): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

/** The span that such a header names. */
export const spanIdOf = (traceparent: string) => traceparent.slice(36, 52)
