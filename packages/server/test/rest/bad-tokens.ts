import { createHmac } from 'node:crypto'
import { createTokens } from '../../src/auth/tokens.ts'
import { jwtKey } from './rest-service.ts'

/** Authorization headers in which there is no bearer token. */
export function noCredentials(token: string): readonly (string | undefined)[] {
  return [undefined, '', ' ', 'Bearer', 'Bearer ', `Basic ${token}`, token, `Token ${token}`, `Bearer:${token}`]
}

/** A right token signed again, so that the same signature over other claims only fails for its claims. */
export function signedTokens(token: string, now: number): { good: string; bad: Readonly<Record<string, string>> } {
  const [head = '', body = '', signature = ''] = token.split('.')
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
  const sign = (header: object, payload: object, key: Uint8Array = jwtKey, hash = 'sha256') => {
    const text = `${encode(header)}.${encode(payload)}`
    return `${text}.${createHmac(hash, key).update(text).digest('base64url')}`
  }
  const good = { alg: 'HS256', typ: 'JWT', kid: 'k' }
  const at = now / 1000
  const others = createTokens({ secrets: [{ kid: 'k', key: Buffer.alloc(32, 9) }], ttlS: 60, now: () => now })
  const bad = {
    'alg none': `${encode({ alg: 'none', kid: 'k' })}.${body}.`,
    'alg none with a signature': `${encode({ alg: 'none', kid: 'k' })}.${body}.${signature}`,
    'another algorithm': sign({ ...good, alg: 'HS512' }, claims, jwtKey, 'sha512'),
    'another key': others.issue({
      participant: { product: claims.product, role: claims.role, userId: claims.sub },
      displayName: 'Ann',
      contextType: 'c',
      contextId: '1',
      allowedPeerRoles: ['agent'],
    }).token,
    'an unknown kid': sign({ ...good, kid: 'other' }, claims),
    'no kid': sign({ alg: 'HS256', typ: 'JWT' }, claims),
    'another issuer': sign(good, { ...claims, iss: 'other' }),
    'another audience': sign(good, { ...claims, aud: 'other' }),
    expired: sign(good, { ...claims, exp: at }),
    'not yet valid': sign(good, { ...claims, nbf: at + 31 }),
    'no expiry': sign(good, { ...claims, exp: undefined }),
    'no participant': sign(good, { ...claims, sub: undefined }),
    truncated: token.slice(0, -1),
    'without its signature': `${head}.${body}.`,
    'two parts': `${head}.${body}`,
    'with another after it': `${token} ${token}`,
    rubbish: 'rubbish',
  }
  return { good: sign(good, claims), bad }
}
