import { expect, test } from 'bun:test'
import { references } from './contents.ts'
import type { AsyncApi } from './events.ts'
import { readProjectFile } from './project.ts'
import type { OpenApi } from './rest.ts'
import { fieldTable, plain, typeOf } from './schema.ts'

const openApi = JSON.parse(readProjectFile('docs/generated/openapi.json')) as OpenApi
const asyncApi = JSON.parse(readProjectFile('docs/generated/asyncapi.json')) as AsyncApi
const pages = references(readProjectFile)
const headings = pages.flatMap(({ text }) => [...text.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading))

test('the references have every endpoint, webhook, schema and message once', () => {
  const endpoints = Object.entries(openApi.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `\`${method.toUpperCase()} ${path}\``),
  )
  const webhooks = Object.keys(openApi.webhooks).map((name) => `\`${name}\``)
  const messages = Object.values(asyncApi.operations).flatMap(({ messages }) =>
    messages.map(({ $ref }) => asyncApi.components.messages[$ref.replace(/^.*\//, '')]?.name ?? $ref),
  )
  const others = ['How a client authenticates', ...Object.values(asyncApi.operations).map(({ title }) => title)]
  const wanted = [...endpoints, ...webhooks, ...Object.keys(openApi.components.schemas), ...messages, ...others]
  expect(endpoints.length).toBeGreaterThan(30)
  expect(messages.length).toBeGreaterThan(30)
  expect(headings.toSorted()).toEqual(wanted.toSorted())
})

test('a field says whether it may be missing, what it may be, and what it is', () => {
  const table = fieldTable({
    required: ['id', 'peer'],
    properties: {
      id: { type: 'string', minLength: 1, maxLength: 64, description: 'Of the <call> | one.' },
      peer: { type: 'object', required: ['role'], properties: { role: { enum: ['agent', 'customer'] } } },
      notes: { type: 'array', maxItems: 5, items: { properties: { at: { type: 'string', format: 'date-time' } } } },
      next: { anyOf: [{ type: 'integer', minimum: 0, description: 'ms.' }, { type: 'null' }] },
      call: { $ref: '#/components/schemas/CallView' },
    },
  })
  expect(table.split('\n').slice(2, -1)).toEqual([
    '| `id` | string (1 to 64 characters) | Of the &lt;call\\> \\| one. |',
    '| `peer` | object |  |',
    '| `peer.role` | `"agent"`, `"customer"` |  |',
    '| `notes` ? | list of any (at most 5 entries) |  |',
    '| `notes[].at` ? | string (date-time) |  |',
    '| `next` ? | integer (at least 0) or null | ms. |',
    '| `call` ? | [CallView](/reference/rest/schemas.md#callview) |  |',
  ])
  expect(fieldTable({ type: 'string' })).toBe('')
  expect(typeOf({ const: 'call.end' })).toBe('`"call.end"`')
})

test('a text of a schema shows as it is', () => {
  expect(plain('a_b *c* `d` <e>\n\nf | g')).toBe('a\\_b \\*c\\* \\`d\\` &lt;e\\><br>f \\| g')
})
