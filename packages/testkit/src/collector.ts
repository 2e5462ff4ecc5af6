import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { until } from './patience.ts'

/** A span as it arrived. */
export interface CollectedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly from: bigint
  readonly to: bigint
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  readonly status: number
  readonly resource: Readonly<Record<string, string | number | boolean>>
}

/** What it answers: a status with a body, or nothing at all. */
export type CollectorReply = { readonly status: number; readonly body?: object } | 'hang'

/**
 * A collector of traces on loopback. It takes OTLP over HTTP as JSON, and is stricter than others: it refuses every field that
 * trace.proto of OTLP 1 does not have, and every value of another type.
 */
export class Collector {
  readonly spans: CollectedSpan[] = []
  readonly headers: IncomingHttpHeaders[] = []
  readonly texts: string[] = []
  /** Why a request was no OTLP. */
  readonly problems: string[] = []
  reply: CollectorReply = { status: 200, body: {} }
  private readonly server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString('utf8')
    const { reply } = this
    if (reply === 'hang') return
    if (reply.status === 200) this.take(request.url ?? '', request.headers, text)
    response.writeHead(reply.status, { 'content-type': 'application/json' }).end(JSON.stringify(reply.body ?? {}))
  })

  static async open(port = 0): Promise<Collector> {
    const collector = new Collector()
    await new Promise<void>((resolve) => collector.server.listen(port, '127.0.0.1', resolve))
    return collector
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  private take(path: string, headers: IncomingHttpHeaders, text: string): void {
    this.headers.push(headers)
    this.texts.push(text)
    try {
      if (path !== '/v1/traces') throw new Error(`the path is ${path}`)
      if (headers['content-type'] !== 'application/json') throw new Error('it is no JSON')
      this.spans.push(...spansOf(JSON.parse(text)))
    } catch (error) {
      this.problems.push(String(error))
    }
  }

  of(traceId: string): CollectedSpan[] {
    return this.spans.filter((span) => span.traceId === traceId)
  }

  /** The trace whose whole call has this attribute, when that is there. */
  async trace(callUuid: string): Promise<CollectedSpan> {
    const find = () => this.spans.find(({ attributes }) => attributes['ringwire.call_uuid'] === callUuid)
    await until('the span of the call came', () => find() !== undefined)
    return find() as CollectedSpan
  }

  async close(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }
}

type Fields = Readonly<Record<string, unknown>>

/** An object that has no other fields than these. */
function object(value: unknown, ...names: readonly string[]): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('it is no object')
  for (const name of Object.keys(value)) if (!names.includes(name)) throw new Error(`there is no field ${name}`)
  return value as Fields
}

function list(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error('it is no list')
  return value
}

function text(value: unknown, pattern: RegExp): string {
  if (typeof value !== 'string' || !pattern.test(value)) throw new Error(`${value} is not ${pattern}`)
  return value
}

function spansOf(body: unknown): CollectedSpan[] {
  return list(object(body, 'resourceSpans').resourceSpans).flatMap((one) => {
    const { resource, scopeSpans } = object(one, 'resource', 'scopeSpans', 'schemaUrl')
    const about = attributesOf(object(resource, 'attributes', 'droppedAttributesCount').attributes)
    return list(scopeSpans).flatMap((part) => {
      const { scope, spans } = object(part, 'scope', 'spans', 'schemaUrl')
      text(object(scope, 'name', 'version', 'attributes').name, /^ringwire$/)
      return list(spans).map((span) => spanOf(span, about))
    })
  })
}

const times = ['startTimeUnixNano', 'endTimeUnixNano'] as const
const ids = ['traceId', 'spanId', 'parentSpanId'] as const

function spanOf(value: unknown, resource: CollectedSpan['resource']): CollectedSpan {
  const span = object(value, ...ids, ...times, 'name', 'kind', 'attributes', 'status', 'traceState', 'flags', 'links')
  const [from, to] = times.map((name) => BigInt(text(span[name], /^\d{19}$/))) as [bigint, bigint]
  if (to < from) throw new Error(`${span.name} ends before it begins`)
  const code = object(span.status ?? {}, 'code', 'message').code ?? 0
  return {
    traceId: text(span.traceId, /^(?!0+$)[0-9a-f]{32}$/),
    spanId: text(span.spanId, /^(?!0+$)[0-9a-f]{16}$/),
    ...(span.parentSpanId !== undefined && { parentSpanId: text(span.parentSpanId, /^[0-9a-f]{16}$/) }),
    name: text(span.name, /./),
    kind: Number(text(String(span.kind), /^[1-5]$/)),
    ...{ from, to, resource },
    attributes: attributesOf(span.attributes),
    status: Number(text(String(code), /^[012]$/)),
  }
}

function attributesOf(value: unknown): Record<string, string | number | boolean> {
  const pairs = list(value).map((item) => {
    const { key, value } = object(item, 'key', 'value')
    const { stringValue, intValue, boolValue } = object(value, 'stringValue', 'intValue', 'boolValue')
    const given = [stringValue, intValue, boolValue].filter((one) => one !== undefined)
    if (given.length !== 1) throw new Error(`${key} has ${given.length} values`)
    if (intValue !== undefined) return [text(key, /./), Number(text(intValue, /^-?\d+$/))] as const
    if (boolValue !== undefined && typeof boolValue !== 'boolean') throw new Error(`${key} is no boolean`)
    return [text(key, /./), given[0] as string | boolean] as const
  })
  const names = pairs.map(([key]) => key)
  if (new Set(names).size !== names.length) throw new Error(`an attribute is there twice: ${names}`)
  return Object.fromEntries(pairs)
}
