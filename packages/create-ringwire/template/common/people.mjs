// The people, and the one who is signed in. Your application has this already, with passwords.
import { randomUUID } from 'node:crypto'

/** A role and an ID are a participant. Whom somebody may call is your decision, too. */
const everybody = {
  ann: { user_id: 'ann', display_name: 'Ann', role: 'customer', allowed_peer_role: 'agent' },
  ben: { user_id: 'ben', display_name: 'Ben', role: 'agent', allowed_peer_role: 'customer' },
}

export const names = Object.entries(everybody).map(([name, { display_name }]) => ({ name, display_name }))

/** The people whom somebody may call, as the page shows them. */
export const peersOf = ({ allowed_peer_role }) =>
  Object.values(everybody).filter(({ role }) => role === allowed_peer_role)

/** Who is signed in, by the session of the cookie. */
const sessions = new Map()
const sessionOf = (request) => /(?:^|; )session=([\w-]+)/.exec(request.headers.cookie)?.[1]
const cookie = (value, more = '') => `session=${value}; HttpOnly; SameSite=Strict; Path=/${more}`

export const signedIn = (request) => sessions.get(sessionOf(request))

/** The cookie of somebody who signs in; undefined where there is nobody of that name. */
export function signIn(name) {
  if (!Object.hasOwn(everybody, name)) return undefined
  const session = randomUUID()
  sessions.set(session, everybody[name])
  return cookie(session)
}

export function signOut(request) {
  sessions.delete(sessionOf(request))
  return cookie('', '; Max-Age=0')
}
