import { afterAll, beforeAll, expect, test } from 'bun:test'

/** The service workers of the examples, on a scope that remembers what is shown. */
const page = globalThis.self
let status = 200
/** What became of the call, as 410 says it. */
let became: string | null = 'cancelled'
let server: ReturnType<typeof Bun.serve>
/** The requests, as `POST /v1/call/ring/reject`. */
let asked: string[] = []
beforeAll(() => {
  const ring = { call_uuid: 'x', caller: { user_id: 'ann', role: 'customer', display_name: 'Ann' } }
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ method, url }) {
      asked.push(`${method} ${new URL(url).pathname}`)
      const over = { error: { code: 'X', message: 'x', status: became, end_reason: null } }
      return Response.json(status === 200 ? ring : over, { status })
    },
  })
})
afterAll(async () => {
  globalThis.self = page
  await server.stop(true)
})

const call = { call_uuid: 'x', call_type: 'audio', ring_ticket: 't', caller: { display_name: 'Ann' } }

/** A worker; its service is reached at that origin. */
async function start(file: string, origin = `http://127.0.0.1:${server.port}`) {
  const heard = new Map<string, (event: object) => void>()
  const shown = new Map<string, string>()
  const scope = {
    location: { href: `http://localhost/service-worker.js?service=${origin}`, origin: '' },
    addEventListener: (type: string, listener: (event: object) => void) => void heard.set(type, listener),
    registration: {
      showNotification: async (title: string, { tag }: { tag: string }) => void shown.set(tag, title),
      getNotifications: async ({ tag }: { tag: string }) =>
        shown.has(tag) ? [{ close: () => void shown.delete(tag) }] : [],
    },
  }
  globalThis.self = scope as unknown as typeof globalThis.self
  await import(`${file}?${crypto.randomUUID()}`)
  const dispatch = async (type: string, event: object) => {
    let done: Promise<unknown> | undefined
    heard.get(type)?.({
      ...event,
      waitUntil(promise: Promise<unknown>) {
        done = promise
      },
    })
    await done
    return [...shown.values()]
  }
  return {
    /** What is shown after it, as after a click. */
    push: (pushed: object) => dispatch('push', { data: { json: () => ({ ...call, ...pushed }) } }),
    click: (action: string) =>
      dispatch('notificationclick', {
        action,
        notification: { data: { call }, close: () => void shown.delete(call.call_uuid) },
      }),
  }
}

const open = async (file: string) => (await start(file)).push

for (const file of ['../push/service-worker.js', '../callcenter/page/service-worker.js']) {
  test(`[PUSH2] ${file}: what was answered or declined elsewhere was not missed`, async () => {
    status = 200
    const push = await open(file)
    for (const elsewhere of ['accepted', 'rejected']) {
      expect(await push({ type: 'call.wake' })).toEqual(['Ann is calling'])
      expect(await push({ type: 'call.wake_cancelled', status: elsewhere })).toEqual([])
    }
    expect(await push({ type: 'call.wake_cancelled', status: 'cancelled' })).toEqual(['You missed a call of Ann'])
  })

  test(`[TICK1] ${file}: a push that comes late shows what was missed, and nothing of a call that was not`, async () => {
    for (const [ending, shown] of [
      ['missed', ['You missed a call of Ann']],
      ['cancelled', ['You missed a call of Ann']],
      [null, ['You missed a call of Ann']],
      ['accepted', []],
      ['connected', []],
      ['ended', []],
      ['rejected', []],
    ] as const) {
      ;[status, became] = [410, ending]
      const push = await open(file)
      expect([ending, await push({ type: 'call.wake' })]).toEqual([ending, [...shown]])
    }
  })

  test(`[TICK1] ${file}: only 410 and 401 say that the ring is over`, async () => {
    const push = await open(file)
    became = 'cancelled'
    for (const [answer, title] of [
      [410, 'You missed a call of Ann'],
      [401, 'You missed a call of Ann'],
      [429, 'Ann is calling'],
      [503, 'Ann is calling'],
    ] as const) {
      status = answer
      expect([answer, await push({ type: 'call.wake' })]).toEqual([answer, [title]])
    }
  })

  test(`[TICK1] ${file}: Decline asks for it; where the service did not hear it, the call is shown again`, async () => {
    status = 200
    const { push, click } = await start(file)
    await push({ type: 'call.wake' })
    asked = []
    expect([await click('decline'), asked]).toEqual([[], ['POST /v1/call/ring/reject']])
    for (const answer of [410, 401]) {
      status = 200
      await push({ type: 'call.wake' })
      ;[status, became] = [answer, 'cancelled']
      expect([answer, await click('decline')]).toEqual([answer, []])
    }
    for (const answer of [429, 503]) {
      status = 200
      await push({ type: 'call.wake' })
      status = answer
      expect([answer, await click('decline')]).toEqual([answer, ['Ann is calling']])
    }
    // A port where nobody listens.
    const away = await start(file, 'http://127.0.0.1:1')
    expect(await away.push({ type: 'call.wake' })).toEqual(['Ann is calling'])
    expect(await away.click('decline')).toEqual(['Ann is calling'])
  })
}
