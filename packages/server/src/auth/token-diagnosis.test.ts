import { expect, test } from 'bun:test'
import { createHmac, generateKeyPairSync, sign as signBytes } from 'node:crypto'
import { diagnoseToken } from './token-diagnosis.ts'
import { createTokens } from './tokens.ts'

const now = Date.UTC(2026, 0, 1)
const seconds = now / 1000
const key = Buffer.alloc(32, 1)
const secrets = [
  { kid: 'k1', key },
  { kid: 'k2', key: Buffer.alloc(32, 2) },
]
const ed = generateKeyPairSync('ed25519')
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const header = { alg: 'HS256', typ: 'JWT', kid: 'k1' }
const payload = {
  ...{ iss: 'ringwire', aud: 'ringwire', sub: 'ann', iat: seconds, nbf: seconds - 60, exp: seconds + 3600, jti: 'id' },
  ...{ product: 'shop', role: 'customer', display_name: 'Ann', context_type: 'order', context_id: '17' },
  ...{ allowed_peer_roles: ['agent'], allowed_actions: [] },
}
function sign(head: unknown, claims: unknown, secret: Uint8Array = key): string {
  const body = `${encode(head)}.${encode(claims)}`
  return `${body}.${createHmac('sha256', secret).update(body).digest('base64url')}`
}
const good = sign(header, payload)

test('[TOK2] each reason why a token is refused has its words', () => {
  const cases: [string, RegExp][] = [
    ['', /is empty/],
    ['a', /malformed: a token is three parts/],
    ['a.b', /malformed: a token is three parts/],
    [`${good}.x`, /malformed: a token is three parts/],
    [`${good} `, /malformed: a token is three parts/],
    ['!.b.c', /malformed: a token is three parts/],
    ['bm8.b.c', /malformed: its header/],
    [sign({ ...header, alg: 'none' }, payload), /alg is not HS256/],
    [sign({ alg: 'HS256' }, payload), /no kid/],
    [sign({ ...header, kid: 'k9' }, payload), /unknown kid, "k9"\. Known here: k1, k2\./],
    [sign({ ...header, kid: 'k2' }, payload), /not one of the key k2 /],
    [good.slice(0, -1), /not one of the key k1 /],
    [sign(header, [1]), /its payload is no JSON object/],
    [sign(header, { ...payload, aud: 'someone' }), /another audience: its aud is not ringwire\./],
    [sign(header, { ...payload, iss: 'someone' }), /another issuer: its iss is not ringwire\./],
    [sign(header, { ...payload, role: 5 }), /no session token: role is missing, or of another type/],
    [sign(header, { ...payload, allowed_actions: undefined }), /no session token: allowed_actions is missing/],
    [sign(header, { ...payload, nbf: seconds + 100 }), /not valid before 2026-01-01T00:01:40\.000Z/],
    [sign(header, { ...payload, exp: seconds - 60 }), /expired since 2025-12-31T23:59:00\.000Z\. It was for user ann/],
  ]
  const tokens = createTokens({ secrets, ttlS: 1, now: () => now })
  for (const [token, words] of cases) {
    expect(tokens.verify(token).ok).toBe(false)
    expect(diagnoseToken(token, secrets, now)).toMatch(words)
  }
  expect(tokens.verify(good).ok).toBe(true)
})

test('[KEY1] so has a token of a private key', () => {
  const ring = [...secrets, { kid: 'ed', key: ed.privateKey }, { kid: 'ec', key: ec.privateKey }]
  const tokens = createTokens({ secrets: ring, ttlS: 1, now: () => now })
  const body = (alg: string, kid: string, claims: object = payload) =>
    `${encode({ alg, typ: 'JWT', kid })}.${encode(claims)}`
  const signed = (text: string, key = ed.privateKey) => {
    const hash = key === ed.privateKey ? null : 'sha256'
    const signature = signBytes(hash, Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' })
    return `${text}.${signature.toString('base64url')}`
  }
  const over = { ...payload, exp: seconds - 60 }
  const cases: [string, RegExp][] = [
    [sign({ ...header, kid: 'ed' }, payload), /alg is not EdDSA, which is that of the key ed\./],
    [signed(body('EdDSA', 'ec')), /alg is not ES256, which is that of the key ec\./],
    [signed(body('ES256', 'ec')), /not one of the key ec /],
    [signed(body('EdDSA', 'ed', over)).slice(0, -2), /not one of the key ed /],
    [signed(body('EdDSA', 'ed', over)), /expired since/],
    [signed(body('ES256', 'ec', over), ec.privateKey), /expired since/],
  ]
  for (const [token, words] of cases) {
    expect(tokens.verify(token).ok).toBe(false)
    expect(diagnoseToken(token, ring, now)).toMatch(words)
  }
  expect(tokens.verify(signed(body('EdDSA', 'ed'))).ok).toBe(true)
})
