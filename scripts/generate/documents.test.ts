import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import SwaggerParser from '@apidevtools/swagger-parser'
import { Parser } from '@asyncapi/parser'
import { hookTypes } from '@ringwire/protocol/backend'
import type { ClientEventName } from '@ringwire/protocol/client-events'
import { type EndReasonDefinition, endReasons, type OverStatus, overStatuses } from '@ringwire/protocol/end-reasons'
import { endpoints } from '@ringwire/protocol/endpoints'
import { type ErrorCode, errors, limitNames } from '@ringwire/protocol/errors'
import { callStatuses } from '@ringwire/protocol/rest'
import { Compile } from 'typebox/schema'
import { loadConfig } from '../../packages/server/src/config/config.ts'
import { settings } from '../../packages/server/src/config/settings.ts'
import { createAsyncApi, webSocketCodes } from './asyncapi.ts'
import { createDocuments } from './documents.ts'
import { decidedSteps, leftNotices } from './end-reasons.ts'
import { tokenRequest } from './examples.ts'
import { whileDeveloping } from './limits.ts'
import { createOpenApi } from './openapi.ts'
import { requestErrors } from './request-errors.ts'
import type { Json, JsonObject } from './schemas.ts'

const root = join(import.meta.dir, '..', '..')
const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Every object of a document with the path to it. */
function* objects(value: unknown, path = ''): Generator<{ path: string; it: JsonObject }> {
  if (isObject(value)) yield { path, it: value }
  if (typeof value !== 'object' || value === null) return
  for (const [key, it] of Object.entries(value)) yield* objects(it, `${path}/${key}`)
}

/** What is wrong with a value, or nothing. */
function problems(schema: Json | undefined, value: Json | undefined): unknown[] {
  if (!isObject(schema)) return ['no schema']
  const compiled = Compile(schema)
  return compiled.Check(value) ? [] : (compiled.Errors(value)[1] ?? ['wrong'])
}

test('the same code prints the same documents', () => {
  expect([...createDocuments()]).toEqual([...createDocuments()])
})

describe('openapi.json', () => {
  test('is OpenAPI 3.1', async () => {
    // The validator changes what it is given.
    await SwaggerParser.validate(JSON.parse(JSON.stringify(createOpenApi())))
  })

  test('every example is what its schema says', async () => {
    const document = await SwaggerParser.dereference(JSON.parse(JSON.stringify(createOpenApi())))
    let examples = 0
    for (const { path, it } of objects(document)) {
      if (!isObject(it.schema)) continue
      const named = isObject(it.examples) ? Object.entries(it.examples) : []
      const values = named.map(([name, example]) => [name, isObject(example) ? example.value : undefined] as const)
      if (it.example !== undefined) values.push(['example', it.example])
      for (const [name, value] of values) {
        expect({ path, name, problems: problems(it.schema, value) }).toEqual({ path, name, problems: [] })
        examples++
      }
    }
    expect(examples).toBeGreaterThan(40)
  })

  test('every REST code is there, with an example under its status', () => {
    const document = createOpenApi()
    const shown = new Map<string, string>()
    for (const { path, it } of objects(document)) {
      const [, status] = /\/responses\/(\w+)\/content\/application~?1?\/?json\/examples\/\w+$/.exec(path) ?? []
      const value = isObject(it.value) ? it.value : {}
      if (status !== undefined && isObject(value.error)) shown.set(String(value.error.code), status)
    }
    const expected = (Object.keys(errors) as ErrorCode[]).filter((code) => errors[code].where !== 'ws')
    expect([...shown.keys()].sort()).toEqual(expected.sort())
    for (const [code, status] of shown) {
      const definition = errors[code as ErrorCode]
      if (status !== 'NotFound')
        expect(`${code} ${status}`).toBe(`${code} ${'status' in definition ? definition.status : ''}`)
    }
  })

  test('a token request: what is required is not blank, what is not may be null', () => {
    const { TokenRequest } = (createOpenApi().components as { schemas: Record<string, JsonObject> }).schemas
    const request = (change: object) =>
      problems(TokenRequest, { ...tokenRequest, ...change } as JsonObject).length === 0
    expect(request({})).toBe(true)
    for (const field of (TokenRequest as { required: string[] }).required) {
      for (const blank of ['', ' ', null])
        expect({ field, blank, right: request({ [field]: blank }) }.right).toBe(false)
      expect(request({ [field]: 'x'.repeat(256) })).toBe(false)
    }
    for (const field of ['product', 'device_id', 'app_version']) expect(request({ [field]: null })).toBe(true)
  })

  test('every answer may be that a body or the headers are too large; each 429 says what it counts', () => {
    for (const [path, methods] of Object.entries(createOpenApi().paths as Record<string, JsonObject>)) {
      for (const { responses } of Object.values(methods) as { responses: Record<string, { description: string }> }[]) {
        expect({ path, statuses: Object.keys(responses) }.statuses).toContainValues(['413', '431'])
        const limited = responses['429']?.description
        if (limited !== undefined) expect(limited).toMatch(/\d+ in \d+ s \(RINGWIRE_\w+\)/)
        if (path === '/v1/calls/history') expect(limited).not.toContain('RINGWIRE_TOKEN')
      }
    }
  })

  test('no endpoint answers a code of call.error alone', () => {
    for (const code of Object.values(endpoints).flatMap((endpoint) => [...endpoint.errors]))
      expect(errors[code].where as string).not.toBe('ws')
  })
})

describe('openapi.json: webhooks', () => {
  interface Request {
    parameters: { name: string; in: string; required: boolean }[]
    requestBody: { content: Record<string, { schema: Json; examples: Record<string, { value: JsonObject }> }> }
  }
  const requests = async () => {
    const document = await SwaggerParser.dereference(JSON.parse(JSON.stringify(createOpenApi())))
    const { webhooks } = document as unknown as { webhooks: Record<string, { post: Request }> }
    return Object.entries(webhooks).map(([type, { post }]) => ({ type, ...post }))
  }

  test('[HOOK2] every type that an endpoint may ask for is one, and webhook.test', async () => {
    const types = (await requests()).map(({ type }) => type)
    expect(types.toSorted()).toEqual([...hookTypes, 'webhook.test'].toSorted())
  })

  test('[HOOK2] a body fits the schema of its own type, and of no other', async () => {
    const all = await requests()
    for (const { type, requestBody } of all) {
      const { schema } = requestBody.content['application/json'] ?? {}
      const bodies = all.map((other) => other.requestBody.content['application/json']?.examples.one?.value)
      const fitting = bodies.filter((body) => problems(schema, body).length === 0)
      expect(fitting.map((body) => body?.type)).toEqual([type])
    }
  })

  test('[HOOK2] each one has the three headers of Standard Webhooks', async () => {
    for (const { type, parameters } of await requests()) {
      const required = parameters.filter((it) => it.in === 'header' && it.required).map(({ name }) => name)
      expect({ type, required }).toEqual({
        type,
        required: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
      })
    }
  })
})

describe('asyncapi.json', () => {
  test('is AsyncAPI 3.0, and every example is what its schema says', async () => {
    const diagnostics = await new Parser().validate(JSON.stringify(createAsyncApi()))
    const wrong = diagnostics.filter(({ code }) => code !== 'asyncapi-latest-version')
    expect(wrong.map(({ code, message, path }) => ({ code, message, path }))).toEqual([])
  })

  test('its examples hold against the schemas by another validator too', () => {
    let examples = 0
    for (const { path, it } of objects(createAsyncApi())) {
      if (it.payload === undefined || !Array.isArray(it.examples)) continue
      for (const example of it.examples) {
        const { name, payload } = isObject(example) ? example : {}
        expect({ path, name, problems: problems(it.payload, payload) }).toEqual({ path, name, problems: [] } as never)
        examples++
      }
    }
    expect(examples).toBeGreaterThan(40)
  })

  test('what clients send has bounds: every text has a size, a pattern or fixed words', () => {
    // A token is whatever its issuer signs; the verifier judges it.
    const free = ['token', 'reason']
    const messages = Object.entries((createAsyncApi().components as { messages: JsonObject }).messages)
    for (const [name, message] of messages.filter(([key]) => key.startsWith('client'))) {
      for (const { path, it } of objects((message as JsonObject).payload)) {
        if (![it.type].flat().includes('string') || free.some((field) => path.endsWith(`/${field}`))) continue
        expect({ name, path, it }).toHaveProperty(`it.${['maxLength', 'pattern', 'const'].find((key) => key in it)}`)
      }
    }
  })

  test('[ENV1, INV1] null counts as absent, and a call_type has a pattern', () => {
    const { messages } = createAsyncApi().components as { messages: Record<string, { payload: JsonObject }> }
    const invite = (data: object) =>
      problems(messages.clientCallInvite?.payload, {
        ...{ event: 'call.invite', request_id: null },
        data: { callee_user_id: 'ben', callee_role: 'agent', ...data },
      }).length === 0
    const optional = ['context_type', 'context_id', 'call_type', 'call_uuid', 'ring_timeout_ms', 'metadata']
    expect(invite(Object.fromEntries(optional.map((field) => [field, null])))).toBe(true)
    expect([invite({ call_type: 'video' }), invite({ call_type: 'NO' })]).toEqual([true, false])
  })

  test('[ENV2] call.error has an example of every code', () => {
    const text = JSON.stringify(createAsyncApi())
    for (const code of webSocketCodes) expect(text).toContain(`"error":{"code":"${code}"`)
  })
})

describe('the pages', () => {
  const pageOf = (name: string) => createDocuments().get(name) ?? ''

  test('errors.md has every code, in the table of each side that sends it', () => {
    const [rest = '', socket = ''] = pageOf('errors.md').split('\n## WebSocket\n')
    const isIn = (part: string, code: string) => part.includes(`\n| \`${code}\` |`)
    for (const [code, { where }] of Object.entries(errors)) {
      const found = { code, rest: isIn(rest, code), socket: isIn(socket, code) }
      expect(found).toEqual({ code, rest: where !== 'ws', socket: where !== 'rest' })
    }
  })

  test('errors.md: each code says for what it is sent, and what to do', () => {
    const rows = pageOf('errors.md')
      .split('\n')
      .filter((line) => line.startsWith('| `'))
    for (const row of rows) expect(row.split(' | ').map((cell) => cell.trim())).not.toContain('')
    const rowOf = (code: string) => rows.findLast((row) => row.startsWith(`| \`${code}\``)) ?? ''
    // What `decide` and `decideInvite` say, and what is refused before them.
    expect(rowOf('CALL_GLARE')).toContain('| `call.invite` |')
    expect(rowOf('CALL_ALREADY_ANSWERED')).toContain('| `call.accept` |')
    expect(rowOf('RELAY_BUFFER_FULL')).toContain('| `webrtc.*` |')
    for (const event of ['call.end', 'call.cancel', 'call.reject']) {
      expect(rowOf('CALL_INVALID_STATE')).not.toContain(event)
      expect(requestErrors().get(event as ClientEventName)).not.toContain('RATE_LIMITED')
    }
  })

  test('[END2] the registry has every reason that is decided, with the statuses that it leads to, and no other', () => {
    const pairs = (each: readonly (readonly [string, string])[]) =>
      [...new Set(each.map((pair) => pair.join(' ')))].sort()
    const registry = Object.entries<EndReasonDefinition>(endReasons)
    const ends = decidedSteps().flatMap(({ call }) =>
      'endReason' in call ? [[call.status, call.endReason] as const] : [],
    )
    expect(pairs(ends)).toEqual(
      pairs(registry.flatMap(([reason, it]) => it.ends.map((status) => [status, reason] as const))),
    )
    const notices = [...decidedSteps().flatMap(({ event }) => event.notices), ...leftNotices()]
    const told = notices.flatMap(({ data }) => ('reason' in data ? [data.reason] : []))
    // If the product or its backend refuses an invite, only its caller hears of it.
    const untold: readonly string[] = ['refused', 'unavailable']
    expect([...new Set(told)].sort()).toEqual(
      Object.keys(endReasons)
        .filter((reason) => !untold.includes(reason))
        .sort(),
    )
  })

  test('every example of a call that is over has a reason of the registry, with its status', () => {
    let examples = 0
    for (const document of [createOpenApi(), createAsyncApi()]) {
      for (const { path, it } of objects(document)) {
        const reason = it.end_reason ?? (typeof it.status === 'string' ? it.reason : undefined)
        if (typeof reason !== 'string') continue
        const { ends = [] } =
          Object.entries<EndReasonDefinition>(endReasons).find(([name]) => name === reason)?.[1] ?? {}
        // A notice that says that the call is over elsewhere has the status of the call.
        const status = overStatuses.find((each) => each === it.status) ?? 'none'
        const isShown = ends.length === 0 ? reason in endReasons : ends.includes(status as OverStatus)
        expect({ path, reason, status, isShown }).toEqual({ path, reason, status, isShown: true })
        examples++
      }
    }
    expect(examples).toBeGreaterThan(10)
  })

  test('end-reasons.md says of each reason what it means, and who hears of it', () => {
    const rows = pageOf('end-reasons.md').split('\n')
    for (const [reason, { ends, meaning }] of Object.entries<EndReasonDefinition>(endReasons)) {
      const row = rows.find((line) => line.startsWith(`| \`${reason}\` |`)) ?? ''
      expect(row).toContain(`| ${ends.map((status) => `\`${status}\``).join(', ')} | ${meaning} | \`call.`)
    }
  })

  test('[END2] the call states of protocol.md give no end for another reason than the registry', () => {
    const text = readFileSync(join(root, 'docs', 'protocol.md'), 'utf8')
    const rows = [...text.matchAll(/^\|[^|]*\|[^|]*\|([^|]*)\|([^|]*)\|[^|]*\|$/gm)]
    const ends = rows.flatMap(([, to = '', reason = '']) => {
      const status = overStatuses.find((it) => to.trim().endsWith(it))
      return status === undefined ? [] : [[status, reason.trim().replace(/,.*/, '')] as const]
    })
    expect(ends.length).toBeGreaterThan(8)
    for (const [status, reason] of ends) {
      const registry = Object.entries<EndReasonDefinition>(endReasons)
      expect(registry.filter(([, it]) => it.ends.includes(status)).map(([it]) => it)).toContain(reason)
    }
    for (const reason of Object.keys(endReasons)) expect(text).toContain(reason)
  })

  test('limits.md has every limit of the configuration and every name of RATE_LIMITED', () => {
    const page = pageOf('limits.md')
    const limits = Object.values(settings).filter(
      ({ type, name }) => /count|burst/.test(type.label) || /_MAX_/.test(name),
    )
    expect(limits.length).toBeGreaterThan(10)
    for (const { name } of limits) expect(page).toContain(`\`${name}\``)
    for (const name of limitNames) expect(page).toContain(`limit: "${name}"`)
    expect(loadConfig(whileDeveloping)).toMatchObject({ ok: true, warnings: [] })
  })

  test('tables have as many cells in every row as in their head', () => {
    for (const [name, text] of createDocuments()) {
      if (!name.endsWith('.md')) continue
      let columns = 0
      for (const line of text.split('\n')) {
        const cells = line.startsWith('|') ? line.replaceAll('\\|', '').split('|').length : 0
        if (cells > 0 && columns > 0) expect({ name, line, cells }).toEqual({ name, line, cells: columns })
        columns = cells
      }
    }
  })

  test('call-states.md has every state, in a table and in the diagram', () => {
    const text = pageOf('call-states.md')
    const diagram = text.slice(text.indexOf('```mermaid'), text.lastIndexOf('```'))
    for (const status of callStatuses) {
      expect(diagram).toMatch(new RegExp(`--> ${status}[:\n]|^ {2}${status} -->`, 'm'))
      expect(text).toMatch(new RegExp(`^## .*\\b${status}\\b`, 'm'))
    }
  })
})
