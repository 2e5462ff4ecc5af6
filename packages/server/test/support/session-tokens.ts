import { createHmac } from 'node:crypto'

/** A key that the service is started with, so that tests can sign what it would not. */
export const signingKey = { kid: 'k1', key: Buffer.alloc(32, 7) } as const
export const signingKeyEnv = {
  RINGWIRE_JWT_SECRETS: `${signingKey.kid}:${signingKey.key.toString('base64url')}`,
} as const

type Claims = Record<string, unknown>

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Signs claims with HS256, or with whatever the header is made to say. */
export function signToken(
  claims: Claims,
  options: { key?: Uint8Array; header?: Record<string, unknown>; hash?: string } = {},
): string {
  const header = { alg: 'HS256', typ: 'JWT', kid: signingKey.kid, ...options.header }
  const text = `${encode(header)}.${encode(claims)}`
  const signature = createHmac(options.hash ?? 'sha256', options.key ?? signingKey.key).update(text)
  return `${text}.${signature.digest('base64url')}`
}

export function claimsOf(token: string): Claims {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Claims
}
