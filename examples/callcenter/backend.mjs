// The backend: it knows who is signed in, gets tokens for them, decides whether their calls may ring, and hears of them by
// webhooks.
import { RingwireError, WebhookVerificationError, webhooks } from '@ringwire/server-sdk'
import { steps } from './book.mjs'
import { createDesk } from './desk.mjs'
import { deviceOf, people, personOf, signedIn, signIn, signOut } from './people.mjs'
import { createQueue } from './queue.mjs'

const mostBytes = 64 * 1024

export function createBackend({ ringwire, book, hours, serviceUrl, vapidPublicKey, webhookSecret, inviteSecret }) {
  const queue = createQueue()
  const desk = createDesk({ ringwire, book, hours, queue })

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
    /** A token for the signed-in user, and nobody else. */
    async 'POST /api/call-token'(request, response) {
      const user = signedIn(request)
      if (user === undefined) return response.writeHead(401).end()
      const { about: _, ...identity } = user
      // Agents call customers back, and hand them over to colleagues.
      const peers =
        user.role === 'agent'
          ? { allowed_peer_role: 'customer', more_peer_roles: ['agent'] }
          : { allowed_peer_role: 'agent' }
      return ringwire.token({ ...identity, ...peers, device_id: deviceOf(request) })
    },
    'GET /api/desk'(request, response) {
      const user = signedIn(request)
      if (user === undefined) return response.writeHead(401).end()
      desk.watch(user, response)
    },
    /** The customer who waits longest, for an agent who calls now. No other agent gets the same one. */
    'POST /api/queue/next'(request, response) {
      if (signedIn(request)?.role !== 'agent') return response.writeHead(403).end()
      const userId = queue.next((it) => book.isInCall({ role: 'customer', user_id: it }))
      return userId === undefined ? response.writeHead(204).end() : personOf({ role: 'customer', user_id: userId })
    },
    'POST /api/queue/leave'(request, response) {
      const user = signedIn(request)
      if (user === undefined) return response.writeHead(401).end()
      queue.leave(user.user_id)
      response.writeHead(204).end()
      desk.changed()
    },
    ...createHooks({ book, hours, queue, desk, webhookSecret, inviteSecret }),
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

/** The routes that Ringwire itself calls. */
function createHooks({ book, hours, queue, desk, webhookSecret, inviteSecret }) {
  return {
    /** Ringwire asks before a call rings. */
    async 'POST /invites'(request, response) {
      const question = await signed(request, webhooks.verifyInvite, inviteSecret)
      if (question === undefined) return response.writeHead(401).end()
      const { caller, group } = question.data
      if (caller.role === 'agent') return { decision: 'allow' }
      if (!hours.isOpen()) return { decision: 'refuse', reason: 'closed' }
      if (group === undefined || (await desk.isAnybodyFree())) return { decision: 'allow' }
      // Nobody would hear it ring.
      queue.join(caller.user_id)
      desk.changed()
      return { decision: 'refuse', reason: 'queued' }
    },
    /** Ringwire tells what became of calls. */
    async 'POST /webhooks'(request, response) {
      const event = await signed(request, webhooks.verify, webhookSecret)
      if (event === undefined) return response.writeHead(401).end()
      const { type, data } = event
      if (steps.includes(type) && book.write(data)) queue.heard(data)
      // It is written: Ringwire need not send it again.
      response.writeHead(204).end()
      desk.changed()
    },
  }
}

/** The signed body of a request from Ringwire: undefined if it is not signed with this secret. */
async function signed(request, verify, secret) {
  const payload = await bodyOf(request)
  try {
    return verify({ payload, headers: request.headers, secret })
  } catch (error) {
    if (error instanceof WebhookVerificationError) return undefined
    throw error
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
