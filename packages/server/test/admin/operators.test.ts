import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { connectPair, invite } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { finish } from '../scenarios/calls/composition.ts'
import { adminUrlOf, startObserved } from './observed.ts'

const token = 'a-token-that-only-tests-know'
const own = { 'X-Ringwire-Admin': '1' }
const bearer = { Authorization: `Bearer ${token}` }

let service: Service
let url = ''
beforeAll(async () => {
  service = await startObserved({ RINGWIRE_ADMIN_TOKEN: token })
  url = await adminUrlOf(service)
})
afterAll(() => service && finish(service))

const ask = (path: string, init: RequestInit = {}) => fetch(`${url}/admin/api/${path}`, init)
const codeOf = async (response: Response) => [response.status, (await response.json()).error?.code]

/** Signs in, and gives the cookie as a browser would send it. */
async function signIn(name = 'Ann'): Promise<{ cookie: string; header: string }> {
  const response = await ask('session', { method: 'POST', headers: own, body: JSON.stringify({ token, name }) })
  expect(response.status).toBe(200)
  const header = response.headers.get('set-cookie') ?? ''
  return { header, cookie: header.split(';')[0] ?? '' }
}

describe('signing in', () => {
  test('[ADM2] the token opens a visit, whose cookie no script reads and no other site brings', async () => {
    const { cookie, header } = await signIn()
    const { port } = new URL(url)
    expect(header).toMatch(
      new RegExp(`^ringwire_admin_${port}=[\\w-]{43}; Path=/admin; Max-Age=43200; HttpOnly; SameSite=Strict$`),
    )
    expect((await ask('now', { headers: { Cookie: cookie } })).status).toBe(200)
    const shown = await ask('session', { headers: { Cookie: cookie } })
    expect(await shown.json()).toEqual({ success: true, signed_in: true, name: 'Ann' })
    const proxied = await ask('session', {
      method: 'POST',
      headers: { ...own, 'X-Forwarded-Proto': 'https' },
      body: JSON.stringify({ token }),
    })
    expect(proxied.headers.get('set-cookie')).toEndWith('; Secure')
    expect(service.log).not.toContain(cookie.split('=')[1] ?? '')
  })

  test('[ADM2] signing out ends the visit, also for a cookie that was kept', async () => {
    const { cookie } = await signIn()
    const left = await ask('session', { method: 'DELETE', headers: { ...own, Cookie: cookie } })
    expect([left.status, left.headers.get('set-cookie')]).toEqual([204, expect.stringContaining('Max-Age=0')])
    expect((await ask('now', { headers: { Cookie: cookie } })).status).toBe(401)
  })

  test('[ADM2] cookies that nobody was given, and tokens that are wrong, open nothing', async () => {
    const { cookie } = await signIn()
    const [name = '', secret = ''] = cookie.split('=')
    const forged = [
      '',
      'x',
      'A'.repeat(43),
      secret.slice(0, -1),
      `${secret}A`,
      `${secret.slice(0, -1)}${secret.endsWith('A') ? 'B' : 'A'}`,
      token,
      '__proto__',
    ]
    for (const value of forged) {
      expect([value, (await ask('now', { headers: { Cookie: `${name}=${value}` } })).status]).toEqual([value, 401])
    }
    // The cookie of another listener of this machine.
    expect((await ask('now', { headers: { Cookie: `ringwire_admin_1=${secret}` } })).status).toBe(401)
    expect((await ask('now', { headers: { Authorization: `Bearer ${secret}` } })).status).toBe(401)
    expect((await ask('now')).headers.get('www-authenticate')).toBeNull()
    const wrong = [{}, { token: 1 }, { token: `${token}x` }, { token, name: 1 }, { token: [token] }]
    for (const body of wrong) {
      const response = await ask('session', { method: 'POST', headers: own, body: JSON.stringify(body) })
      expect([400, 401]).toContain(response.status)
      expect(response.headers.get('set-cookie')).toBeNull()
    }
  })

  test('[ADM2] more visits than are kept end the oldest one', async () => {
    const first = await signIn()
    for (let i = 0; i < 100; i++) await signIn(`visitor ${i}`)
    expect((await ask('now', { headers: { Cookie: first.cookie } })).status).toBe(401)
    expect((await ask('now', { headers: { Cookie: (await signIn()).cookie } })).status).toBe(200)
  })
})

describe('other sites', () => {
  test('[ADM2] a change needs the header that a form cannot send, with a cookie and with the token', async () => {
    const { cookie } = await signIn()
    for (const headers of [{ Cookie: cookie }, bearer, { Cookie: cookie, 'X-Ringwire-Admin': 'yes' }]) {
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
        expect(await codeOf(await ask('now', { method, headers }))).toEqual([403, 'ADMIN_HEADER_REQUIRED'])
      }
    }
    const form = new URLSearchParams({ token })
    expect((await ask('session', { method: 'POST', body: form })).status).toBe(403)
    // The visit goes on: nobody was signed out by another site.
    expect((await ask('session', { method: 'DELETE', headers: { Cookie: cookie } })).status).toBe(403)
    expect((await ask('now', { headers: { Cookie: cookie } })).status).toBe(200)
  })

  test('[ADM2] what a browser says comes from another site is refused, and no site is given leave', async () => {
    const { cookie } = await signIn()
    for (const site of ['cross-site', 'same-site']) {
      const headers = { ...own, Cookie: cookie, 'Sec-Fetch-Site': site, Origin: 'http://evil.example' }
      expect((await ask('now', { headers })).status).toBe(403)
      expect((await ask('session', { method: 'POST', headers, body: JSON.stringify({ token }) })).status).toBe(403)
    }
    const preflight = await ask('now', {
      method: 'OPTIONS',
      headers: { Origin: 'http://evil.example', 'Access-Control-Request-Headers': 'x-ringwire-admin' },
    })
    for (const response of [
      preflight,
      await ask('now', { headers: { Cookie: cookie, Origin: 'http://evil.example' } }),
    ])
      expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([])
  })

  test('[ADM2] a name that leads here gets neither the page nor an answer (DNS rebinding)', async () => {
    const { cookie } = await signIn()
    const { port } = new URL(url)
    for (const path of ['/admin/', '/admin/main.js', '/admin/api/session', '/admin/api/now']) {
      for (const host of [
        'evil.example',
        `evil.example:${port}`,
        'localhost.evil.example',
        `127.0.0.1.nip.io:${port}`,
      ]) {
        expect(await raw(Number(port), path, host, cookie)).toStartWith('HTTP/1.1 404')
      }
      expect(await raw(Number(port), path, `localhost:${port}`, cookie)).toStartWith('HTTP/1.1 200')
    }
  })
})

describe('the page', () => {
  test('[ADM2] its files are there without a token, and say what a browser may do with them', async () => {
    const page = await fetch(`${url}/admin/`)
    expect(page.status).toBe(200)
    const names = [...(await page.text()).matchAll(/(?:src|href)="([\w-]+\.\w+)"/g)].map(([, name]) => name)
    expect(names.sort()).toEqual(['icon.svg', 'main.js', 'page.css'])
    for (const name of ['', ...names]) {
      const { status, headers } = await fetch(`${url}/admin/${name}`)
      const policy = headers.get('content-security-policy') ?? ''
      expect([name, status]).toEqual([name, 200])
      for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'none'"])
        expect(policy.split('; ')).toContain(part)
      expect(policy).not.toContain('unsafe')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
    }
    expect((await fetch(`${url}/admin`, { redirect: 'manual' })).headers.get('location')).toBe('/admin/')
    for (const name of ['nothing', 'constructor', '..%2fpackage.json', 'main.tsx'])
      expect((await fetch(`${url}/admin/${name}`)).status).toBe(404)
    expect((await fetch(`${url}/admin/`, { method: 'POST' })).status).toBe(405)
    expect((await fetch(`${service.url}/admin/`)).status).toBe(404)
  })

  test('[ADM2] it is smaller than 100 KB, as it is sent', async () => {
    let bytes = 0
    for (const name of ['', 'main.js', 'page.css', 'icon.svg']) {
      const { port } = new URL(url)
      const answer = await raw(Number(port), `/admin/${name}`, `127.0.0.1:${port}`, '', 'Accept-Encoding: gzip\r\n')
      expect(answer.toLowerCase()).toContain('content-encoding: gzip')
      bytes += Number(/content-length: (\d+)/i.exec(answer)?.[1])
    }
    expect(bytes).toBeWithin(3_000, 100_000)
  })
})

describe('what is there now', () => {
  test('[ADM2] calls by state and age, nodes, stores, and charts that go on', async () => {
    const pair = await connectPair(service)
    await invite(pair.caller, pair.calleeId)
    await pair.callee.next('call.ringing')
    const now = async (since = 0) => (await ask(`now?since=${since}`, { headers: bearer })).json()
    const first = await now()
    expect(first).toMatchObject({
      success: true,
      health: { ok: true, database: 'ok' },
      connections: 2,
      calls: { age_bounds_s: [10, 60, 600, 3_600], ringing: [1, 0, 0, 0, 0], accepted: [0, 0, 0, 0, 0] },
      nodes: [{ sockets: 2, is_here: true }],
    })
    expect(JSON.stringify(first)).not.toContain('~')
    await until('the charts show the invite', async () =>
      (await now()).points.some(({ invites, calls }: { invites: number; calls: number }) => invites > 0 && calls === 1),
    )
    const { points } = await now()
    const last = points.at(-1)
    expect(last).toMatchObject({ connections: 2, errors: 0 })
    expect((await now(last.at)).points.every(({ at }: { at: number }) => at > last.at)).toBe(true)
    await Promise.all([pair.caller.close(), pair.callee.close()])
  })

  test('[ADM2] what is not there, and what is not taken', async () => {
    expect(await codeOf(await ask('nothing', { headers: bearer }))).toEqual([404, 'NOT_FOUND'])
    expect(await codeOf(await ask('constructor', { headers: bearer }))).toEqual([404, 'NOT_FOUND'])
    expect((await ask('now', { method: 'POST', headers: { ...own, ...bearer } })).status).toBe(405)
    expect((await ask('now?since=x', { headers: bearer })).status).toBe(200)
    const large = await ask('session', {
      method: 'POST',
      headers: own,
      body: JSON.stringify({ token: 'x'.repeat(20_000) }),
    })
    expect(large.status).toBe(413)
  })
})

test('[ADM2] without a token there is no page', async () => {
  const open = await startObserved()
  try {
    const openUrl = await adminUrlOf(open)
    for (const path of ['/admin', '/admin/', '/admin/main.js', '/admin/api/session', '/admin/api/now'])
      expect((await fetch(openUrl + path, { headers: own })).status).toBe(404)
  } finally {
    await finish(open)
  }
})

test('[ADM2] wrong tokens in the form are guesses like others; one address has a limited number of them', async () => {
  const guessed = await startObserved({ RINGWIRE_ADMIN_TOKEN: token })
  try {
    const guessedUrl = await adminUrlOf(guessed)
    const guess = (text: string) =>
      fetch(`${guessedUrl}/admin/api/session`, { method: 'POST', headers: own, body: JSON.stringify({ token: text }) })
    for (let i = 0; i < 20; i++) expect((await guess(`wrong-${i}`)).status).toBe(401)
    expect((await guess(token)).status).toBe(429)
    expect((await fetch(`${guessedUrl}/healthz`, { headers: bearer })).status).toBe(429)
    const asked = await Promise.all(
      Array.from({ length: 1_200 }, () => fetch(`${guessedUrl}/admin/api/session`).then(({ status }) => status)),
    )
    expect(new Set(asked)).toEqual(new Set([200, 429]))
  } finally {
    await finish(guessed)
  }
})

/** The head of what comes back for a request with this Host header. */
async function raw(port: number, path: string, host: string, cookie = '', more = ''): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nCookie: ${cookie}\r\n${more}${bearerLine}Connection: close\r\n\r\n`,
  )
  let text = ''
  for await (const bytes of socket) text += String(bytes)
  return text
}
const bearerLine = `Authorization: Bearer ${token}\r\n`
