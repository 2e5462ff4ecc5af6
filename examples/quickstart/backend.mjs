// The backend: it knows who is signed in, and asks Ringwire for a token for that person and nobody else.
import { randomUUID } from 'node:crypto'

/** Your users. Whom they may call is your decision, too. */
const users = {
  ann: { user_id: 'ann', display_name: 'Ann', role: 'customer', allowed_peer_role: 'agent' },
  ben: { user_id: 'ben', display_name: 'Ben', role: 'agent', allowed_peer_role: 'customer' },
}
/** Who is signed in, by the session of the cookie. Your application has this already, with passwords. */
const sessions = new Map()

export function signIn(name, response) {
  if (!Object.hasOwn(users, name)) return response.writeHead(403).end()
  const session = randomUUID()
  sessions.set(session, users[name])
  response.writeHead(204, { 'Set-Cookie': `session=${session}; HttpOnly; SameSite=Strict; Path=/` }).end()
}

export async function callToken({ url, keyId, secret }, request, response) {
  const user = sessions.get(/(?:^|; )session=([^;]+)/.exec(request.headers.cookie)?.[1])
  if (user === undefined) return response.writeHead(401).end()
  const answer = await fetch(`${url}/v1/call/session-token`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-SVC-Product-Key-ID': keyId, 'X-SVC-Product-Secret': secret },
    body: JSON.stringify({ ...user, context_type: 'order', context_id: '1042' }),
  })
  response.writeHead(answer.status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
  response.end(await answer.text())
}
