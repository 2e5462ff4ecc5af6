import { expect, test } from 'bun:test'
import { createDemo } from '../src/demo.ts'

const host = '127.0.0.1:8080'
const options = {
  // Port 9 (discard) is where nothing listens: these tests are about what happens before the request for a token.
  serviceUrl: () => 'http://127.0.0.1:9',
  keyId: 'key',
  secret: 'product-secret-that-stays-here',
  product: 'demo',
}
const demo = createDemo(options)

function ask(
  path: string,
  options: { headers?: Record<string, string>; body?: unknown; from?: string | undefined } = {},
) {
  const { headers = {}, body } = options
  const from = 'from' in options ? options.from : '127.0.0.1'
  const text = body === undefined ? undefined : JSON.stringify(body)
  const request = new Request(`http://${host}${path}`, {
    method: text === undefined ? 'GET' : 'POST',
    headers: { host, ...(text === undefined ? {} : { 'content-length': String(text.length) }), ...headers },
    ...(text === undefined ? {} : { body: text }),
  })
  return demo.fetch(request, from)
}

const ada = { name: 'Ada', role: 'customer', device_id: 'device-ada' }

test('only its own paths are answered', async () => {
  expect((await ask('/'))?.headers.get('location')).toBe('/demo/')
  expect((await ask('/demo/'))?.status).toBe(200)
  expect((await ask('/demo/nothing'))?.status).toBe(404)
  for (const path of ['/v1/calls/history', '/healthz', '/demonstration']) expect(await ask(path)).toBeUndefined()
})

test('a Host header that is not loopback is refused, whatever it resolves to', async () => {
  for (const refused of [
    'evil.example',
    'evil.example:8080',
    '127.0.0.1.evil.example',
    '10.0.0.1:8080',
    '@127.0.0.1',
  ]) {
    expect((await ask('/demo/', { headers: { host: refused } }))?.status).toBe(403)
  }
  for (const own of ['localhost:8080', 'LOCALHOST', 'demo.localhost', '127.0.0.2:1', '[::1]:8080']) {
    expect((await ask('/demo/', { headers: { host: own } }))?.status).toBe(200)
  }
})

test('a caller from elsewhere is refused, and so is one whose address is not known', async () => {
  for (const from of ['192.0.2.1', '::ffff:192.0.2.1', '2001:db8::1', undefined]) {
    expect((await ask('/demo/', { from }))?.status).toBe(403)
  }
  for (const from of ['127.0.0.1', '::1', '::ffff:127.0.0.1']) expect((await ask('/demo/', { from }))?.status).toBe(200)
})

test('with networks: who is in one of them, and asks for an address that this machine has there', async () => {
  const networks = { addresses: ['192.168.1.20'], has: (address: string) => address.startsWith('192.168.1.') }
  const open = createDemo({ ...options, networks })
  const status = async (from: string | undefined, host: string) =>
    (await open.fetch(new Request(`http://${host}/demo/`, { headers: { host } }), from))?.status
  expect(await status('192.168.1.31', '192.168.1.20:8080')).toBe(200)
  expect(await status('127.0.0.1', 'localhost:8080')).toBe(200)
  // A site may point its name at that address; other networks and unknown peers do not belong here.
  expect(await status('192.168.1.31', 'evil.example:8080')).toBe(403)
  expect(await status('192.168.1.31', '192.168.1.20.evil.example')).toBe(403)
  expect(await status('192.168.1.31', '127.0.0.1:8080')).toBe(403)
  expect(await status('10.0.0.1', '192.168.1.20:8080')).toBe(403)
  expect(await status(undefined, '192.168.1.20:8080')).toBe(403)
})

test('whoever comes through a proxy is refused: behind one everybody looks like this machine', async () => {
  for (const name of ['Forwarded', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'X-Real-IP', 'Via']) {
    expect((await ask('/demo/', { headers: { [name]: '127.0.0.1' } }))?.status).toBe(403)
    expect((await ask('/demo/api/people', { body: {}, headers: { [name]: '127.0.0.1' } }))?.status).toBe(403)
  }
})

test('the page only talks to its service, and no answer is taken for another type', async () => {
  const page = await ask('/demo/')
  const policy = page?.headers.get('content-security-policy') ?? ''
  expect(policy).toContain(`connect-src 'self' ws://${host} wss://${host};`)
  const elsewhere = createDemo({ ...options, publicUrl: 'https://calls.example.com/base' })
  const request = new Request(`http://${host}/demo/`, { headers: { host } })
  const shown = (await elsewhere.fetch(request, '127.0.0.1'))?.headers.get('content-security-policy')
  const sockets = 'ws://calls.example.com wss://calls.example.com'
  expect(shown).toContain(`connect-src 'self' ws://${host} wss://${host} ${sockets} https://calls.example.com;`)
  for (const path of ['/', '/demo/', '/demo/main.js', '/demo/nothing', '/demo/api/token']) {
    expect((await ask(path))?.headers.get('x-content-type-options')).toBe('nosniff')
  }
})

test('a POST from another origin is refused', async () => {
  for (const origin of ['http://evil.example', 'http://127.0.0.1:9999', 'null']) {
    expect((await ask('/demo/api/people', { body: {}, headers: { origin } }))?.status).toBe(403)
  }
  const crossSite = { 'sec-fetch-site': 'cross-site' }
  expect((await ask('/demo/api/people', { body: {}, headers: crossSite }))?.status).toBe(403)
  const own = { origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }
  expect((await ask('/demo/api/people', { body: { ...ada, role: 'agent' }, headers: own }))?.status).toBe(200)
  expect((await ask('/demo/api/token'))?.status).toBe(405)
})

test('a sign-in that makes no sense is refused before any token is asked for', async () => {
  for (const body of [{}, { ...ada, name: ' - ' }, { ...ada, role: 'owner' }, { ...ada, device_id: 'x' }, [], 7]) {
    expect((await ask('/demo/api/token', { body }))?.status).toBe(400)
  }
})

test('a service that is away is said plainly, without the secret, and lists nobody', async () => {
  const response = await ask('/demo/api/token', { body: ada })
  expect(response?.status).toBe(502)
  const text = (await response?.text()) ?? ''
  expect(text).toContain('SERVICE_UNREACHABLE')
  expect(text).not.toContain('product-secret')
  const agent = { ...ada, name: 'Ben', role: 'agent' }
  const listed = await ask('/demo/api/people', { body: agent })
  expect(await listed?.json()).toMatchObject({ people: [] })
  for (const body of [{}, { ...ada, role: 'owner' }])
    expect((await ask('/demo/api/people', { body }))?.status).toBe(400)
})

test('the first view is under 66 KB on the wire, and whoever takes no gzip gets the same bytes', async () => {
  let transferred = 0
  for (const path of ['/demo/', '/demo/page.css', '/demo/main.js', '/demo/icon.svg']) {
    const packed = await ask(path, { headers: { 'accept-encoding': 'gzip, deflate, br' } })
    expect(packed?.headers.get('content-encoding')).toBe('gzip')
    expect(packed?.headers.get('vary')).toBe('accept-encoding')
    const bytes = (await packed?.bytes()) ?? new Uint8Array()
    transferred += bytes.byteLength
    for (const accepted of ['', 'gzip;q=0', 'br']) {
      const plain = await ask(path, { headers: { 'accept-encoding': accepted } })
      expect(plain?.headers.get('content-encoding')).toBeNull()
      expect(plain?.headers.get('vary')).toBe('accept-encoding')
      expect(await plain?.bytes()).toEqual(Bun.gunzipSync(bytes))
    }
  }
  console.log(`The demo's first view: ${transferred} bytes`)
  expect(transferred).toBeLessThan(66_000)
})
