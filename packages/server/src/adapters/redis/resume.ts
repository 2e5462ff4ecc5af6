import type { ResumeRequest, SessionIdentity, Sessions, Sink, Upstream } from '../../ports/sessions.ts'
import { StoreError } from '../../ports/store-error.ts'
import { participantHash } from '../../session/session-id.ts'
import type { Departures } from './departures.ts'
import { createHeld, learnCalls, newUpstream } from './held.ts'
import type { Holder, HolderOptions } from './holder.ts'
import { deviceField, expiryField, newSocket, versionField } from './identity.ts'
import type { Sockets } from './sockets.ts'

/** What the store says of a session. */
export interface Found {
  /** The node that holds its socket, and the socket; '' where it has none. */
  readonly holder: string
  readonly socket: string
  /** Those that it had last. */
  readonly lastHolder: string
  readonly lastSocket: string
  readonly hash: string
  readonly device: string
  readonly extended: boolean
  readonly holds: boolean
  readonly rings: boolean
  /** It has no socket, and its client closed the last one. */
  readonly closed: boolean
  /** Whose turn it is of those that came back; and the one that is given to who comes back just now. */
  readonly turn: number
  readonly given: number | undefined
}

export interface ResumeOptions extends Pick<HolderOptions, 'run' | 'onError'>, Pick<Departures, 'mayHaveSocket'> {
  readonly sockets: Sockets
  /** Gives who comes back a turn, where the session is its own. */
  readonly look: (sessionId: string, comesBack?: SessionIdentity) => Promise<Found | undefined>
  /** How long an extended session can be resumed, in ms [RES1]. */
  readonly windowMs: number
}

/** Sessions that come back, here or from another node: see `sinkToReplace` and `resume` of `Sessions`. */
export type Resume = Pick<Sessions, 'sinkToReplace' | 'resume'>

/** A session whose socket is replaced so often while it is resumed has to wait. */
const mostReplaced = 5

export function createResume(holder: Holder, options: ResumeOptions): Resume {
  const { held, last, hearAll } = holder
  const { run, sockets, look, mayHaveSocket, windowMs, onError } = options
  /** Which sockets those are that have to be retired. */
  const handedOut = new WeakMap<Sink, string>()
  /** In which turn sockets came back, wherever: the store counts. Of several at once the newest wins [RES1]. */
  const turns = new WeakMap<Sink, number>()
  const turnOf = (sink: Sink | undefined) => (sink && turns.get(sink)) ?? Number.POSITIVE_INFINITY

  /** Another one came back after this one, and was faster. */
  function giveWay(sink: Sink | undefined): never {
    sink?.close(4409, 'replaced by a newer connection')
    throw new StoreError('unavailable', 'the session has a newer socket meanwhile')
  }

  /** The socket that a session has, or had last, for the one that comes back; `sink` where there is something to wait for. */
  async function lastSocketOf(id: string, identity: SessionIdentity, next: Sink | undefined) {
    const isFirst = next !== undefined && !turns.has(next)
    const found = await look(id, isFirst ? identity : undefined)
    if (found === undefined || !isOwn(found, identity)) return undefined
    if (isFirst && found.given !== undefined) turns.set(next, found.given)
    if (turnOf(next) < found.turn) giveWay(next)
    const isHeld = found.socket !== ''
    const name = isHeld ? found.socket : found.lastSocket
    const sink = sockets.at(isHeld ? found.holder : found.lastHolder, id, name)
    if (sink !== undefined) handedOut.set(sink, name)
    return { name, sink }
  }

  /**
   * The session's new socket is here, unless it is over. Another socket may have come in between, on this node or another:
   * what it was asked for has to be known first, so that nothing takes effect twice [EXT4].
   */
  async function takeOver(
    request: ResumeRequest,
    identity: SessionIdentity,
    sink: Sink,
    socket: string,
    at: number,
    retired?: Sink,
  ) {
    const { sessionId, epoch, replied = 0 } = request
    const whose = [sessionId, participantHash(identity.participant), deviceField(identity)]
    let before = retired === undefined ? '' : (handedOut.get(retired) ?? '')
    for (let tries = 0; tries < mostReplaced; tries++) {
      const here = held.get(sessionId)
      if (here !== undefined && here.sink !== retired && isSame(here.identity, identity)) {
        if (turnOf(sink) < (turns.get(here.sink) ?? 0)) giveWay(sink)
        await here.sink.retire()
      }
      if (sink.isClosed) throw new StoreError('unavailable', 'the connection was closed meanwhile')
      const own = held.get(sessionId) ?? last.get(sessionId)
      const mine = [own?.socket ?? '', own?.upstream.dropped ?? 0]
      const seen = [epoch, seenSeq(request), replied]
      const turn = turns.get(sink) ?? ''
      const args = [
        ...whose,
        ...seen,
        socket,
        at,
        windowMs,
        ...mine,
        before,
        expiryField(identity),
        turn,
        versionField(identity),
      ]
      const reply = (await run('resume', sessionId, args).catch(mayHaveSocket(sessionId, socket, '0'))) ?? ['']
      if (reply[0] !== 'other' && reply[0] !== 'late') return { own, reply }
      hearAll(reply.slice(1))
      if (reply[0] === 'late') giveWay(sink)
      const older = await lastSocketOf(sessionId, identity, sink)
      await older?.sink?.retire()
      before = older?.name ?? ''
    }
    throw new StoreError('unavailable', 'the session gets a new socket again and again')
  }

  return {
    async sinkToReplace(id, identity, next) {
      return (await lastSocketOf(id, identity, next))?.sink
    },
    async resume(request, identity, sink, at, retired) {
      const { sessionId, replied } = request
      const socket = newSocket()
      const { own, reply } = await takeOver(request, identity, sink, socket, at, retired)
      const [epoch, stored, isOwnSocket, calls, openedAt, rings] = reply
      if (epoch === '') {
        hearAll(reply.slice(1))
        return undefined
      }
      const upstream = isOwnSocket === 1 && own !== undefined ? own.upstream : readUpstream(String(stored))
      // Of a node that died less may be stored than it answered; what was answered was handled.
      upstream.handled = Math.max(upstream.handled, replied ?? 0)
      const session = createHeld({ ...identity, sessionId }, socket, sink, String(epoch), upstream, Number(openedAt))
      session.delivered = seenSeq(request)
      learnCalls(session, calls as unknown as string[])
      // One that came back here at the same time, and was a moment faster: the newest wins.
      void held.get(sessionId)?.sink.retire().catch(onError)
      held.set(sessionId, session)
      last.delete(sessionId)
      return { epoch: session.epoch, upstream, rings: (rings as unknown as string[]).map(decodeURIComponent) }
    },
  }
}

/** Nobody else touches a session, or its socket [RES2]. */
function isOwn({ extended, hash, device }: Found, identity: SessionIdentity): boolean {
  return extended && hash === participantHash(identity.participant) && device === deviceField(identity)
}

function isSame(session: SessionIdentity, identity: SessionIdentity): boolean {
  if (!session.extended || deviceField(session) !== deviceField(identity)) return false
  return participantHash(session.participant) === participantHash(identity.participant)
}

/** What a client names that was never given out is in no log. */
function seenSeq({ seq }: ResumeRequest): number {
  return Number.isSafeInteger(seq) ? seq : -1
}

function readUpstream(text: string): Upstream {
  return text === '' ? newUpstream() : JSON.parse(text)
}
