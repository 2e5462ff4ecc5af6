/**
 * Why a token is not valid, in words for its holder: for the command line. `verify` of tokens.ts decides.
 *
 *   diagnoseToken(token, secrets, now) → one sentence or two; never a part of the token but its kid and times
 */
import { createHmac, createPublicKey, timingSafeEqual, verify } from 'node:crypto'
import type { JwtSecret } from '../config/config.ts'
import { algorithmOf, type TokenKey } from '../config/signing-key.ts'
import { type ClaimProblem, readClaims, tokenAudience, tokenIssuer } from './tokens.ts'

export function diagnoseToken(token: string, secrets: readonly JwtSecret[], now: number): string {
  if (token === '') return 'The token is empty.'
  const parts = token.split('.')
  const [head = '', body = '', signature = ''] = parts
  if (parts.length !== 3 || !parts.every((part) => /^[\w-]+$/.test(part))) {
    return 'The token is malformed: a token is three parts of base64url with two dots between them.'
  }
  const header = readJson(head)
  if (header === undefined) return 'The token is malformed: its header is no JSON object.'
  if (typeof header.kid !== 'string') return 'The token does not name its key: it has no kid.'
  const secret = secrets.find(({ kid }) => kid === header.kid)
  if (secret === undefined) {
    const known = secrets.map(({ kid }) => kid).join(', ')
    return `The token is signed by an unknown kid, ${JSON.stringify(header.kid.slice(0, 64))}. Known here: ${known}.`
  }
  const alg = algorithmOf(secret.key)
  if (header.alg !== alg) {
    return `The token is signed in another way: its alg is not ${alg}, which is that of the key ${secret.kid}.`
  }
  if (!isSignedBy(secret.key, `${head}.${body}`, signature)) {
    return `The signature is not one of the key ${secret.kid} that is here: the token was changed or cut short, or another service has a key of the same name.`
  }
  const { problem } = readClaims(readJson(body), now)
  return problem === undefined ? 'The token is refused.' : describe(problem)
}

function describe(problem: ClaimProblem): string {
  if (problem.kind === 'not yet') return `The token is authentic, but not valid before ${iso(problem.from)}.`
  if (problem.kind === 'expired') {
    const { product, role, userId } = problem.claims.participant
    const whose = `user ${userId}, role ${role}, product ${product}`
    return `The token is authentic, but expired since ${iso(problem.claims.expiresAt)}. It was for ${whose}.`
  }
  if (problem.claim === 'aud') return `The token is for another audience: its aud is not ${tokenAudience}.`
  if (problem.claim === 'iss') return `The token is of another issuer: its iss is not ${tokenIssuer}.`
  if (problem.claim === 'payload') return 'The token is malformed: its payload is no JSON object.'
  return `The token is authentic, but no session token: ${problem.claim} is missing, or of another type.`
}

const iso = (at: number) => new Date(at).toISOString()

function readJson(part: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString())
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

function isSignedBy(key: TokenKey, signed: string, signature: string): boolean {
  if (!(key instanceof Uint8Array)) {
    const hash = algorithmOf(key) === 'EdDSA' ? null : 'sha256'
    const options = { key: createPublicKey(key), dsaEncoding: 'ieee-p1363' } as const
    return verify(hash, Buffer.from(signed), options, Buffer.from(signature, 'base64url'))
  }
  const expected = createHmac('sha256', key).update(signed).digest('base64url')
  // As text: another encoding of the same bytes is another token.
  return expected.length === signature.length && timingSafeEqual(Buffer.from(expected), Buffer.from(signature))
}
