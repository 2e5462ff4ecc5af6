/**
 * Spans as the JSON of OTLP (https://opentelemetry.io/docs/specs/otlp/). Texts are put together by hand: this is done about 15
 * times for a call, and an object that is printed later costs twice as much.
 */
import type { CallTrace } from './ids.ts'

export type Attributes = Readonly<Record<string, string | number | boolean | null | undefined>>

export interface Span {
  readonly name: string
  /** A request of this service to another one. */
  readonly isClient?: boolean
  /** In ms since the epoch. */
  readonly from: number
  readonly to: number
  readonly attributes: Attributes
  /** The work of the span has failed. */
  readonly isFailed?: boolean
}

/** A span of a trace. */
export interface TracedSpan {
  readonly trace: CallTrace
  /** The span of the whole call has the root's id. All others belong to it. */
  readonly spanId: string
  readonly span: Span
}

/** Longer texts are cut: some of them a client chose. */
const longestText = 256
const kinds = { internal: 1, client: 3 } as const

export function spanText({ trace: { traceId, rootId }, spanId, span }: TracedSpan): string {
  const { name, from, to, isClient, isFailed, attributes } = span
  const parent = spanId === rootId ? '' : `,"parentSpanId":"${rootId}"`
  const kind = isClient === true ? kinds.client : kinds.internal
  const status = isFailed === true ? ',"status":{"code":2}' : ''
  const begin = nanos(from)
  const times = `"startTimeUnixNano":"${begin}","endTimeUnixNano":"${to > from ? nanos(to) : begin}"`
  return `{"traceId":"${traceId}","spanId":"${spanId}"${parent},"name":${quoted(name)},"kind":${kind},${times},"attributes":${attributesText(attributes)}${status}}`
}

/** The body of a request, between whose halves the spans stand, with a comma between them. */
export function envelopeOf(resource: Attributes, version: string): readonly [string, string] {
  const scope = `{"name":"ringwire","version":${JSON.stringify(version)}}`
  return [
    `{"resourceSpans":[{"resource":{"attributes":${attributesText(resource)}},"scopeSpans":[{"scope":${scope},"spans":[`,
    ']}]}]}',
  ]
}

/** A double has no room for nanoseconds: microseconds are what is known. */
function nanos(ms: number): string {
  return Number.isInteger(ms) ? `${ms}000000` : `${Math.round(ms * 1_000)}000`
}

/** Nearly every text needs no escapes, and JSON.stringify takes three times as long. */
const plain = /^[\w .:/-]*$/
const quoted = (text: string) => (plain.test(text) ? `"${text}"` : JSON.stringify(text))

function attributesText(attributes: Attributes): string {
  let text = ''
  for (const key in attributes) {
    const value = attributes[key]
    if (value === null || value === undefined) continue
    text += `${text === '' ? '' : ','}{"key":${quoted(key)},"value":${valueText(value)}}`
  }
  return `[${text}]`
}

function valueText(value: string | number | boolean): string {
  if (typeof value === 'string')
    return `{"stringValue":${quoted(value.length > longestText ? value.slice(0, longestText) : value)}}`
  if (typeof value === 'boolean') return `{"boolValue":${value}}`
  return Number.isInteger(value) ? `{"intValue":"${value}"}` : `{"doubleValue":${value}}`
}
