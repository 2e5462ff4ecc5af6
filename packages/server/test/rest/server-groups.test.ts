import { afterAll, beforeAll, expect, test } from 'bun:test'
import { GroupPage, GroupShown } from '@ringwire/protocol/backend'
import { StoreError } from '../../src/ports/store-error.ts'
import { asker, credentials, failureOf, keys, openStores, type RestService, read, startRest } from './rest-service.ts'

const path = '/v1/server/groups'
let shared: Awaited<ReturnType<typeof openStores>>
let rest: RestService
beforeAll(async () => {
  shared = await openStores()
  rest = startRest({ stores: shared.stores })
})
afterAll(async () => {
  await rest.stop()
  await shared.close()
})

const ask = asker(() => rest, path)

const codeOf = async (asked: Promise<Response>) => {
  const { status, code, message } = await failureOf(await asked)
  return [status, code, message]
}

const group = { members: ['ben', 'eve'], strategy: 'all' }
const times = { member_ring_ms: 15_000, ring_ms: 45_000 }

test('[GROUP1] a group is put, replaced whole, shown and removed; times that are not given are the defaults', async () => {
  const shown = { role: 'agent', group: 'a / ö', ...group, ...times }
  const below = `/agent/${encodeURIComponent('a / ö')}`
  expect(await read(GroupShown, ask('PUT', below, { ...group, more: 1 }))).toEqual(shown)
  const next = { members: ['eve'], strategy: 'longest_idle', member_ring_ms: 5_000, ring_ms: 600_000 }
  expect(await read(GroupShown, ask('PUT', below, next))).toEqual({ ...shown, ...next })
  expect(await read(GroupShown, ask('GET', below))).toEqual({ ...shown, ...next })
  expect(await read(GroupShown, ask('PUT', below, { ...group, member_ring_ms: null }))).toEqual(shown)
  expect((await ask('DELETE', below)).status).toBe(204)
  for (const method of ['GET', 'DELETE'])
    expect((await codeOf(ask(method, below))).slice(0, 2)).toEqual([404, 'NOT_FOUND'])
})

test('[GROUP1] what a group may not be is refused, and the message names the field', async () => {
  const bad: [Record<string, unknown>, RegExp][] = [
    [{ members: 'ben' }, /^members/],
    [
      { members: ['eve', 'ben "b"', 'max', 'ben "b"'] },
      /^members has "ben \\"b\\"" twice: leave one of the two out\.$/,
    ],
    [{ members: Array.from({ length: 501 }, (_, n) => `m${n}`) }, /^members must have at most 500 items\.$/],
    [{ members: [''] }, /^members/],
    [{ members: ['x'.repeat(256)] }, /^members/],
    [{ members: ['a\0'] }, /^members/],
    [{ members: ['..'] }, /^members/],
    [{ strategy: 'some' }, /^strategy/],
    [{ strategy: undefined }, /^strategy/],
    [{ members: undefined }, /^members/],
    [{ member_ring_ms: 4_999 }, /^member_ring_ms/],
    [{ member_ring_ms: 60_001 }, /^member_ring_ms/],
    [{ ring_ms: 4_999 }, /^ring_ms/],
    [{ ring_ms: 600_001 }, /^ring_ms/],
    [{ ring_ms: 5_000.5 }, /^ring_ms/],
  ]
  for (const [change, message] of bad) {
    const refused = await codeOf(ask('PUT', '/agent/bad', { ...group, ...change }))
    expect(refused).toEqual([400, 'INVALID_REQUEST_BODY', expect.stringMatching(message)])
  }
  expect((await ask('GET', '/agent/bad')).status).toBe(404)
  const edges = { members: [], member_ring_ms: 60_000, ring_ms: 5_000 }
  expect(await read(GroupShown, ask('PUT', '/agent/edges', { ...group, ...edges }))).toMatchObject(edges)
})

test('[ID3] no URL path can carry a group that is called . or ..', async () => {
  const raw = await rest.raw(
    [
      `PUT ${path}/agent/%2e%2e%00 HTTP/1.1`,
      'Host: x',
      ...Object.entries(credentials()).map(([name, value]) => `${name}: ${value}`),
      `Content-Length: ${JSON.stringify(group).length}`,
      '',
      JSON.stringify(group),
    ].join('\r\n'),
  )
  expect(raw).toMatch(/^HTTP\/1\.1 400[\s\S]*INVALID_REQUEST_BODY/)
  expect((await ask('PUT', `/agent/${'g'.repeat(256)}`, group)).status).toBe(400)
})

test('[GROUP1] [HTTP1] the body of a group may have 160 KiB, and no other body more than before', async () => {
  const members = Array.from({ length: 500 }, (_, n) => `${n}`.padStart(255, 'm'))
  expect((await read(GroupShown, ask('PUT', '/agent/large', { ...group, members }))).members).toEqual(members)
  const tooLarge = { ...group, pad: 'x'.repeat(160 * 1024) }
  expect((await codeOf(ask('PUT', '/agent/large', tooLarge))).slice(0, 2)).toEqual([413, 'REQUEST_BODY_TOO_LARGE'])
  const stream = (bytes: number) =>
    rest.get(`${path}/agent/streamed`, {
      method: 'PUT',
      headers: credentials(),
      body: new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode(JSON.stringify({ ...group, pad: 'x'.repeat(bytes) })))
          controller.close()
        },
      }),
    })
  expect([(await stream(100_000)).status, (await stream(170_000)).status]).toEqual([200, 413])
  const other = await rest.get('/v1/server/product', {
    method: 'PATCH',
    headers: credentials(),
    body: JSON.stringify({ pad: 'x'.repeat(17 * 1024) }),
  })
  expect(other.status).toBe(413)
})

test('[GROUP1] groups are listed page by page, of one product', async () => {
  for (const name of ['c', 'a', 'b']) await ask('PUT', `/list-role/${name}`, group)
  const theirs = await ask('PUT', '/list-role/d?product=clinic', group, credentials(keys.both))
  expect(theirs.status).toBe(200)
  const names: string[] = []
  for (let cursor: string | null = '', pages = 0; cursor !== null && pages < 20; pages++) {
    const { data, next_cursor } = await read(GroupPage, ask('GET', `?limit=2&cursor=${cursor}`))
    expect(data.length).toBeLessThanOrEqual(2)
    names.push(...data.map(({ role, group: name }: Record<string, string>) => `${role}/${name}`))
    cursor = next_cursor
  }
  expect(names.filter((name) => name.startsWith('list-role/'))).toEqual(['list-role/a', 'list-role/b', 'list-role/c'])
  expect(new Set(names).size).toBe(names.length)
  const first = await read(GroupPage, ask('GET', ''))
  for (const odd of ['?cursor=nothing', '?limit=0', '?limit=x'])
    expect(await read(GroupPage, ask('GET', odd))).toEqual(first)
  expect((await ask('GET', '/list-role/d')).status).toBe(404)
})

test('[ADM3] a group that was removed is in the audit log, also where its calls could not be reached then', async () => {
  const { stores } = shared
  const away = () => Promise.reject(new StoreError('unavailable', 'the calls are away'))
  // Entries of one instant have no order.
  const now = rest.clock.at + 1
  const failing = startRest({ stores: { ...stores, calls: { ...stores.calls, list: away } }, now })
  try {
    await ask('PUT', '/agent/left', group)
    const remove = asker(() => failing, path)('DELETE', '/agent/left')
    expect((await failureOf(await remove)).status).toBe(503)
    expect((await ask('DELETE', '/agent/left')).status).toBe(404)
    const entries = await stores.audit.list({ product: 'shop', before: undefined, limit: 100 })
    const ofGroup = entries.filter(({ subject }) => subject === 'agent/left')
    expect(ofGroup.map(({ action, detail }) => ({ action, detail }))).toEqual([
      { action: 'group.remove', detail: { outcome: 'begun' } },
      { action: 'group.put', detail: { members: 2, strategy: 'all' } },
    ])
  } finally {
    await failing.stop()
  }
})
