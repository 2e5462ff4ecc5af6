import { sameParticipant } from '../call/call.ts'
import type { SessionIdentity, Sink } from '../ports/sessions.ts'
import { socketAhead } from '../session/late.ts'
import { isOpen, mayResume, type Session, sinkToRetire } from '../session/session.ts'
import type { SessionTable } from '../session/table.ts'
import type { BelievedDirectory } from './directory.ts'
import { notHere } from './frames.ts'
import type { Routes } from './routes.ts'
import { stampOf } from './rows.ts'
import type { Saves } from './saves.ts'

export interface HandoffsOptions {
  readonly node: string
  readonly table: SessionTable
  readonly directory: Pick<BelievedDirectory, 'row'>
  readonly saves: Pick<Saves, 'settle' | 'give'>
  readonly routes: Routes
  /** See `Owner`. */
  readonly ownerOf: (sessionId: string) => Promise<string | undefined>
}

/** What a node that gives a session away answers. */
export type HandedOff =
  | { readonly fence: string; readonly hadSocket: boolean; readonly turn: number }
  /** A newer one has come back meanwhile. */
  | 'late'
  | 'refused'
  | typeof notHere

/** Whoever comes back; its turn, once it was given one, or 0. */
export interface ComesBack {
  readonly identity: SessionIdentity
  turn: number
  /** The last push that its client saw. */
  readonly seq: number | undefined
  /** Whether its socket is closed by now: then it takes the session from nobody [RES1]. */
  readonly isOver: () => boolean
}

/** How this node gives sessions to other nodes, to which their clients came back. */
export interface Handoffs {
  /** Whether this node has a session, and is not just giving it away. */
  isHere(sessionId: string): boolean
  /** Another node wants it, as it found it in the directory: with this stamp. */
  handOff(
    to: string,
    sessionId: string,
    stamp: string,
    comesBack: Pick<ComesBack, 'identity' | 'turn' | 'seq'> | null,
  ): Promise<HandedOff>
  /** Resolves when a session that is just being given away is gone, or stays. */
  leaving(sessionId: string): Promise<void> | undefined
}

export function createHandoffs({ node, table, directory, saves, routes, ownerOf }: HandoffsOptions): Handoffs {
  const leaving = new Map<string, Promise<void>>()
  const isHere = (id: string) => table.get(id) !== undefined && !leaving.has(id)

  /** The asking node may have read the directory before its client came here, or came back. If it still waits, it reads again [RES1]. */
  async function isOutdated(session: Session, stamp: string): Promise<boolean> {
    if (stamp === stampOf({ fence: session.saving.fence, turn: session.turn })) return false
    await saves.settle()
    const row = await directory.row(session.identity.sessionId)
    // Where the directory has lost something, it is not this node that goes by an old one.
    return row !== undefined && stampOf(row) !== stamp
  }

  const handOff: Handoffs['handOff'] = async (to, id, stamp, comesBack) => {
    const { identity = null, turn: given = 0, seq } = comesBack ?? {}
    // The asking node found this node in the directory, wherever this node saw the session last.
    if (!isHere(id)) routes.forget(id)
    if (!isHere(id) && (await ownerOf(id)) !== node) return notHere
    const session = table.get(id)
    if (session === undefined || (await isOutdated(session, stamp))) return notHere
    if (table.get(id) !== session || leaving.has(id)) return notHere
    if (identity === null ? isOpen(session) : !isOwn(session, identity)) return 'refused'
    // Before any socket is asked: one that comes meanwhile is newer.
    const turn = identity === null ? session.turn : given === 0 ? ++session.turn : given
    const ahead = socketAhead(session, seq)
    if (ahead !== undefined) {
      if (await ahead.probe()) return 'late'
      if (table.get(id) !== session || leaving.has(id)) return notHere
    }
    if (turn < session.turn) return 'late'
    const hadSocket = isOpen(session)
    // If nobody can come back, a request on an earlier socket goes on. The asking node may wait for just that request.
    if ((identity !== null || mayResume(session)) && !(await retireAll(session))) return notHere
    if (turn < session.turn) return 'late'
    return (await letGo(session, to)) ? { fence: String(session.saving.fence), hadSocket, turn } : notHere
  }

  /** Resolves when nothing that came on an earlier socket takes effect any more. */
  async function retireAll(session: Session): Promise<boolean> {
    const { sessionId } = session.identity
    let retired: Sink | undefined
    for (let sink = sinkToRetire(session); sink !== undefined && sink !== retired; ) {
      await sink.retire()
      retired = sink
      if (table.get(sessionId) !== session || leaving.has(sessionId)) return false
      sink = sinkToRetire(session)
    }
    const { socket } = session
    if (socket.is === 'open') table.detach(sessionId, socket.sink, false, table.now)
    return table.get(sessionId) === session
  }

  async function letGo(session: Session, to: string): Promise<boolean> {
    const { sessionId } = session.identity
    // Its client came back here in this very turn.
    if (!isHere(sessionId) || isOpen(session)) return false
    const { promise, resolve } = Promise.withResolvers<void>()
    leaving.set(sessionId, promise)
    try {
      // All of it, what its client asked for too: a server that took over has not what it had before for sure.
      await saves.give(session, to)
      // Another node was faster.
      if (table.get(sessionId) !== session) return false
      table.drop(sessionId)
      routes.note(sessionId, to)
      return true
    } finally {
      leaving.delete(sessionId)
      resolve()
    }
  }

  return { isHere, handOff, leaving: (id) => leaving.get(id) }
}

/** Nobody else touches a session, or its socket [RES2]. */
export function isOwn(session: Session, identity: SessionIdentity): boolean {
  const { participant, extended, deviceId } = session.identity
  return extended && deviceId === identity.deviceId && sameParticipant(participant, identity.participant)
}
