// The people, their rights, and the one who is signed in. Your application has all of this already, with passwords.
import { randomUUID } from 'node:crypto'

const order = (context_id) => ({ context_type: 'order', context_id, about: `Order ${context_id}` })
const desk = (about) => ({ context_type: 'desk', context_id: 'support', about })

/** A role and an id are a participant; the rest is shown. */
const everybody = {
  ben: { user_id: 'ben', display_name: 'Ben', role: 'agent', ...desk('Orders and delivery') },
  cora: { user_id: 'cora', display_name: 'Cora', role: 'agent', ...desk('Returns and refunds') },
  eve: { user_id: 'eve', display_name: 'Eve', role: 'agent', ...desk('Everything else') },
  ann: { user_id: 'ann', display_name: 'Ann', role: 'customer', ...order('1042') },
  dan: { user_id: 'dan', display_name: 'Dan', role: 'customer', ...order('2077') },
}
export const people = Object.values(everybody)
export const personOf = ({ role, user_id }) => people.find((it) => it.user_id === user_id && it.role === role)
export const agents = people.filter(({ role }) => role === 'agent')

/** Customers call all agents by this name. */
export const support = { role: 'agent', group: 'support' }

/** Who is signed in, by the session of the cookie. */
const sessions = new Map()

const cookieOf = (request, name) => new RegExp(`(?:^|; )${name}=([\\w-]+)`).exec(request.headers.cookie)?.[1]
const safe = 'HttpOnly; SameSite=Strict; Path=/'

export const signedIn = (request) => sessions.get(cookieOf(request, 'session'))

/** The browser, for as long as it keeps its cookies: by this Ringwire knows which device it wakes. */
export const deviceOf = (request) => cookieOf(request, 'device')

/** The cookies of somebody who signs in; undefined where there is nobody of that name. */
export function signIn(name, request) {
  if (!Object.hasOwn(everybody, name)) return undefined
  const [session, device] = [randomUUID(), deviceOf(request) ?? randomUUID()]
  sessions.set(session, everybody[name])
  return [`session=${session}; ${safe}`, `device=${device}; Max-Age=31536000; ${safe}`]
}

export function signOut(request) {
  sessions.delete(cookieOf(request, 'session'))
  return [`session=; Max-Age=0; ${safe}`]
}
