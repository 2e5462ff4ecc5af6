/**
 * Lets operators use the page and the paths below /admin/api/ [ADM2]: with the admin token, or with the cookie of a browser in
 * which it was entered.
 *
 *   const door = createDoor({ tokens, counters, now, answer })
 *   door(request, path, address)   → the answer to a path that begins with /admin
 */
import { bearerToken } from '../auth/bearer.ts'
import { readJsonObject } from '../http/body.ts'
import { empty, failure, json, retryAfter } from '../http/replies.ts'
import { addressKey, type LocalCounters } from '../limits/limits.ts'
import type { AdminTokens } from './admin-token.ts'
import { createPage } from './page.ts'
import { createVisits, visitMs } from './visits.ts'

/** A request of somebody who may ask. */
export interface OperatorRequest {
  readonly request: Request
  /** Below /admin/api/. */
  readonly path: string
  /** The operator's own name; empty if there is none. */
  readonly operator: string
  readonly address: string | undefined
}

export interface DoorOptions {
  readonly tokens: AdminTokens
  readonly counters: LocalCounters
  readonly now: () => number
  readonly answer: (asked: OperatorRequest) => Promise<Response>
}

/** How often one address (IPv6: its /64) may ask. The page asks every two seconds. */
const requestRate = { count: 1_200, seconds: 60 }
const maxNameLength = 60
const csrfHeader = 'x-ringwire-admin'

export function createDoor({ tokens, counters, now, answer }: DoorOptions) {
  const page = createPage()
  const visits = createVisits(now)
  const requests = counters.counter('admin-requests', requestRate)

  async function signIn(request: Request, address: string | undefined): Promise<Response> {
    const body = await readJsonObject(request)
    if (!body.ok) return failure(body.code, 'message' in body ? { message: body.message } : {})
    const { token, name = '' } = body.value
    if (typeof token !== 'string' || typeof name !== 'string')
      return failure('INVALID_REQUEST_BODY', { message: 'token is required; token and name are strings.' })
    const refusal = tokens.refusalOf(token, address)
    if (refusal !== undefined) return withoutChallenge(refusal)
    const given = nameOf(name)
    return json(200, { success: true, name: given }, { 'Set-Cookie': cookie(request, visits.begin(given), visitMs) })
  }

  async function session(request: Request, address: string | undefined): Promise<Response> {
    const secret = cookieOf(request)
    if (request.method === 'POST') return signIn(request, address)
    if (request.method === 'DELETE') {
      visits.end(secret)
      return empty(204, { 'Set-Cookie': cookie(request, '', 0) })
    }
    const visit = visits.find(secret)
    // The page asks this to know whether it has to show the form.
    if (request.method === 'GET')
      return json(200, { success: true, signed_in: visit !== undefined, name: visit?.name ?? '' })
    return failure('METHOD_NOT_ALLOWED', { headers: { Allow: 'GET, POST, DELETE' } })
  }

  /** The name of the operator, or the refusal. */
  function enter(request: Request, address: string | undefined): string | Response {
    const token = bearerToken(request.headers.get('authorization'))
    const visit = visits.find(cookieOf(request))
    if (token === undefined && visit !== undefined) return visit.name
    const refusal = tokens.refusalOf(token, address)
    if (refusal !== undefined) return token === undefined ? withoutChallenge(refusal) : refusal
    return nameOf(request.headers.get('x-ringwire-operator') ?? '')
  }

  async function api(request: Request, path: string, address: string | undefined): Promise<Response> {
    const retryAfterMs = requests.consume(addressKey(address))
    if (retryAfterMs > 0) return failure('RATE_LIMITED', { headers: retryAfter(retryAfterMs) })
    if (isForeign(request)) return json(403, foreign)
    if (path === 'session') return session(request, address)
    const operator = enter(request, address)
    if (operator instanceof Response) return operator
    return answer({ request, path, operator, address })
  }

  return async (request: Request, path: string, address: string | undefined): Promise<Response> => {
    if (path.startsWith('/admin/api/')) return api(request, path.slice('/admin/api/'.length), address)
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return failure('METHOD_NOT_ALLOWED', { headers: { Allow: 'GET, HEAD' } })
    if (path === '/admin') return empty(308, { Location: '/admin/' })
    return (await page(request, path.slice('/admin/'.length))) ?? failure('NOT_FOUND')
  }
}

const foreign = {
  success: false,
  error: {
    code: 'ADMIN_HEADER_REQUIRED',
    message: 'Send the header "X-Ringwire-Admin: 1" with every change. Other sites may not ask at all.',
  },
}

/**
 * Whether another site may have made the browser send this request. A form cannot send the header. A script of another site would
 * need a permission that the service never gives (CORS). Browsers also say which site a request comes from.
 */
function isForeign({ method, headers }: Request): boolean {
  const site = headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin' && site !== 'none') return true
  return method !== 'GET' && method !== 'HEAD' && headers.get(csrfHeader) !== '1'
}

/** Without the header that lets a browser ask for a password in a window of its own. */
function withoutChallenge(response: Response): Response {
  response.headers.delete('WWW-Authenticate')
  return response
}

/** The name for the audit log: one line. */
function nameOf(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')
    .trim()
    .slice(0, maxNameLength)
}

/** Cookies do not tell ports apart: each listener of a machine has one of its own. */
function cookieName({ headers }: Request): string {
  return `ringwire_admin_${/:(\d+)$/.exec(headers.get('host') ?? '')?.[1] ?? '443'}`
}

function cookieOf(request: Request): string | undefined {
  const name = `${cookieName(request)}=`
  const found = (request.headers.get('cookie') ?? '').split(';').map((each) => each.trim())
  return found.find((each) => each.startsWith(name))?.slice(name.length)
}

function cookie(request: Request, value: string, ms: number): string {
  // The listener speaks no TLS. A proxy that does says so.
  const secure = request.headers.get('x-forwarded-proto') === 'https' ? '; Secure' : ''
  return `${cookieName(request)}=${value}; Path=/admin; Max-Age=${ms / 1_000}; HttpOnly; SameSite=Strict${secure}`
}
