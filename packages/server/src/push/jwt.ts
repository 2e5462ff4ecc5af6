import { type KeyObject, sign } from 'node:crypto'

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A JWT for a push service, signed with the key that an operator has from it (RFC 7518 sections 3.3 and 3.4). */
export function signJwt(alg: 'ES256' | 'RS256', key: KeyObject, claims: object, header: object = {}): string {
  const text = `${encode({ typ: 'JWT', alg, ...header })}.${encode(claims)}`
  const options = alg === 'ES256' ? ({ key, dsaEncoding: 'ieee-p1363' } as const) : { key }
  return `${text}.${sign('sha256', Buffer.from(text), options).toString('base64url')}`
}
