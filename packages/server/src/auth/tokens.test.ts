import { describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { createTokens, type TokenInput } from './tokens.ts'

const start = Date.UTC(2026, 0, 1)
const key = Buffer.alloc(32, 1)
const input: TokenInput = {
  participant: { product: 'shop', role: 'customer', userId: 'ann' },
  displayName: 'Ann',
  contextType: 'order',
  contextId: '17',
  allowedPeerRoles: ['agent'],
  deviceId: 'phone',
  appVersion: '1.2',
}
const nine = [
  'call.invite',
  'call.accept',
  'call.reject',
  'call.cancel',
  'call.end',
  'call.connected',
  'webrtc.offer',
  'webrtc.answer',
  'webrtc.ice_candidate',
]

function setUp(now = start) {
  const clock = { at: now }
  const tokens = createTokens({ secrets: [{ kid: 'k1', key }], ttlS: 3600, now: () => clock.at })
  return { clock, tokens }
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = (part: string | undefined) => JSON.parse(Buffer.from(part ?? '', 'base64url').toString())

/** Signs by hand, so that what is tested is not tested with itself. */
function sign(header: object, payload: unknown, secret: Uint8Array = key, hash = 'sha256'): string {
  const body = `${encode(header)}.${typeof payload === 'string' ? payload : encode(payload)}`
  return `${body}.${createHmac(hash, secret).update(body).digest('base64url')}`
}

const header = { alg: 'HS256', typ: 'JWT', kid: 'k1' }
const seconds = start / 1000
const payload = {
  iss: 'ringwire',
  aud: 'ringwire',
  sub: 'ann',
  iat: seconds,
  nbf: seconds - 60,
  exp: seconds + 3600,
  jti: 'id',
  product: 'shop',
  role: 'customer',
  display_name: 'Ann',
  context_type: 'order',
  context_id: '17',
  allowed_peer_roles: ['agent'],
  allowed_actions: nine,
}
const invalid = { ok: false, expired: false } as const

describe('issue', () => {
  test('[TOK2] the claims and the header', () => {
    const { tokens } = setUp(start + 999)
    const { token, expiresAt } = tokens.issue(input)
    const [head, body, signature, ...more] = token.split('.')
    expect(more).toEqual([])
    expect(decode(head)).toEqual({ alg: 'HS256', typ: 'JWT', kid: 'k1' })
    const { jti, ...claims } = decode(body)
    expect(claims).toEqual({ ...payload, jti: undefined, device_id: 'phone', app_version: '1.2' })
    expect(Buffer.from(jti, 'base64url')).toHaveLength(16)
    expect(signature).toBe(createHmac('sha256', key).update(`${head}.${body}`).digest('base64url'))
    expect(expiresAt).toBe((seconds + 3600) * 1000)
  })

  test('[TOK2] device_id and app_version are there only where they were given', () => {
    const { tokens } = setUp()
    const { deviceId, appVersion, ...bare } = input
    const claims = decode(tokens.issue(bare).token.split('.')[1])
    expect(Object.keys(claims)).not.toContain('device_id')
    expect(Object.keys(claims)).not.toContain('app_version')
  })

  test('[TOK2] no two tokens are the same', () => {
    const { tokens } = setUp()
    expect(tokens.issue(input).token).not.toBe(tokens.issue(input).token)
  })

  test('a lifetime of its own', () => {
    const { tokens } = setUp()
    expect(tokens.issue({ ...input, ttlS: 5 }).expiresAt).toBe(start + 5000)
  })
})

describe('verify', () => {
  test('[TOK2] what was issued verifies, with every claim', () => {
    const { tokens } = setUp()
    const verified = tokens.verify(tokens.issue(input).token)
    expect(verified).toEqual({
      ok: true,
      claims: {
        participant: { product: 'shop', role: 'customer', userId: 'ann' },
        displayName: 'Ann',
        contextType: 'order',
        contextId: '17',
        allowedPeerRoles: ['agent'],
        allowedActions: nine,
        deviceId: 'phone',
        appVersion: '1.2',
        issuedAt: Math.floor(start / 1000) * 1000,
        expiresAt: start + 3_600_000,
        tokenId: expect.any(String),
        key: null,
      },
    })
  })

  test('[TOK2] the hand-made token of these tests is good, so the bad ones are bad for their reason', () => {
    expect(setUp().tokens.verify(sign(header, payload))).toMatchObject({ ok: true, claims: { deviceId: null } })
  })

  test('[TOK2] text of every script comes back as it was', () => {
    const { tokens } = setUp()
    const displayName = 'Ŝtefanie 🜁 "quoted" \\ \u0001'
    const verified = tokens.verify(tokens.issue({ ...input, displayName }).token)
    expect(verified).toMatchObject({ ok: true, claims: { displayName } })
  })

  test('[TOK2] expired at exp itself, without leeway; only an authentic token is called expired', () => {
    const { tokens, clock } = setUp()
    const { token, expiresAt } = tokens.issue(input)
    clock.at = expiresAt - 1
    expect(tokens.verify(token).ok).toBe(true)
    clock.at = expiresAt
    expect(tokens.verify(token)).toEqual({ ok: false, expired: true })
    expect(tokens.verify(sign(header, payload, Buffer.alloc(32, 9)))).toEqual(invalid)
    expect(tokens.verify(sign(header, { ...payload, iss: 'other' }))).toEqual(invalid)
    expect(tokens.verify(sign(header, { ...payload, role: 5 }))).toEqual(invalid)
  })

  test('[TOK2] not yet valid, with 30 s leeway', () => {
    const { tokens, clock } = setUp()
    const token = sign(header, { ...payload, nbf: seconds + 100 })
    clock.at = start + 69_999
    expect(tokens.verify(token)).toEqual(invalid)
    clock.at = start + 70_000
    expect(tokens.verify(token).ok).toBe(true)
  })

  test('[TOK2] the algorithm is pinned', () => {
    const { tokens } = setUp()
    const none = `${encode({ alg: 'none', kid: 'k1' })}.${encode(payload)}.`
    const borrowed = tokens.issue(input).token.split('.')[2]
    for (const token of [
      none,
      none.slice(0, -1),
      `${encode({ alg: 'none', kid: 'k1' })}.${encode(payload)}.${borrowed}`,
      sign({ ...header, alg: 'HS512' }, payload, key, 'sha512'),
      sign({ ...header, alg: 'HS384' }, payload, key, 'sha384'),
      sign({ ...header, alg: 'HS512' }, payload),
      sign({ ...header, alg: 'RS256' }, payload),
      sign({ ...header, alg: 'hs256' }, payload),
      sign({ typ: 'JWT', kid: 'k1' }, payload),
      sign({ ...header, crit: ['x'], x: 1 }, payload),
    ]) {
      expect(tokens.verify(token)).toEqual(invalid)
    }
  })

  test('[TOK2] the key that kid names, and no other', () => {
    const { tokens } = setUp()
    for (const head of [
      { ...header, kid: 'k2' },
      { ...header, kid: '' },
      { ...header, kid: 1 },
      { ...header, kid: '__proto__' },
      { ...header, kid: 'constructor' },
      { alg: 'HS256', typ: 'JWT' },
    ]) {
      expect(tokens.verify(sign(head, payload))).toEqual(invalid)
    }
    expect(tokens.verify(sign(header, payload, Buffer.alloc(32, 2)))).toEqual(invalid)
    expect(tokens.verify(sign(header, payload, Buffer.alloc(0)))).toEqual(invalid)
  })

  test('[TOK2] a ring of keys: the first signs, all verify, one that was taken out does not', () => {
    const ring = (...kids: number[]) =>
      createTokens({
        secrets: kids.map((kid) => ({ kid: `k${kid}`, key: Buffer.alloc(32, kid) })),
        ttlS: 3600,
        now: () => start,
      })
    const old = ring(1).issue(input).token
    const rotated = ring(2, 1)
    expect(decode(rotated.issue(input).token.split('.')[0])).toMatchObject({ kid: 'k2' })
    expect(rotated.verify(old).ok).toBe(true)
    expect(ring(2).verify(old)).toEqual(invalid)
  })

  test('[SRV2] a token that was taken back is not valid, and the verifier is asked with who and when', () => {
    const asked: object[] = []
    const tokens = createTokens({
      secrets: [{ kid: 'k1', key }],
      ttlS: 3600,
      now: () => start,
      isRevoked: (claims) => asked.push(claims) > 1,
    })
    const { token } = tokens.issue(input)
    expect(tokens.verify(token).ok).toBe(true)
    expect(tokens.verify(token)).toEqual(invalid)
    expect(asked[0]).toMatchObject({ participant: input.participant, issuedAt: Math.floor(start / 1000) * 1000 })
  })

  test('[TOK2] every claim that is missing or of another type or value makes it no token of ours', () => {
    const { tokens } = setUp()
    const optional = { device_id: 'd', app_version: 'v' }
    for (const claim of Object.keys(payload)) {
      const { [claim as keyof typeof payload]: _, ...without } = payload
      expect([claim, tokens.verify(sign(header, without))]).toEqual([claim, invalid])
    }
    const wrong: unknown[] = [null, 5, true, {}, [], [5], '']
    for (const claim of Object.keys({ ...payload, ...optional })) {
      for (const value of wrong) {
        if (isRight(claim, value)) continue
        const token = sign(header, { ...payload, [claim]: value })
        expect([claim, value, tokens.verify(token).ok]).toEqual([claim, value, false])
      }
    }
    for (const other of [{ iss: 'someone' }, { aud: 'someone' }, { exp: 1e300 }, { exp: -1 }, { exp: '9999999999' }]) {
      expect(tokens.verify(sign(header, { ...payload, ...other }))).toEqual(invalid)
    }
  })

  test('[TOK2] what is no JWT at all is refused and never throws', () => {
    const { tokens } = setUp()
    const { token } = tokens.issue(input)
    const [head = '', body = '', signature = ''] = token.split('.')
    const garbage = [
      '',
      '.',
      '..',
      '...',
      'jwt',
      'é.é.é',
      `${head}.`,
      `${head}..${signature}`,
      `${head}.${body}`,
      `${head}.${body}.`,
      ` ${token}`,
      `${token} `,
      `${token}=`,
      `${token}.x`,
      `${head}.${body}.${signature}\n`,
      `${encode(null)}.${body}.${signature}`,
      `${encode([])}.${body}.${signature}`,
      `${Buffer.from('{').toString('base64url')}.${body}.${signature}`,
      sign(header, 'bm90IGpzb24'),
      sign(header, encode('text')),
      sign(header, encode([1])),
      sign(header, encode(null)),
      'A'.repeat(1_000_000),
      `${'A'.repeat(100_000)}.${body}.${signature}`,
      `${head}.${Buffer.from(`${'['.repeat(50_000)}${']'.repeat(50_000)}`).toString('base64url')}.${signature}`,
    ]
    for (const text of garbage) expect(tokens.verify(text)).toEqual(invalid)
  })

  test('[TOK2] a token that lost or changed any character is refused', () => {
    const { tokens } = setUp()
    const { token } = tokens.issue(input)
    for (let end = 0; end < token.length; end += 7) expect(tokens.verify(token.slice(0, end))).toEqual(invalid)
    for (let i = 0; i < token.length - 1; i += 3) {
      const changed = `${token.slice(0, i)}${token[i] === 'A' ? 'B' : 'A'}${token.slice(i + 1)}`
      expect([i, tokens.verify(changed)]).toEqual([i, invalid])
    }
  })
})

/** Values of the list that are a claim's right type, though odd. */
function isRight(claim: string, value: unknown): boolean {
  if (value === '') return ['display_name', 'context_type', 'context_id', 'app_version'].includes(claim)
  if (value === null) return claim === 'device_id' || claim === 'app_version'
  if (value === 5) return claim === 'iat' || claim === 'nbf'
  if (Array.isArray(value) && value.length === 0) return claim === 'allowed_peer_roles' || claim === 'allowed_actions'
  return false
}
