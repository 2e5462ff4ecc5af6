// The backend: it knows who is signed in, gets tokens for them, and hears of their calls by webhooks.
import { RingwireError, WebhookVerificationError, webhooks } from '@ringwire/server-sdk'
import { steps } from './book.mjs'
import { createDesk } from './desk.mjs'
import { deviceOf, people, signedIn, signIn, signOut } from './people.mjs'

const mostBytes = 64 * 1024

export function createBackend({ ringwire, book, serviceUrl, vapidPublicKey, webhookSecret }) {
  const desk = createDesk({ ringwire, book })

  const routes = {
    'GET /api/start'(request) {
      const user = signedIn(request) ?? null
      return { user, people, serviceUrl, vapidPublicKey }
    },
    'POST /api/sign-in'(request, response) {
      const cookies = signIn(new URL(request.url, 'http://localhost').searchParams.get('name'), request)
      if (cookies === undefined) return response.writeHead(403).end()
      response.writeHead(204, { 'Set-Cookie': cookies }).end()
    },
    'POST /api/sign-out'(request, response) {
      response.writeHead(204, { 'Set-Cookie': signOut(request) }).end()
    },
    /** A token for whoever is signed in, and nobody else. */
    async 'POST /api/call-token'(request, response) {
      const user = signedIn(request)
      if (user === undefined) return response.writeHead(401).end()
      const { about: _, ...identity } = user
      const allowed_peer_role = user.role === 'agent' ? 'customer' : 'agent'
      return ringwire.token({ ...identity, allowed_peer_role, device_id: deviceOf(request) })
    },
    'GET /api/desk'(request, response) {
      const user = signedIn(request)
      if (user === undefined) return response.writeHead(401).end()
      desk.watch(user, response)
    },
    /** Ringwire's, and nobody else's: what is not signed is not read. */
    async 'POST /webhooks'(request, response) {
      const payload = await bodyOf(request)
      try {
        const { type, data } = webhooks.verify({ payload, headers: request.headers, secret: webhookSecret })
        if (steps.includes(type)) book.write(data)
      } catch (error) {
        if (!(error instanceof WebhookVerificationError)) throw error
        return response.writeHead(401).end()
      }
      // It is written: Ringwire need not send it again.
      response.writeHead(204).end()
      desk.changed()
    },
  }

  /** False: no route of the backend. */
  return async (request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost')
    const route = routes[`${request.method} ${pathname}`]
    if (route === undefined) return false
    try {
      const answer = await route(request, response)
      if (answer !== undefined && !response.headersSent) {
        response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
        response.end(JSON.stringify(answer))
      }
    } catch (error) {
      console.error(`${pathname}: ${error.code ?? error.message}`)
      // The SDK in the page comes back by itself.
      response.writeHead(error instanceof RingwireError ? 503 : 500).end()
    }
    return true
  }
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
