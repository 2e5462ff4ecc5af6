import { createAssets } from './backend/assets.ts'
import {
  answerJson,
  isForwarded,
  isFromNetworks,
  isLoopbackAddress,
  isLoopbackHost,
  isSameOriginPost,
  type Networks,
  readJsonObject,
} from './backend/guard.ts'
import { createPeople } from './backend/people.ts'
import { type Issuer, mintToken, parseSignIn, saveSupport } from './backend/tokens.ts'

export type DemoOptions = Issuer & {
  /** Networks whose people may use the demo, too. Default: none. */
  networks?: Networks
  /** The address in `ws_url`, if that is not the page's. */
  publicUrl?: string | null
}

export type Demo = {
  /** Answers `/` and `/demo/…`; undefined for every other path. */
  fetch(request: Request, remoteAddress: string | undefined): Promise<Response | undefined>
}

/**
 * The demo page and a toy application backend. It lets anyone who reaches it sign in under any name, so it answers
 * nobody but this machine: the listener, the peer's address and the Host header (DNS rebinding) must all be loopback.
 * If `networks` are given, these answer for the peer's address and the Host header, too.
 */
export function createDemo(options: DemoOptions): Demo {
  const assets = createAssets()
  const people = createPeople()

  async function token(request: Request): Promise<Response> {
    const signIn = parseSignIn(await readJsonObject(request))
    if (!signIn.ok) return answerJson(400, { error: { code: signIn.code, message: signIn.message } })
    const minted = await mintToken(options, request, signIn.value)
    // 502: the page did nothing wrong; what stands behind this backend refused it or is away.
    if (!minted.ok) return answerJson(502, { error: { code: minted.code, message: minted.message } })
    people.join(signIn.value)
    // The service may have lost the group with its database: it is written each time.
    if (signIn.value.role === 'agent') await saveSupport(options, request, people.agents())
    return answerJson(200, minted.value)
  }

  /** Whom the page may call. It says who it is each time: this backend may have been restarted meanwhile. */
  async function peers(request: Request): Promise<Response> {
    const signIn = parseSignIn(await readJsonObject(request))
    if (!signIn.ok) return answerJson(400, { error: { code: signIn.code, message: signIn.message } })
    people.join(signIn.value)
    const colleagues = signIn.value.role === 'agent' ? people.colleaguesOf(signIn.value) : []
    return answerJson(200, { people: people.peersOf(signIn.value), colleagues })
  }

  const api: Record<string, (request: Request) => Promise<Response>> = {
    '/demo/api/token': token,
    '/demo/api/people': peers,
  }

  async function answer(request: Request, path: string): Promise<Response> {
    const action = api[path]
    if (action) {
      if (request.method !== 'POST') return methodNotAllowed('POST')
      if (!isSameOriginPost(request)) return forbidden('This request does not come from the demo page.')
      return action(request)
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') return methodNotAllowed('GET, HEAD')
    if (path === '/' || path === '/demo')
      return new Response(null, { status: 302, headers: { location: '/demo/', 'x-content-type-options': 'nosniff' } })
    return (
      (await assets.find(request, path.slice('/demo/'.length), request.headers.get('host') ?? '', options.publicUrl)) ??
      answerJson(404, { success: false, error: { code: 'NOT_FOUND', message: 'No such file in the demo.' } })
    )
  }

  return {
    async fetch(request, remoteAddress) {
      // If the Host header is not a host, there is no URL: that is not for the demo.
      const path = URL.parse(request.url)?.pathname
      if (path === undefined) return undefined
      if (path !== '/' && path !== '/demo' && !path.startsWith('/demo/')) return undefined
      const host = request.headers.get('host')
      const isOwn = isLoopbackAddress(remoteAddress) && isLoopbackHost(host)
      const { networks } = options
      if (!isOwn && networks === undefined) return forbidden('The demo answers on this machine only.')
      if (!isOwn && networks !== undefined && !isFromNetworks(networks, remoteAddress, host))
        return forbidden('The demo answers in the local networks of this machine only, at its address.')
      if (isForwarded(request.headers)) return forbidden('The demo answers no proxy.')
      return answer(request, path)
    },
  }
}

function forbidden(message: string): Response {
  return answerJson(403, { success: false, error: { code: 'DEMO_FORBIDDEN', message } })
}

function methodNotAllowed(allow: string): Response {
  const body = { success: false, error: { code: 'METHOD_NOT_ALLOWED', message: `Allowed: ${allow}.` } }
  return answerJson(405, body, { allow })
}
