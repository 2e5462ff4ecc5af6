/** The REST side of the service under test: tokens, the history, and requests that are wrong on purpose. */
import type { TokenResponse } from '@ringwire/protocol/rest'
import type { Redactor } from './transcript.ts'

export interface Target {
  /** As http://127.0.0.1:8080. */
  readonly url: string
  readonly keyId: string
  readonly keySecret: string
  /** Undefined: the key belongs to one product. */
  readonly product: string | undefined
}

/** The participant of a token. */
export interface Who {
  readonly user_id: string
  readonly role: string
  readonly display_name: string
  readonly allowed_peer_role: string
  readonly device_id?: string | undefined
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** Undefined where it is no JSON. */
  readonly body: unknown
}

export interface Access {
  readonly target: Target
  /** `headers` and `body` replace those of a right request. */
  askForToken(who: Who, wrong?: { headers?: Record<string, string>; body?: string; more?: object }): Promise<Answer>
  /** Fails with a sentence for people where the service gives none. */
  issue(who: Who): Promise<TokenResponse>
  request(path: string, init?: RequestInit): Promise<Answer>
  /** What a backend asks, below /v1/server. */
  ask(method: string, path: string, body?: object): Promise<Answer>
}

/** The service cannot be tested at all. */
export class Untestable extends Error {}

const slowMs = 15_000

export function createAccess(target: Target, redactor: Redactor): Access {
  const headers = {
    'Content-Type': 'application/json',
    'X-SVC-Product-Key-ID': target.keyId,
    'X-SVC-Product-Secret': target.keySecret,
  }

  async function request(path: string, init: RequestInit = {}): Promise<Answer> {
    const url = `${target.url.replace(/\/+$/, '')}${path}`
    let response: Response
    try {
      response = await fetch(url, {
        ...init,
        keepalive: false,
        redirect: 'manual',
        signal: AbortSignal.timeout(slowMs),
      })
    } catch (error) {
      throw new Untestable(`${target.url} does not answer: ${error instanceof Error ? error.message : error}`)
    }
    const text = await response.text()
    return { status: response.status, headers: response.headers, body: parsed(text) }
  }

  const askForToken: Access['askForToken'] = async (who, wrong = {}) => {
    const product = target.product === undefined ? {} : { product: target.product }
    const whole = { ...product, context_type: 'conformance', context_id: 'kit', ...who, ...wrong.more }
    const body = wrong.body ?? JSON.stringify(whole)
    const answer = await request('/v1/call/session-token', { method: 'POST', headers: wrong.headers ?? headers, body })
    if (isTokenResponse(answer.body)) {
      redactor.add(answer.body.token)
      for (const { credential, username } of answer.body.ice_servers ?? []) {
        redactor.add(credential ?? '')
        redactor.add(username ?? '')
      }
    }
    return answer
  }

  return {
    target,
    askForToken,
    request,
    ask(method, path, body) {
      const query = target.product === undefined ? '' : `?product=${encodeURIComponent(target.product)}`
      const how = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
      return request(`/v1/server/${path}${query}`, how)
    },
    async issue(who) {
      const { status, body } = await askForToken(who)
      if (isTokenResponse(body)) return body
      throw new Untestable(
        `${target.url} gave no session token: ${status} ${redactor.clean(JSON.stringify(body) ?? '')}`,
      )
    },
  }
}

function isTokenResponse(body: unknown): body is TokenResponse {
  const { token, ws_url } = (body ?? {}) as Partial<TokenResponse>
  return typeof token === 'string' && typeof ws_url === 'string'
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
