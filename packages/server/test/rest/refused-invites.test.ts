import { afterAll, beforeAll, expect, test } from 'bun:test'
import { CallPage } from '@ringwire/protocol/backend'
import { createValidator } from '@ringwire/protocol/validate'
import { created, ringing } from '../../src/ports/call-store.fixture.ts'
import { credentials, failureOf, openStores, type RestService, startRest } from './rest-service.ts'

const ann = { product: 'shop', role: 'customer', userId: 'ann' }
const bob = { product: 'shop', role: 'agent', userId: 'bob' }
const who = 'user_id=bob&role=agent'
let shared: Awaited<ReturnType<typeof openStores>>
let rest: RestService
/** What each is, after when it was. */
const names: string[] = []

beforeAll(async () => {
  shared = await openStores()
  rest = startRest({ stores: shared.stores })
  const { calls, timeline } = shared.stores
  // Some have the same millisecond: of these calls come first.
  for (const at of [5_000, 5_000, 6_000, 8_000]) {
    const call = ringing(ann, bob, { startedAt: at })
    await calls.transition(call, () => ({ steps: [created(call)] }))
    names.push(`${at} call`)
  }
  for (const [n, at] of [4_000, 5_000, 5_000, 7_000, 9_000].entries()) {
    const ref = { product: 'shop', callUuid: crypto.randomUUID() }
    const asker = { role: bob.role, userId: bob.userId }
    await timeline.add([{ ...ref, id: `x-${n}`, at, what: 'refused', side: 'caller', asker, detail: {} }])
    names.push(`${at} refused`)
  }
})
afterAll(async () => {
  await rest.stop()
  await shared.close()
})

const ask = (query: string) => rest.get(`/v1/server/calls?${query}`, { headers: credentials() })
async function page(query: string): Promise<CallPage> {
  const response = await ask(query)
  const body = await response.json()
  expect([query, response.status, createValidator(CallPage)(body).ok]).toEqual([query, 200, true])
  return body as CallPage
}
const latestFirst = (a: string, b: string) => Number.parseInt(b, 10) - Number.parseInt(a, 10) || a.localeCompare(b)

/** In the order of a page. */
function namesOf({ data, refused = [] }: CallPage): string[] {
  const calls = data.map(({ started_at }) => `${Date.parse(started_at)} call`)
  return [...calls, ...refused.map(({ entry }) => `${Date.parse(entry.at)} refused`)].sort(latestFirst)
}

test('[TRACE1] with refused=1 refused invites of a participant are among its calls, each once, whatever the pages', async () => {
  for (const limit of [1, 2, 3, 5, 9, 100]) {
    const seen: string[] = []
    let cursor: string | null = ''
    for (let pages = 0; cursor !== null; pages++) {
      expect(pages).toBeLessThan(12)
      const shown: CallPage = await page(`refused=1&${who}&limit=${limit}&cursor=${cursor}`)
      expect(namesOf(shown).length).toBeLessThanOrEqual(limit)
      seen.push(...namesOf(shown))
      cursor = shown.next_cursor
    }
    expect([limit, seen]).toEqual([limit, [...names].sort(latestFirst)])
  }
})

test('[TRACE1] they are shown to who asks for them, of one participant, and not before since', async () => {
  expect((await page(who)).refused).toBeUndefined()
  expect((await page(`refused=1&${who}&since=1970-01-01T00:00:07Z`)).refused).toHaveLength(2)
  expect((await page('refused=1&user_id=ann&role=customer')).refused).toEqual([])
  for (const query of ['refused=1', `refused=2&${who}`, `refused=1&status=live&${who}`]) {
    expect([query, await failureOf(await ask(query))]).toMatchObject([query, { status: 400, code: 'INVALID_QUERY' }])
  }
})
