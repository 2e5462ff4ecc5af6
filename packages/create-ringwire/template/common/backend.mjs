// The backend: it knows who is signed in, gets tokens for them, decides on invites, and hears of calls by webhooks.
import { RingwireError, WebhookVerificationError, webhooks } from '@ringwire/server-sdk'
import { decide, onWebhook } from './calls.mjs'
import { names, peersOf, signedIn, signIn, signOut } from './people.mjs'

const mostBytes = 64 * 1024
/** How many webhooks are remembered: the same one may come more than once. Yours are in your database. */
const mostSeen = 10_000

/** `secrets` are { webhook, invite }, what Ringwire signs with; what it does not sign is not read. */
export function createBackend({ ringwire, secrets }) {
  const seen = new Set()

  const routes = {
    'GET /me': (request) => {
      const me = signedIn(request)
      return me === undefined ? { names } : { me, peers: peersOf(me) }
    },
    'POST /sign-in': (request, response) => {
      const cookie = signIn(new URL(request.url, 'http://localhost').searchParams.get('name'))
      if (cookie === undefined) return response.writeHead(403).end()
      response.writeHead(204, { 'Set-Cookie': cookie }).end()
    },
    'POST /sign-out': (request, response) => {
      response.writeHead(204, { 'Set-Cookie': signOut(request) }).end()
    },
    /** A token for the signed-in user, and nobody else. */
    'POST /call-token': (request, response) => {
      const me = signedIn(request)
      if (me === undefined) return response.writeHead(401).end()
      return ringwire.token({ ...me, context_type: 'order', context_id: '1042' })
    },
    async 'POST /webhooks'(request, response) {
      const payload = await bodyOf(request)
      const event = webhooks.verify({ payload, headers: request.headers, secret: secrets.webhook })
      response.writeHead(204).end()
      if (seen.has(event.id)) return
      if (seen.size >= mostSeen) seen.clear()
      seen.add(event.id)
      onWebhook(event)
    },
    async 'POST /invites'(request) {
      const payload = await bodyOf(request)
      return decide(webhooks.verifyInvite({ payload, headers: request.headers, secret: secrets.invite }).data)
    },
  }

  /** False: no route of the backend. */
  return async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost')
    const route = `${request.method} ${pathname}`
    if (!Object.hasOwn(routes, route)) return false
    try {
      const answer = await routes[route](request, response)
      if (response.headersSent) return true
      response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
      response.end(JSON.stringify(answer))
    } catch (error) {
      console.error(`${route}: ${error.code ?? error.message}`)
      if (!response.headersSent) response.writeHead(statusOf(error)).end()
    }
    return true
  }
}

function statusOf(error) {
  if (error instanceof WebhookVerificationError) return 401
  // The SDK in the page asks again by itself.
  return error instanceof RingwireError ? 503 : 500
}

/** The bytes as they came: the signature is over them. */
async function bodyOf(request) {
  const chunks = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > mostBytes) throw new Error('the body is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
