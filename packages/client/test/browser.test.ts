import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openBrowser } from '@ringwire/testkit/browser'
import { someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import type { Browser, Page } from 'playwright-core'
import { online, person, stateOf, until } from './support/people.ts'

/** What only a browser has: pages that are loaded again or duplicated, a network that says that it comes and goes. */
let service: Service
let browser: Browser
let server: ReturnType<typeof Bun.serve>
/** What the backend answers, one after another; then it gives tokens. */
let answers: (() => Response | Promise<Response>)[] = []

beforeAll(async () => {
  service = await new Service().start()
  const entry = new URL('support/page/tab.ts', import.meta.url).pathname
  const { outputs } = await Bun.build({ entrypoints: [entry], target: 'browser' })
  const script = await outputs[0]!.text()
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch({ url }) {
      const { pathname, searchParams } = new URL(url)
      if (pathname === '/token') {
        const answer = answers.shift()
        if (answer) return answer()
        const given = await service.issue({ user_id: searchParams.get('user') ?? '', role: 'agent' })
        return Response.json(searchParams.has('hasty') ? soon(given) : given)
      }
      const type = pathname === '/page.js' ? 'text/javascript' : 'text/html'
      const body = pathname === '/page.js' ? script : '<!doctype html><script type="module" src="/page.js"></script>'
      return new Response(body, { headers: { 'content-type': type } })
    },
  })
  browser = await openBrowser()
})
afterAll(async () => {
  await browser.close()
  await server.stop(true)
  await service.dispose()
})

/** A token that lasts for 50 s: a device that slept for 45 s needs another one. */
function soon<T>(given: T): T & { expires_at: string } {
  return { ...given, expires_at: new Date(Date.now() + 50_000).toISOString() }
}

async function state(page: Page) {
  await page.waitForFunction(() => window.tab?.client.state.name === 'online')
  return page.evaluate(() => {
    const { state } = window.tab.client
    return state.name === 'online' ? { sessionId: state.sessionId, recovered: state.recovered } : undefined
  })
}

async function open(userId: string): Promise<Page> {
  const context = await browser.newContext()
  const page = await context.newPage()
  await page.goto(`${server.url}?user=${userId}`)
  return page
}

test('[RES1] a page that is loaded again goes on with its session and its call', async () => {
  const userId = someone('callee')
  const page = await open(userId)
  const first = await state(page)
  await page.evaluate(() => window.tab.client.on('incoming', (call) => void call.accept()))
  const caller = person(service, someone('caller'), 'customer')
  await online(caller)
  const out = caller.client.call({ userId, role: 'agent' })
  await stateOf(out, 'accepted')
  await page.reload()
  expect(await state(page)).toEqual({ sessionId: first!.sessionId, recovered: true })
  const calls = await page.evaluate(() =>
    window.tab.client.calls.map(({ callUuid, state, direction }) => ({ callUuid, state, direction })),
  )
  expect(calls).toEqual([{ callUuid: out.callUuid, state: { name: 'accepted' }, direction: 'incoming' }])
  await page.evaluate(() => window.tab.client.calls[0]?.end())
  expect(await stateOf(out, 'over')).toMatchObject({ status: 'ended', reason: 'hangup' })
  caller.client.close()
  await page.context().close()
})

test('a live call goes on by itself after a reload or a link: elsewhere it waits for a gesture', async () => {
  const userId = someone('callee')
  const page = await open(userId)
  await state(page)
  await page.evaluate(() => window.tab.client.on('incoming', (call) => void call.accept()))
  const caller = person(service, someone('caller'), 'customer')
  await online(caller)
  const out = caller.client.call({ userId, role: 'agent' })
  await stateOf(out, 'accepted')
  const found = async (tab: Page) => {
    const { recovered } = (await state(tab))!
    return tab.evaluate(
      (recovered) => ({
        ...{ recovered, calls: window.tab.client.calls.length, waits: window.tab.client.restorable.length },
      }),
      recovered,
    )
  }
  await page.reload()
  expect(await found(page)).toEqual({ recovered: true, calls: 1, waits: 0 })
  // A link within the application.
  await page.evaluate(() =>
    Object.assign(document.body.appendChild(document.createElement('a')), { href: location.href, id: 'link' }).click(),
  )
  await page.waitForFunction(() => !document.querySelector('#link'))
  expect(await found(page)).toEqual({ recovered: true, calls: 1, waits: 0 })
  // Left, and gone back to: so does a browser load a tab again that was closed.
  await page.goto('about:blank')
  await page.goBack()
  expect(await found(page)).toEqual({ recovered: true, calls: 0, waits: 1 })
  // The page may know that it is back before the other side has heard of it.
  await until('the page is back', caller.client, () => out.peerState.away === null)
  // A reload of that page is one again.
  await page.reload()
  expect(await found(page)).toEqual({ recovered: true, calls: 1, waits: 0 })
  // Another visit of the same tab.
  await page.goto(page.url())
  expect(await found(page)).toEqual({ recovered: true, calls: 0, waits: 1 })
  const resumed = await page.evaluate(() => {
    const call = window.tab.client.restorable[0]!.resume()
    return [call.state.name, window.tab.client.calls.length, window.tab.client.restorable.length]
  })
  expect(resumed).toEqual(['accepted', 1, 0])
  // The tab is closed, and opened again with what it had.
  const kept = await page.evaluate(() => ({ ...sessionStorage }))
  const context = page.context()
  await page.close({ runBeforeUnload: false })
  await context.addInitScript((kept) => {
    for (const [key, value] of Object.entries(kept)) sessionStorage.setItem(key, `${value}`)
    sessionStorage.setItem('ringwire.left', `${Date.now()}`)
  }, kept)
  const again = await context.newPage()
  await again.goto(`${server.url}?user=${userId}`)
  expect(await found(again)).toMatchObject({ calls: 0, waits: 1 })
  await again.evaluate(() => window.tab.client.restorable[0]!.end())
  expect(await stateOf(out, 'over')).toMatchObject({ status: 'ended', reason: 'hangup' })
  caller.client.close()
  await context.close()
})

test('a tab that is duplicated has a copy of the storage, and leaves the session to the one that has it', async () => {
  const page = await open(someone('callee'))
  const first = await state(page)
  const opened = page.context().waitForEvent('page')
  await page.evaluate(() => {
    sessionStorage.setItem('proof', 'a copy')
    window.open(location.href)
  })
  const twin = await opened
  const second = await state(twin)
  expect(await twin.evaluate(() => sessionStorage.getItem('proof'))).toBe('a copy')
  expect(second!.recovered).toBe(false)
  expect(second!.sessionId).not.toBe(first!.sessionId)
  expect(await state(page)).toEqual(first!)
  for (const [tab, before] of [
    [twin, second],
    [page, first],
  ] as const) {
    await tab.reload()
    expect(await state(tab)).toEqual({ sessionId: before!.sessionId, recovered: true })
  }
  await page.context().close()
})

test('a network that goes is asked for, and one that comes back brings the session at once', async () => {
  const userId = someone('callee')
  const page = await open(userId)
  const first = await state(page)
  const caller = person(service, someone('caller'), 'customer')
  await online(caller)
  await page.context().setOffline(true)
  await page.waitForFunction(() => window.tab.client.state.name !== 'online')
  await page.context().setOffline(false)
  expect(await state(page)).toEqual({ sessionId: first!.sessionId, recovered: true })
  caller.client.close()
  await page.context().close()
})

test('a backend that answers 401, 500, HTML, no token, nothing, and the token of somebody else', async () => {
  const hangs = Promise.withResolvers<Response>()
  answers = [
    () => Response.json({ error: 'Sign in first.' }, { status: 401 }),
    () => new Response('Internal Server Error', { status: 500 }),
    () => new Response('<!doctype html><title>Wrong page</title>', { headers: { 'content-type': 'text/html' } }),
    () => Response.json({ ok: true }),
    () => hangs.promise,
  ]
  const page = await open(`${someone('callee')}&hasty`)
  const first = await state(page)
  hangs.resolve(new Response())
  const said = () => page.evaluate(() => window.tab.errors.map(({ httpStatus, message }) => ({ httpStatus, message })))
  const words = (httpStatus: number | undefined, message: string) => ({
    ...{ httpStatus, message: expect.stringContaining(message) },
  })
  const failed = [
    words(401, 'Sign in first.'),
    words(500, 'Internal Server Error'),
    words(200, 'Wrong page'),
    words(200, '{"ok":true}'),
    words(undefined, 'nothing in 6000 ms'),
  ]
  expect(await said()).toEqual(failed)

  answers = [async () => Response.json(soon(await service.issue({ user_id: 'somebody else', role: 'agent' })))]
  await page.evaluate(() => window.tab.sleep(45_000))
  await page.context().setOffline(true)
  await page.waitForFunction(() => window.tab.client.state.name !== 'online')
  await page.context().setOffline(false)
  await page.waitForFunction(() => window.tab.errors.some(({ message }) => message.includes('somebody else')))
  expect(await state(page)).toEqual({ sessionId: first!.sessionId, recovered: true })
  await page.context().close()
})
