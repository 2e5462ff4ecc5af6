import { afterAll, beforeAll, expect, test } from 'bun:test'
import { block } from '@ringwire/testkit/documents'
import { invite } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { createRingTickets } from '../../src/auth/ring-ticket.ts'

/** docs/push.md: what a ring ticket opens, asked of the real service. What differs from run to run has one word. */
const key = Buffer.alloc(32, 7)
const service = new Service({ RINGWIRE_JWT_SECRETS: `k:${key.toString('base64url')}` })
beforeAll(() => service.start())
afterAll(() => service.dispose())

const words: Readonly<Record<string, unknown>> = {
  call_uuid: '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55',
  expires_at: '2026-03-02T09:05:45.000Z',
}

test('[TICK1] docs/push.md shows what the service answers to a ring ticket', async () => {
  const order = { context_type: 'order', context_id: '1042' }
  const ann = await service.connect({ user_id: 'ann', role: 'customer', display_name: 'Ann', ...order })
  const callUuid = await invite(ann, 'ben', order)
  const ben = { product: 'shop', role: 'agent', userId: 'ben' }
  const ring = { product: 'shop', callUuid, ringExpiresAt: Date.now() + 45_000 }
  const ticket = createRingTickets({ secrets: [{ kid: 'k', key }], now: Date.now }).sign(ring, ben)

  const lines: string[] = []
  const ask = async (method: string, path: string, token = ticket) => {
    const headers = { Authorization: `Bearer ${token}` }
    const response = await fetch(service.url + path, { method, headers })
    const body = JSON.stringify(await response.json(), (name, value) => words[name] ?? value)
    lines.push(`→ ${method} ${path}`, `← ${response.status} ${body}`)
  }
  await ask('GET', '/v1/call/ring')
  await ask('POST', '/v1/call/ring/alerting')
  await ask('POST', '/v1/call/ring/reject')
  lines.push('(The call is over.)')
  await ask('GET', '/v1/call/ring')
  lines.push('(The ticket is none, or over for long.)')
  await ask('GET', '/v1/call/ring', `${ticket.slice(0, -8)}${'A'.repeat(8)}`)
  expect(block('docs/push.md', 'text', '## What the ticket opens')).toBe(`${lines.join('\n')}\n`)
})
