import { createHmac } from 'node:crypto'

/** A signing key that tests know: as the environment names it, and to sign with. */
export const knownSecret = {
  env: { RINGWIRE_JWT_SECRETS: `tests:${Buffer.alloc(32, 7).toString('base64url')}` },
  key: Buffer.alloc(32, 7),
} as const

/** The same token with other claims, signed again with the known secret. */
export function withClaims(token: string, claims: Readonly<Record<string, unknown>>): string {
  const [header = '', payload = ''] = token.split('.')
  const before = JSON.parse(Buffer.from(payload, 'base64url').toString())
  const signed = `${header}.${Buffer.from(JSON.stringify({ ...before, ...claims })).toString('base64url')}`
  return `${signed}.${createHmac('sha256', knownSecret.key).update(signed).digest('base64url')}`
}
