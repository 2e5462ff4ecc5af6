import type { ExtendedAuthOk, SessionReset } from '@ringwire/protocol/events/auth'
import type { Calls } from './calls.ts'
import type { Connection } from './connection.ts'
import type { Visit } from './environment.ts'
import type { Listeners } from './listeners.ts'
import type { News } from './parts.ts'
import type { Renewal } from './renewal.ts'
import type { Requests } from './requests.ts'
import type { Keeper, Session } from './session.ts'
import type { ClientEvents, RingwireErrorShape, SessionToken } from './types.ts'
import type { Envelope, Push } from './wire.ts'

export type IceTold = Required<Pick<SessionToken, 'ice_servers'>> & Pick<SessionToken, 'ice_transport_policy'>

/** A client from inside. */
export interface Inside {
  readonly listeners: Listeners<ClientEvents>
  readonly news: Listeners<News>
  readonly session: Session
  readonly keeper: Keeper
  readonly requests: Requests
  readonly renewal: Renewal
  readonly calls: Calls
  readonly connection: Connection
  /** How this page came to be: the first session that it begins has to do with it, no later one. */
  visit: Visit
  /** This page had no socket yet: what it finds in its session is new to it. */
  isFresh: boolean
  /** The last ICE servers from the service, by the token or by a push [EXT5], and their policy [PRIV1]. */
  ice: IceTold
}

/** `auth.ok` came. */
export function sessionBegun(to: Inside, data: ExtendedAuthOk): void {
  const { isFresh } = to
  const active = data.active_calls
  const rejoins = to.visit === 'reload'
  to.isFresh = false
  to.visit = 'return'
  to.session.began(data)
  to.news.emit('active', active)
  if (data.recovered) {
    to.requests.resumed(data.handled)
    to.calls.recovered(active)
    if (isFresh) to.calls.adopt(active, false, rejoins)
  } else {
    to.requests.restarted()
    to.calls.reconcile(active, true, rejoins)
    to.requests.resumed(0)
  }
  // Listeners may have closed the client meanwhile.
  if (to.connection.state().name !== 'online') return
  to.renewal.start()
  save(to)
}

/** For the page that comes after this one [RES1]. */
function save({ session, keeper, requests }: Inside): void {
  keeper.save(session.snapshot(requests.replied()))
}

/** Returns false if a push is missing: the socket cannot be trusted any more. */
export function hearEnvelope(to: Inside, envelope: Envelope): boolean {
  const { event, request_id, seq, error, data } = envelope
  if (request_id !== undefined) {
    to.requests.answer(request_id, error ? { ok: false, error } : { ok: true, data: data as never })
  } else if (event === 'session.reset') hearReset(to, data as unknown as SessionReset, seq)
  else if (seq !== undefined) {
    const order = to.session.see(seq)
    if (order === 'gap') return false
    if (order === 'next') hearPush(to, envelope as unknown as Push)
  } else if (error) to.listeners.emit('error', error)
  // A relay that went past the log: the store of the logs was away [EXT3].
  else if ('from_role' in data) hearPush(to, envelope as unknown as Push)
  save(to)
  return true
}

function hearPush(to: Inside, push: Push): void {
  to.news.emit('push', push)
  if (push.event === 'ice.servers') hearIceServers(to, push.data)
  else to.calls.receive(push)
}

export function hearIceServers(to: Inside, told: Partial<IceTold>): void {
  if (!told.ice_servers) return
  to.ice = told as IceTold
  to.listeners.emit('iceServers', told.ice_servers)
}

/** The log was lost under the live socket: what was said may have been lost with it [RES4]. */
function hearReset(to: Inside, data: SessionReset, seq: number | undefined): void {
  to.session.began(data)
  if (seq !== undefined) to.session.see(seq)
  to.news.emit('active', data.active_calls)
  to.calls.reconcile(data.active_calls, false, false)
}

/** The socket is gone, for now or for good. */
export function sessionLost(to: Inside, isFinal: boolean, cause: RingwireErrorShape | undefined): void {
  to.requests.pause()
  to.renewal.stop()
  if (!isFinal) return
  to.session.forget()
  save(to)
  to.isFresh = true
  to.requests.close(cause)
  to.calls.drop(cause)
}
