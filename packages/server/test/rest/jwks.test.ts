import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { JsonWebKeySet, type TokenResponse } from '@ringwire/protocol/rest'
import { createValidator } from '@ringwire/protocol/validate'
import { makeSigningKey, type SigningAlgorithm } from '../../src/config/signing-key.ts'
import { goodBody, openStores, startRest } from './rest-service.ts'

const path = '/.well-known/jwks.json'
const secret = Buffer.alloc(32, 77)

let shared: Awaited<ReturnType<typeof openStores>>
let keyDir: string
beforeAll(async () => {
  shared = await openStores()
  keyDir = mkdtempSync(join(tmpdir(), 'ringwire-jwks-'))
})
afterAll(async () => {
  rmSync(keyDir, { recursive: true, force: true })
  await shared.close()
})

function keyFile(algorithm: SigningAlgorithm): string {
  const file = join(keyDir, `${crypto.randomUUID()}.pem`)
  writeFileSync(file, makeSigningKey(algorithm), { mode: 0o600 })
  return file
}
const hs = `hs:${secret.toString('base64url')}`

async function withService<T>(ring: string, work: (service: ReturnType<typeof startRest>) => Promise<T>): Promise<T> {
  const service = startRest({ stores: shared.stores, env: { RINGWIRE_JWT_SECRETS: ring } })
  try {
    return await work(service)
  } finally {
    await service.stop()
  }
}

test('[KEY1] GET /.well-known/jwks.json 200: the public keys of the ring, which may be kept', async () => {
  await withService(`ed:file:${keyFile('EdDSA')},${hs},ec:file:${keyFile('ES256')}`, async (rest) => {
    const response = await rest.get(path)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(response.headers.get('cache-control')).toBe('public, max-age=300')
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
    const text = await response.text()
    const body = JSON.parse(text)
    expect(createValidator(JsonWebKeySet)(body).ok).toBe(true)
    const x = expect.stringMatching(/^[\w-]{43}$/)
    expect(body).toEqual({
      keys: [
        { kty: 'OKP', crv: 'Ed25519', x, kid: 'ed', alg: 'EdDSA', use: 'sig' },
        { kty: 'EC', crv: 'P-256', x, y: x, kid: 'ec', alg: 'ES256', use: 'sig' },
      ],
    })
    for (const encoding of ['base64url', 'base64', 'hex'] as const)
      expect(text).not.toContain(secret.toString(encoding))
    const head = await rest.get(path, { method: 'HEAD' })
    expect([head.status, head.headers.get('cache-control'), await head.text()]).toEqual([
      200,
      'public, max-age=300',
      '',
    ])
    const post = await rest.get(path, { method: 'POST' })
    expect([post.status, post.headers.get('cache-control')]).toEqual([405, 'no-store'])
  })
})

test('[KEY1] with a secret alone there is no public key', async () => {
  expect(await withService(hs, async (rest) => (await rest.get(path)).json())).toEqual({ keys: [] })
})

/** Run by Node, whose cryptography (OpenSSL) is another one than that of the service (BoringSSL). */
const stranger = `
  const [url, token] = process.argv.slice(1)
  const { keys } = await (await fetch(url)).json()
  const [head, body, signature] = token.split('.')
  const { kid } = JSON.parse(Buffer.from(head, 'base64url'))
  const jwk = keys.find((key) => key.kid === kid)
  const ways = { EdDSA: { name: 'Ed25519' }, ES256: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } }
  const way = ways[jwk.alg]
  const key = await crypto.subtle.importKey('jwk', jwk, way, false, ['verify'])
  const verify = (text) => crypto.subtle.verify(way, key, Buffer.from(signature, 'base64url'), Buffer.from(text))
  const answers = [await verify(head + '.' + body), await verify(head + '.' + body + 'x')]
  console.log(JSON.stringify({ openssl: process.versions.openssl !== undefined && process.versions.bun === undefined, answers }))
`

for (const algorithm of ['EdDSA', 'ES256'] as const) {
  test(`[KEY1] ${algorithm}: whoever has the document verifies a token, with another library`, async () => {
    await withService(`new:file:${keyFile(algorithm)},old:file:${keyFile('EdDSA')}`, async (rest) => {
      const answer = await rest.ask({ ...goodBody, product: 'shop' })
      const { token } = (await answer.json()) as TokenResponse
      const child = Bun.spawn(['node', '--input-type=module', '-e', stranger, `${rest.url}${path}`, token], {
        stderr: 'pipe',
      })
      const [said, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
      if ((await child.exited) !== 0) throw new Error(errors)
      expect(JSON.parse(said)).toEqual({ openssl: true, answers: [true, false] })
    })
  })
}
