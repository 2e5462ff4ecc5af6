/** POST /v1/call/session-token. The first failure answers, in the order of TOK1. */
import type { RestCode } from '@ringwire/protocol/errors'
import {
  allowedActions,
  TokenRequestShape as TokenRequestSchema,
  type TokenRequestShape,
  type TokenResponse,
} from '@ringwire/protocol/rest'
import { createValidator } from '@ringwire/protocol/validate'
import { keyTag } from '../auth/key-tag.ts'
import type { Tokens } from '../auth/tokens.ts'
import { readJsonObject } from '../http/body.ts'
import { failure, json } from '../http/replies.ts'
import { type IceServersOf, relayPolicy } from '../ice/ice-servers.ts'
import type { Limits } from '../limits/limits.ts'
import type { Clock } from '../ports/clock.ts'
import type { ProductKey } from '../ports/product-store.ts'
import { createCredentialsCheck, productOf, refusedProduct } from './credentials.ts'
import type { ProductAuth } from './product-auth.ts'

/** The bound of a signed token: with it, the headers of an upgrade stay under what servers and proxies take. */
export const maxTokenBytes = 3 * 1024

export interface SessionTokenDeps {
  readonly clock: Clock
  readonly tokens: Tokens
  readonly limits: Limits
  readonly iceServers: IceServersOf
  readonly isRelayOnly: (product: string) => boolean
  readonly authenticate: ProductAuth
  readonly wsUrl: (requestUrl: string) => string
}

/** A step's value, or the answer that ends the request. */
type Step<T> = { ok: true; value: T } | { ok: false; response: Response }

const proceed = <T>(value: T): Step<T> => ({ ok: true, value })
const refuse = (code: RestCode, options?: Parameters<typeof failure>[1]): Step<never> => ({
  ok: false,
  response: failure(code, options),
})

const requiredFields = [
  ['context_type', 'CONTEXT_TYPE_REQUIRED'],
  ['context_id', 'CONTEXT_ID_REQUIRED'],
  ['role', 'ROLE_REQUIRED'],
  ['user_id', 'USER_ID_REQUIRED'],
  ['display_name', 'DISPLAY_NAME_REQUIRED'],
  ['allowed_peer_role', 'ALLOWED_PEER_ROLE_REQUIRED'],
] as const satisfies readonly (readonly [keyof TokenRequestShape, RestCode])[]

export function createSessionTokenEndpoint(deps: SessionTokenDeps) {
  const { limits, tokens } = deps
  const check = createCredentialsCheck(deps, { ofAddress: limits.tokenRequest, ofKey: limits.tokenKey })
  const validate = createValidator(TokenRequestSchema)

  /** The body, and the token that it asks for: signed before the rest is checked, for its size is checked first. */
  async function readBody(request: Request, key: ProductKey): Promise<Step<{ body: Given; issued: Issued }>> {
    const read = await readJsonObject(request)
    if (!read.ok) return refuse(read.code, 'message' in read ? { message: read.message } : {})
    const checked = validate(read.value)
    if (!checked.ok) return refuse('INVALID_REQUEST_BODY', { message: `${checked.field} ${checked.message}.` })
    const body = givenFields(checked.value)
    const issued = issue(tokens, body, key)
    if (issued.token.length > maxTokenBytes) {
      const message = `${longestField(body)} makes the session token longer than 3 KiB.`
      return refuse('INVALID_REQUEST_BODY', { message })
    }
    return proceed({ body, issued })
  }

  return async (request: Request, address: string | undefined): Promise<Response> => {
    const credentials = await check(request, address)
    if (!credentials.ok) return credentials.response
    const { key } = credentials
    const asked = await readBody(request, key)
    if (!asked.ok) return asked.response
    const { body, issued } = asked.value
    const refused = refusedProduct(issued.participant.product, key)
    if (refused !== undefined) return refused
    const missing = missingField(body)
    if (missing !== undefined) return failure(missing)
    return json(200, answer(body, issued, request.url))
  }

  function answer(body: Given, issued: Issued, requestUrl: string): TokenResponse {
    return {
      token: issued.token,
      expires_at: new Date(issued.expiresAt).toISOString(),
      ws_url: deps.wsUrl(requestUrl),
      ice_servers: deps.iceServers(issued.participant, deps.clock.now()),
      ...(deps.isRelayOnly(issued.participant.product) && relayPolicy),
      user: { user_id: body.user_id, role: body.role, display_name: body.display_name },
      allowed_actions: [...allowedActions],
    }
  }
}

type Given = Record<Exclude<keyof TokenRequestShape, 'more_peer_roles'>, string> & {
  readonly more_peer_roles: readonly string[]
}
type Issued = ReturnType<Tokens['issue']> & { participant: { product: string; role: string; userId: string } }

/** Null and blank are not given: they become the empty text. Anything else stays as it was sent. */
function givenFields(body: TokenRequestShape): Given {
  const text = (value: string | null | undefined) => (value == null || value.trim() === '' ? '' : value)
  return {
    product: text(body.product),
    context_type: text(body.context_type),
    context_id: text(body.context_id),
    user_id: text(body.user_id),
    role: text(body.role),
    display_name: text(body.display_name),
    device_id: text(body.device_id),
    app_version: text(body.app_version),
    allowed_peer_role: text(body.allowed_peer_role),
    more_peer_roles: body.more_peer_roles ?? [],
  }
}

function issue(tokens: Tokens, body: Given, key: ProductKey): Issued {
  const product = productOf(body.product, key)
  const participant = { product, role: body.role, userId: body.user_id }
  const issued = tokens.issue({
    participant,
    displayName: body.display_name,
    contextType: body.context_type,
    contextId: body.context_id,
    allowedPeerRoles: [...new Set([body.allowed_peer_role, ...body.more_peer_roles])],
    deviceId: body.device_id || null,
    appVersion: body.app_version || null,
    key: keyTag(key.keyId),
  })
  return { ...issued, participant }
}

/** The field that takes most of a token that is too long. */
function longestField(body: Given): string {
  const size = (value: Given[keyof Given]) => Buffer.byteLength(JSON.stringify(value))
  const [longest] = Object.entries(body).sort(([, a], [, b]) => size(b) - size(a))
  return longest?.[0] ?? ''
}

function missingField(body: Given): RestCode | undefined {
  return requiredFields.find(([field]) => body[field] === '')?.[1]
}
