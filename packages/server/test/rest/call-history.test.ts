import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type CallRecord, HistoryResponse } from '@ringwire/protocol/rest'
import { createValidator } from '@ringwire/protocol/validate'
import type { Participant } from '../../src/call/call.ts'
import { actorOf, durations, inviteCommand } from '../../src/call/decide.fixture.ts'
import { decide } from '../../src/call/decide.ts'
import { decideInvite } from '../../src/call/invite.ts'
import { noCredentials, signedTokens } from './bad-tokens.ts'
import { credentials, failureOf, goodBody, keys, openStores, type RestService, startRest } from './rest-service.ts'

const start = Date.UTC(2026, 0, 1)
const ann: Participant = { product: 'shop', role: 'customer', userId: 'ann' }
const bob: Participant = { product: 'shop', role: 'agent', userId: 'bob' }

let shared: Awaited<ReturnType<typeof openStores>>
let rest: RestService
beforeAll(async () => {
  shared = await openStores()
  rest = startRest({ stores: shared.stores, env: { RINGWIRE_REST_RATE: 'off' } })
})
afterAll(async () => {
  await rest.stop()
  await shared.close()
})

/** One call as the service drives it: invited at `at`, and declined at once or hung up after a minute. */
async function call(caller: Participant, callee: Participant, at: number, how: 'rings' | 'declined' | 'hangup') {
  const callUuid = crypto.randomUUID()
  const { calls } = shared.stores
  const [from, to] = [actorOf(caller), actorOf(callee)]
  await calls.invite(caller, callee, callUuid, (seen) => decideInvite(seen, inviteCommand(from, callee, callUuid), at))
  const ref = { product: caller.product, callUuid }
  const run = (command: Parameters<typeof decide>[1], when: number) =>
    calls.transition(ref, (stored) => decide(stored, command, when, durations))
  if (how === 'declined') await run({ type: 'reject', actor: to, reason: null, rung: [] }, at + 2000)
  if (how === 'hangup') {
    await run({ type: 'accept', actor: to }, at + 1000)
    await run({ type: 'connected', actor: to }, at + 1500)
    await run({ type: 'end', actor: from, reason: null }, at + 61_000)
  }
  return callUuid
}

const bearer = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } })
const tokenFor = (participant: Participant, ttlS?: number) =>
  rest.token({ participant, ...(ttlS === undefined ? {} : { ttlS }) })

interface Page {
  success: boolean
  data: CallRecord[]
  next_cursor: string | null
}
async function page(participant: Participant, query = ''): Promise<Page> {
  const response = await rest.get(`/v1/calls/history${query}`, bearer(tokenFor(participant)))
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as Page
}

describe('success', () => {
  test('[interface] GET /v1/calls/history 200: every field', async () => {
    const one: Participant = { ...ann, userId: 'every-field' }
    const uuid = await call(one, bob, start, 'hangup')
    const response = await rest.get('/v1/calls/history', bearer(tokenFor(one)))
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('cache-control')).toBe('no-store')
    const body = await response.json()
    expect(createValidator(HistoryResponse)(body).ok).toBe(true)
    expect(body).toEqual({
      success: true,
      next_cursor: null,
      data: [
        {
          call_uuid: uuid,
          status: 'ended',
          context_type: 'appointment',
          context_id: '4711',
          started_at: '2026-01-01T00:00:00.000Z',
          ended_at: '2026-01-01T00:01:01.000Z',
          end_reason: 'hangup',
          direction: 'outgoing',
          peer: { user_id: 'bob', role: 'agent', display_name: 'Name of bob' },
          call_type: 'audio',
          accepted_at: '2026-01-01T00:00:01.000Z',
          connected_at: '2026-01-01T00:00:01.500Z',
          duration_ms: 60_000,
        },
      ],
    })
  })

  test('[HIST2] ended_at is null, and present, while a call is not over', async () => {
    const one: Participant = { ...ann, userId: 'still-rings' }
    await call(one, { ...bob, userId: 'still-rung' }, start, 'rings')
    const { data } = await page(one)
    expect(data).toMatchObject([{ status: 'ringing', ended_at: null, duration_ms: null, end_reason: null }])
  })

  test('[ID1] a participant sees their own calls alone: role and product are part of who they are', async () => {
    const one: Participant = { ...ann, userId: 'own' }
    await call(one, { ...bob, userId: 'own' }, start, 'declined')
    expect((await page(one)).data).toMatchObject([{ direction: 'outgoing', peer: { role: 'agent' } }])
    expect((await page({ ...one, role: 'agent' })).data).toMatchObject([
      { direction: 'incoming', peer: { role: 'customer' } },
    ])
    expect((await page({ ...one, product: 'clinic' })).data).toEqual([])
    expect((await page({ ...one, role: 'doctor' })).data).toEqual([])
  })

  test('[interface] the scheme of the Authorization header is read in any case', async () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer  ']) {
      const headers = { Authorization: `${scheme} ${tokenFor(ann)}` }
      expect((await rest.get('/v1/calls/history', { headers })).status).toBe(200)
    }
  })
})

describe('order, limit and pages', () => {
  const busy: Participant = { ...ann, userId: 'busy' }
  const uuids: string[] = []
  beforeAll(async () => {
    // Every third call starts in the same millisecond as the previous one.
    for (let i = 0; i < 105; i++) {
      uuids.push(await call(busy, { ...bob, userId: `b${i}` }, start + (i - (i % 3 === 2 ? 1 : 0)) * 1000, 'declined'))
    }
  })

  test('[HIST1] newest first, tie by call_uuid', async () => {
    const { data } = await page(busy, '?limit=100')
    const sorted = [...data].sort((a, b) =>
      a.started_at === b.started_at ? (a.call_uuid < b.call_uuid ? 1 : -1) : a.started_at < b.started_at ? 1 : -1,
    )
    expect(data.map((record) => record.call_uuid)).toEqual(sorted.map((record) => record.call_uuid))
    expect(data[0]?.started_at).toBe(new Date(start + 104_000 - 1000).toISOString())
  })

  test('[HIST1] limit: default 30, unreadable or too small 30, too large 100', async () => {
    for (const [query, length] of [
      ['', 30],
      ['?limit=', 30],
      ['?limit=abc', 30],
      ['?limit=1e2', 30],
      ['?limit=7', 7],
      ['?limit=7.9', 7],
      ['?limit=+7', 7],
      ['?limit=0', 30],
      ['?limit=-3', 30],
      ['?limit=100', 100],
      ['?limit=101', 100],
      ['?limit=999999999999', 100],
      ['?limit=3&limit=9', 3],
      ['?LIMIT=3', 30],
    ] as const) {
      expect([query, (await page(busy, query)).data.length]).toEqual([query, length])
    }
  })

  test('[HIST2] the pages together are all calls, each once', async () => {
    const seen: string[] = []
    let cursor: string | null = ''
    let pages = 0
    while (cursor !== null) {
      const query: string = cursor === '' ? '?limit=20' : `?limit=20&cursor=${cursor}`
      const { data, next_cursor } = await page(busy, query)
      seen.push(...data.map(({ call_uuid }) => call_uuid))
      cursor = next_cursor
      pages++
    }
    expect(pages).toBe(6)
    expect(seen).toHaveLength(uuids.length)
    expect(new Set(seen)).toEqual(new Set(uuids))
  })

  test('[HIST2] the last page has no cursor, also when it is full', async () => {
    const { next_cursor } = await page(busy, '?limit=100')
    const last = await page(busy, `?limit=5&cursor=${next_cursor}`)
    expect([last.data.length, last.next_cursor]).toEqual([5, null])
  })

  test('[HIST2] an unreadable cursor gives the first page; another’s gives nothing of theirs', async () => {
    const first = await page(busy, '?limit=2')
    for (const cursor of ['', 'x', '%00', '%ff', 'a'.repeat(5000), `${first.next_cursor}x%20`, "'--"]) {
      expect((await page(busy, `?limit=2&cursor=${cursor}`)).data).toEqual(first.data)
    }
    const nobody: Participant = { ...ann, userId: 'nobody' }
    expect((await page(nobody, `?cursor=${first.next_cursor}`)).data).toEqual([])
  })
})

describe('the codes of the interface', () => {
  const ask = (authorization: string | undefined) =>
    rest.get('/v1/calls/history', { headers: authorization === undefined ? {} : { Authorization: authorization } })

  test('[interface] GET /v1/calls/history 401 AUTH_TOKEN_REQUIRED', async () => {
    const token = tokenFor(ann)
    for (const value of noCredentials(token)) {
      const response = await ask(value)
      expect(response.headers.get('www-authenticate')).toBe('Bearer')
      expect(await failureOf(response)).toMatchObject({ status: 401, code: 'AUTH_TOKEN_REQUIRED' })
    }
    // A token in the URL is not a credential.
    const inUrl = await rest.get(`/v1/calls/history?token=${token}&access_token=${token}`)
    expect(await failureOf(inUrl)).toMatchObject({ code: 'AUTH_TOKEN_REQUIRED' })
  })

  test('[interface] GET /v1/calls/history 401 AUTH_TOKEN_INVALID', async () => {
    const { good, bad } = signedTokens(tokenFor(ann), rest.clock.at)
    expect((await ask(`Bearer ${good}`)).status).toBe(200)
    for (const [name, value] of Object.entries(bad)) {
      const response = await ask(`Bearer ${value}`)
      expect(response.headers.get('www-authenticate')).toContain('invalid_token')
      const { status, code } = await failureOf(response)
      expect([name, status, code]).toEqual([name, 401, 'AUTH_TOKEN_INVALID'])
    }
  })

  test('[interface] GET /v1/calls/history 500 CALL_HISTORY_FAILED', async () => {
    const broken = await openStores()
    const service = startRest({ stores: broken.stores })
    try {
      const token = service.token()
      // The store is really gone.
      await broken.close()
      const response = await service.get('/v1/calls/history', bearer(token))
      expect(response.headers.get('access-control-allow-origin')).toBe('*')
      expect(await failureOf(response)).toEqual({
        status: 500,
        code: 'CALL_HISTORY_FAILED',
        message: 'The call history could not be loaded.',
      })
      expect(service.log.join('')).toContain('the call history could not be read')
      expect(service.log.join('')).not.toContain(token)
    } finally {
      await service.stop()
    }
  })
})

describe('around it', () => {
  test('[TOK5] a bad token is 401, however many came, and spends nothing of the budget of product credentials', async () => {
    const service = startRest({ stores: shared.stores, env: { RINGWIRE_TOKEN_FAIL_RATE_IP: '2/60' } })
    const ask = (token: string) => service.get('/v1/calls/history', bearer(token))
    const guess = () => service.ask(goodBody, credentials({ id: keys.shop.id, secret: 'wrong' }))
    try {
      for (let i = 0; i < 5; i++) expect((await ask('rubbish')).status).toBe(401)
      const statuses = []
      for (let i = 0; i < 3; i++) statuses.push((await guess()).status)
      expect(statuses).toEqual([401, 401, 429])
      expect((await ask('rubbish')).status).toBe(401)
      expect((await ask(service.token())).status).toBe(200)
    } finally {
      await service.stop()
    }
  })

  test('[HIST2] CORS: any origin by default, on answers, failures and preflights', async () => {
    const origin = { Origin: 'https://app.example.com' }
    const good = await rest.get('/v1/calls/history', { headers: { ...origin, ...bearer(tokenFor(ann)).headers } })
    const bad = await rest.get('/v1/calls/history', { headers: origin })
    for (const { headers } of [good, bad]) {
      expect(headers.get('access-control-allow-origin')).toBe('*')
      expect(headers.get('access-control-allow-credentials')).toBeNull()
    }
    const preflight = await rest.get('/v1/calls/history', {
      method: 'OPTIONS',
      headers: { ...origin, 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': 'authorization' },
    })
    expect(preflight.status).toBe(204)
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*')
    expect(preflight.headers.get('access-control-allow-methods')).toContain('GET')
    expect(preflight.headers.get('access-control-allow-headers')?.toLowerCase()).toContain('authorization')
  })

  test('[HIST2] CORS follows RINGWIRE_ALLOWED_ORIGINS', async () => {
    const env = { RINGWIRE_ALLOWED_ORIGINS: 'https://app.example.com,https://two.example.com' }
    const service = startRest({ stores: shared.stores, env })
    const as = (Origin: string, method = 'GET') => service.get('/v1/calls/history', { method, headers: { Origin } })
    try {
      for (const method of ['GET', 'OPTIONS']) {
        const allowed = await as('https://app.example.com', method)
        expect(allowed.headers.get('access-control-allow-origin')).toBe('https://app.example.com')
        expect(allowed.headers.get('vary')).toBe('Origin')
        for (const origin of ['https://evil.example.com', 'https://app.example.com.evil.test', 'null']) {
          const refused = await as(origin, method)
          expect(refused.headers.get('vary')).toBe('Origin')
          const grants = [...refused.headers.keys()].filter((name) => name.startsWith('access-control'))
          expect(grants).toEqual([])
        }
      }
    } finally {
      await service.stop()
    }
  })
})
