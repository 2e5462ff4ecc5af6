/**
 * Session tokens: JWTs [TOK2]. Both functions are synchronous, because a WebSocket upgrade cannot wait.
 *
 *   const tokens = createTokens({ secrets: [{ kid, key }], ttlS, now })
 *   tokens.issue({ participant, displayName, … }) → { token, expiresAt }
 *   tokens.verify(token)                          → { ok: true, claims } | { ok: false, expired }
 *   readClaims(payload, now)                      → what an authentic payload says, or what is wrong with it
 */
import { randomBytes } from 'node:crypto'
import { type AllowedAction, allowedActions } from '@ringwire/protocol/rest'
import type { Participant } from '../call/call.ts'
import type { TokenKey } from '../config/signing-key.ts'
import { createKeyRing } from './key-ring.ts'

/** Issuer and audience: the service itself, both times. */
export const tokenIssuer = 'ringwire'
export const tokenAudience = 'ringwire'
/** Clocks of two machines may differ by this much [TOK2]; a token ends when its `exp` says so, everywhere. */
const leewayMs = 30_000
const notBeforeS = 60

/** The claims of a valid token. */
export interface SessionClaims {
  readonly participant: Participant
  readonly displayName: string
  readonly contextType: string
  readonly contextId: string
  readonly allowedPeerRoles: readonly string[]
  readonly allowedActions: readonly string[]
  readonly deviceId: string | null
  readonly appVersion: string | null
  /** Milliseconds since the epoch; tokens count whole seconds. */
  readonly issuedAt: number
  readonly expiresAt: number
  readonly tokenId: string
  /** The tag of the product key that it was issued with [KEY1]; null: with none, as `ringwire token` does. */
  readonly key: string | null
}

export interface TokenInput {
  readonly participant: Participant
  readonly displayName: string
  readonly contextType: string
  readonly contextId: string
  readonly allowedPeerRoles: readonly string[]
  readonly deviceId?: string | null
  readonly appVersion?: string | null
  readonly key?: string | null
  /** The service's own lifetime where it is not given. */
  readonly ttlS?: number
}

/** `expired`: the token is authentic and was good once; anything else that is wrong is not expired. */
export type Verification =
  | { readonly ok: true; readonly claims: SessionClaims }
  | { readonly ok: false; readonly expired: boolean }

export interface Tokens {
  issue(input: TokenInput): { token: string; expiresAt: number }
  verify(token: string): Verification
}

export interface TokensOptions {
  /** The first signs, all verify. */
  readonly secrets: readonly { readonly kid: string; readonly key: TokenKey }[]
  readonly ttlS: number
  readonly now: () => number
  /** Whether a token that is good otherwise was taken back [SRV2], or its product key is disabled [KEY1]. */
  readonly isRevoked?: (claims: Pick<SessionClaims, 'participant' | 'issuedAt' | 'key'>) => boolean
}

const invalid: Verification = { ok: false, expired: false }
const expired: Verification = { ok: false, expired: true }

export function createTokens(options: TokensOptions): Tokens {
  const { secrets, ttlS, now, isRevoked = () => false } = options
  const ring = createKeyRing(secrets)
  return {
    issue(input) {
      const issuedAt = Math.floor(now() / 1000)
      const expiresAtS = issuedAt + (input.ttlS ?? ttlS)
      return { token: ring.sign(payloadOf(input, issuedAt, expiresAtS)), expiresAt: expiresAtS * 1000 }
    },
    verify(token) {
      const read = readPayload(ring.read(token), now())
      return read.ok && isRevoked(read.claims) ? invalid : read
    },
  }
}

function payloadOf(input: TokenInput, issuedAt: number, expiresAtS: number) {
  const { participant, deviceId, appVersion, key } = input
  return {
    iss: tokenIssuer,
    aud: tokenAudience,
    sub: participant.userId,
    iat: issuedAt,
    nbf: issuedAt - notBeforeS,
    exp: expiresAtS,
    jti: randomBytes(16).toString('base64url'),
    product: participant.product,
    role: participant.role,
    display_name: input.displayName,
    context_type: input.contextType,
    context_id: input.contextId,
    allowed_peer_roles: input.allowedPeerRoles,
    allowed_actions: allowedActions satisfies readonly AllowedAction[],
    ...(deviceId == null ? {} : { device_id: deviceId }),
    ...(appVersion == null ? {} : { app_version: appVersion }),
    ...(key == null ? {} : { key }),
  }
}

function readPayload(payload: unknown, now: number): Verification {
  const read = readClaims(payload, now)
  if (read.problem === undefined) return { ok: true, claims: read.claims }
  return read.problem.kind === 'expired' ? expired : invalid
}

/** Why an authentic payload is no token that counts now. */
export type ClaimProblem =
  | { readonly kind: 'expired'; readonly claims: SessionClaims }
  /** In ms. */
  | { readonly kind: 'not yet'; readonly from: number }
  | { readonly kind: 'claim'; readonly claim: string }

type ReadClaims =
  | { readonly problem?: undefined; readonly claims: SessionClaims }
  | { readonly problem: ClaimProblem; readonly claims?: undefined }

/** Claims of an authentic payload: a token of ours has them all, so one that lacks any is no token of ours. */
export function readClaims(payload: unknown, now: number): ReadClaims {
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) return wrong('payload')
  const claims = payload as Record<string, unknown>
  const { iss, aud, exp, nbf, iat } = claims
  if (iss !== tokenIssuer) return wrong('iss')
  if (aud !== tokenAudience) return wrong('aud')
  if (!isInstant(exp)) return wrong('exp')
  if (!isInstant(nbf)) return wrong('nbf')
  if (!isInstant(iat)) return wrong('iat')
  const session = readSession(claims, iat * 1000, exp * 1000)
  if (typeof session === 'string') return wrong(session)
  if (nbf * 1000 > now + leewayMs) return { problem: { kind: 'not yet', from: nbf * 1000 } }
  if (exp * 1000 <= now) return { problem: { kind: 'expired', claims: session } }
  return { claims: session }
}

const wrong = (claim: string): ReadClaims => ({ problem: { kind: 'claim', claim } })

/** The claims of a session, or the name of the first that is missing or of another type. */
function readSession(claims: Record<string, unknown>, issuedAt: number, expiresAt: number): SessionClaims | string {
  const { sub, jti, product, role, display_name, context_type, context_id } = claims
  const { allowed_peer_roles, allowed_actions, device_id = null, app_version = null, key = null } = claims
  if (!isName(sub)) return 'sub'
  if (!isName(product)) return 'product'
  if (!isName(role)) return 'role'
  if (!isName(jti)) return 'jti'
  if (!isText(display_name)) return 'display_name'
  if (!isText(context_type)) return 'context_type'
  if (!isText(context_id)) return 'context_id'
  if (!isTexts(allowed_peer_roles)) return 'allowed_peer_roles'
  if (!isTexts(allowed_actions)) return 'allowed_actions'
  if (device_id !== null && !isName(device_id)) return 'device_id'
  if (app_version !== null && !isText(app_version)) return 'app_version'
  if (key !== null && !isText(key)) return 'key'
  return {
    participant: { product, role, userId: sub },
    displayName: display_name,
    contextType: context_type,
    contextId: context_id,
    allowedPeerRoles: allowed_peer_roles,
    allowedActions: allowed_actions,
    deviceId: device_id,
    appVersion: app_version,
    issuedAt,
    expiresAt,
    tokenId: jti,
    key,
  }
}

function isInstant(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 && value < 1e12
}
function isText(value: unknown): value is string {
  return typeof value === 'string'
}
function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(isText)
}
