/** The service that issues the tokens, and the credentials of the product there. */
export type Issuer = {
  /** The address of the service, as `http://127.0.0.1:8080`, for a request of the page; the port may be any. */
  serviceUrl: (request: Request) => string
  /** Sends the request. Default: `fetch`. */
  ask?: (request: Request) => Response | Promise<Response>
  keyId: string
  secret: string
  product: string
}

export type SignIn = {
  user_id: string
  role: 'customer' | 'agent'
  display_name: string
  device_id: string
}

type Result<Value> = { ok: true; value: Value } | { ok: false; code: string; message: string }

const peerRoles = { customer: 'agent', agent: 'customer' } as const

/** "Who may you be?" A real application answers this from its own login; the demo believes what is typed. */
export function parseSignIn(body: Record<string, unknown>): Result<SignIn> {
  const { name, role, device_id } = body
  const display_name = typeof name === 'string' ? name.trim().replace(/\s+/g, ' ').slice(0, 40) : ''
  const user_id = display_name
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, '-')
    .replace(/^-+|-+$/g, '')
  if (user_id === '') return refused('NAME_REQUIRED', 'A name needs at least one letter or digit.')
  if (role !== 'customer' && role !== 'agent') return refused('ROLE_REQUIRED', 'The role is customer or agent.')
  if (typeof device_id !== 'string' || !/^[\w-]{8,64}$/.test(device_id)) {
    return refused('DEVICE_ID_REQUIRED', 'The page sends the id of its tab.')
  }
  return { ok: true, value: { user_id, role, display_name, device_id } }
}

/**
 * The request of an application backend once it has decided that its user may call: one request with the product's
 * credentials. They stay here; the page gets the answer and never sees them.
 */
export async function mintToken(options: Issuer, page: Request, signIn: SignIn): Promise<Result<unknown>> {
  return askService(options, page, 'POST', '/v1/call/session-token', {
    product: options.product,
    context_type: 'demo',
    context_id: 'front-desk',
    user_id: signIn.user_id,
    role: signIn.role,
    display_name: signIn.display_name,
    device_id: signIn.device_id,
    allowed_peer_role: peerRoles[signIn.role],
    // An agent hands a call over to another one.
    ...(signIn.role === 'agent' && { more_peer_roles: ['agent'] }),
  })
}

/** The group `support`: all agents, of whom the first to answer has the call. */
export function saveSupport(options: Issuer, page: Request, members: readonly string[]): Promise<Result<unknown>> {
  return askService(options, page, 'PUT', '/v1/server/groups/agent/support', { members, strategy: 'all' })
}

async function askService(
  { ask = fetch, serviceUrl, keyId, secret }: Issuer,
  page: Request,
  method: 'POST' | 'PUT',
  path: string,
  body: object,
): Promise<Result<unknown>> {
  try {
    const request = new Request(new URL(path, serviceUrl(page)), {
      method,
      headers: {
        'content-type': 'application/json',
        'x-svc-product-key-id': keyId,
        'x-svc-product-secret': secret,
      },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(10_000),
    })
    const response = await ask(request)
    const answer = (await response.json()) as { error?: { code?: unknown; message?: unknown } }
    if (response.ok) return { ok: true, value: answer }
    const { code = 'TOKEN_REFUSED', message = 'No token was issued.' } = answer.error ?? {}
    return refused(String(code), String(message))
  } catch {
    return refused('SERVICE_UNREACHABLE', 'The call service does not answer.')
  }
}

function refused(code: string, message: string): { ok: false; code: string; message: string } {
  return { ok: false, code, message }
}
