import { randomBytes } from 'node:crypto'
import { type CallRef, callKey } from '../call/call.ts'

/** The trace of a call [OTEL1]. Every node derives the same one from the call, so no node tells another one of it. */
export interface CallTrace {
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

/** `ratio`: the share of the calls that are traced, from 0 to 1. */
export function createTraceIds(ratio: number): TraceIds {
  let known = new Map<string, CallTrace>()
  let before = known
  const run = randomBytes(4).toString('hex')
  let spans = 0

  function derive({ product, callUuid }: CallRef): CallTrace {
    const digest = Bun.SHA256.hash(`ringwire trace\0${product}\0${callUuid}`, 'hex')
    const traceId = digest.slice(0, 32)
    const random = Number.parseInt(traceId.slice(randomness.from, randomness.to), 16) / randomness.range
    return { traceId, rootId: digest.slice(32, 48), isSampled: random >= 1 - ratio }
  }

  return {
    of(ref) {
      const key = callKey(ref)
      const found = known.get(key)
      if (found !== undefined) return found
      const trace = before.get(key) ?? derive(ref)
      // To remove the oldest one by one would read past all that were removed before.
      if (known.size >= mostKnown) {
        before = known
        known = new Map()
      }
      known.set(key, trace)
      return trace
    },
    newSpanId() {
      spans = (spans + 1) % 2 ** 32
      return run + spans.toString(16).padStart(8, '0')
    },
  }
}

/** The header of W3C Trace Context that names a span as the parent of what its receiver does. */
export function traceparentOf({ traceId, isSampled }: CallTrace, spanId: string): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

/** The span that such a header names. */
export const spanIdOf = (traceparent: string) => traceparent.slice(36, 52)
