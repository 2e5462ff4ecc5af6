/** The REST side of the interface: tokens, health, what is refused, and the history. */
import type { Answer } from '../access.ts'
import { answered, connectPair } from './flows.ts'
import type { Scenario, Stage } from './stage.ts'

/** The code of a refusal [HTTP1]; undefined if it has not the shape of one. */
function codeOf({ body }: Answer): string | undefined {
  const { success, error } = (body ?? {}) as { success?: unknown; error?: { code?: unknown; message?: unknown } }
  const isRight = success === false && typeof error?.code === 'string' && typeof error.message === 'string'
  return isRight ? String(error?.code) : undefined
}

function refuses(stage: Stage, rule: 'TOK1' | 'HTTP1' | 'ID3', answer: Answer, status: number, code: string): void {
  const said = `${answer.status} ${codeOf(answer)}`
  stage.check(rule, said === `${status} ${code}`, `expected ${status} ${code}, got ${said}`)
}

const isUtc = (text: unknown) => typeof text === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(text)

/** The payload of a JWT, which any client can read. */
function claimsOf(token: string): Record<string, unknown> {
  try {
    return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  } catch {
    return {}
  }
}

const actions = [
  ...['call.invite', 'call.accept', 'call.reject', 'call.cancel', 'call.end', 'call.connected'],
  ...['webrtc.offer', 'webrtc.answer', 'webrtc.ice_candidate'],
]

const tokens: Scenario = {
  name: 'a backend asks for a token',
  rules: ['TOK2', 'TOK3', 'TOK6', 'ICE1'],
  async run(stage: Stage) {
    const { who } = stage.person('caller', 'caller')
    const { status, headers, body } = await stage.access.askForToken(who)
    stage.must('TOK2', status === 200, `the token request got ${status}`)
    const it = body as Record<string, unknown> & { user?: Record<string, unknown> }
    stage.check('TOK3', isUtc(it.expires_at), 'expires_at is no instant in UTC')
    stage.check('TOK3', Date.parse(String(it.expires_at)) > Date.now(), 'expires_at is over')
    stage.check('TOK3', headers.get('cache-control')?.includes('no-store') === true, 'no Cache-Control: no-store')
    const peers = claimsOf(String(it.token)).allowed_peer_roles
    stage.check(
      'TOK2',
      JSON.stringify(peers) === JSON.stringify([who.allowed_peer_role]),
      'the claim allowed_peer_roles',
    )
    stage.check('TOK2', it.user?.user_id === who.user_id && it.user?.role === who.role, 'user is somebody else')
    const allowed = Array.isArray(it.allowed_actions) ? it.allowed_actions : []
    stage.check(
      'TOK2',
      actions.every((action) => allowed.includes(action)),
      'allowed_actions lacks an action',
    )
    const url = URL.canParse(String(it.ws_url)) ? new URL(String(it.ws_url)) : undefined
    stage.check('TOK6', /^wss?:$/.test(url?.protocol ?? '') && url?.pathname.endsWith('/v1/ws') === true, 'ws_url')
    stage.check('ICE1', areIceServers(it.ice_servers), 'ice_servers are not as the interface says')
  },
}

function areIceServers(value: unknown): boolean {
  if (!Array.isArray(value)) return false
  return value.every(({ urls, username, credential }) => {
    const areUrls = Array.isArray(urls) && urls.every((url) => /^(stun|turn)s?:/.test(String(url)))
    const isTurn = areUrls && urls.some((url: string) => url.startsWith('turn'))
    return areUrls && [username, credential].every((it) => (isTurn ? typeof it === 'string' : it === undefined))
  })
}

const refusedTokens: Scenario = {
  name: 'token requests that are refused',
  rules: ['TOK1', 'ID3'],
  async run(stage: Stage) {
    const { who } = stage.person('caller', 'caller')
    const { keyId, keySecret } = stage.access.target
    const id = { 'X-SVC-Product-Key-ID': keyId }
    const ask = (wrong: Parameters<typeof stage.access.askForToken>[1]) => stage.access.askForToken(who, wrong)
    const secret = (text: string) => ({ 'X-SVC-Product-Secret': text })
    refuses(stage, 'TOK1', await ask({ headers: {} }), 401, 'PRODUCT_AUTH_KEY_ID_REQUIRED')
    refuses(stage, 'TOK1', await ask({ headers: id }), 401, 'PRODUCT_AUTH_SECRET_REQUIRED')
    const unknown = { 'X-SVC-Product-Key-ID': 'kit-unknown-key', ...secret(keySecret) }
    refuses(stage, 'TOK1', await ask({ headers: unknown }), 401, 'PRODUCT_AUTH_INVALID_KEY')
    refuses(stage, 'TOK1', await ask({ headers: { ...id, ...secret('wrong') } }), 401, 'PRODUCT_AUTH_INVALID_SECRET')
    refuses(stage, 'TOK1', await ask({ body: 'no JSON' }), 400, 'INVALID_REQUEST_BODY')
    const fields = ['context_type', 'context_id', 'role', 'user_id', 'display_name', 'allowed_peer_role']
    for (const [index, field] of fields.entries()) {
      // Those after it are missing, too: the order of the table decides.
      const missing = Object.fromEntries(fields.slice(index).map((name) => [name, undefined]))
      refuses(stage, 'TOK1', await ask({ more: missing }), 400, `${field.toUpperCase()}_REQUIRED`)
    }
    const other = await ask({ more: { product: `kit-${crypto.randomUUID()}` } })
    refuses(stage, 'TOK1', other, 403, 'PRODUCT_AUTH_PRODUCT_MISMATCH')
    for (const name of ['.', '..'])
      refuses(stage, 'ID3', await ask({ more: { user_id: name } }), 400, 'INVALID_REQUEST_BODY')
  },
}

const health: Scenario = {
  name: 'probes of health',
  rules: ['HEALTH1'],
  async run(stage: Stage) {
    for (const [path, checked] of [
      ['/healthz', 'unchecked'],
      ['/readyz', 'ok'],
    ] as const) {
      const { status, body } = await stage.access.request(path)
      const { ok, database, redis, service_ready } = (body ?? {}) as Record<string, unknown>
      stage.check('HEALTH1', status === 200 && ok === true, `${path} answers ${status}, ok ${ok}`)
      stage.check('HEALTH1', database === checked && redis === checked, `${path}: database ${database}, redis ${redis}`)
      stage.check('HEALTH1', service_ready === true, `${path}: service_ready ${service_ready}`)
    }
  },
}

const refusedRequests: Scenario = {
  name: 'requests that no endpoint answers',
  rules: ['HTTP1'],
  async run(stage: Stage) {
    const { request } = stage.access
    refuses(stage, 'HTTP1', await request('/v1/kit-no-such-path'), 404, 'NOT_FOUND')
    const wrong = await request('/v1/calls/history', { method: 'DELETE' })
    refuses(stage, 'HTTP1', wrong, 405, 'METHOD_NOT_ALLOWED')
    stage.check('HTTP1', wrong.headers.get('allow')?.includes('GET') === true, 'no header Allow')
    refuses(stage, 'HTTP1', await request('/v1/calls/history'), 401, 'AUTH_TOKEN_REQUIRED')
    const forged = { headers: { Authorization: 'Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJraXQifQ.c2ln' } }
    refuses(stage, 'HTTP1', await request('/v1/calls/history', forged), 401, 'AUTH_TOKEN_INVALID')
  },
}

const history: Scenario = {
  name: 'the history of both',
  rules: ['HIST1', 'HIST2'],
  async run(stage: Stage) {
    const pair = await connectPair(stage)
    const over = await answered(pair)
    pair.callee.send('call.end', { call_uuid: over })
    await pair.caller.next('END2', 'call.ended')
    const live = await answered(pair, { context_type: 'kit', context_id: 'second' })
    for (const person of [pair.ann, pair.ben]) {
      const { token } = await stage.issue(person)
      const { status, body } = await stage.history(token, '?limit=10')
      const { success, data } = (body ?? {}) as { success?: boolean; data?: Record<string, unknown>[] }
      stage.must('HIST1', status === 200 && success === true && Array.isArray(data), `the history answers ${status}`)
      const [first, second] = data
      stage.must('HIST1', first?.call_uuid === live && second?.call_uuid === over, 'it is not newest first')
      stage.check('HIST2', first.ended_at === null, 'a call that is not over has ended_at null')
      stage.check('HIST2', isUtc(second.ended_at) && isUtc(second.started_at), 'started_at and ended_at of a call')
      stage.check('HIST2', second.status === 'ended', `the status is ${second.status}`)
      stage.check('HIST2', second.end_reason === 'hangup', `the end_reason is ${second.end_reason}`)
      const isContext = first.context_type === 'kit' && first.context_id === 'second'
      stage.check('HIST2', isContext, 'the context is not that of the invite')
      const one = (await stage.history(token, '?limit=1')).body as { data?: unknown[] } | undefined
      stage.check('HIST1', one?.data?.length === 1, 'limit=1 does not give one record')
    }
    pair.caller.send('call.end', { call_uuid: live })
    await pair.callee.next('END2', 'call.ended')
  },
}

export const restScenarios: readonly Scenario[] = [tokens, refusedTokens, health, refusedRequests, history]
