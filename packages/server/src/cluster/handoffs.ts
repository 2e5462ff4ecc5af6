import { sameParticipant } from '../call/call.ts'
import type { SessionIdentity, Sink } from '../ports/sessions.ts'
import { socketAhead } from '../session/late.ts'
import { isOpen, mayResume, type Session, sinkToRetire } from '../session/session.ts'
import type { SessionTable } from '../session/table.ts'
import type { BelievedDirectory } from './directory.ts'
import { notHere } from './frames.ts'
import type { Leaving } from './leaving.ts'
import type { Routes } from './routes.ts'
import { stampOf } from './rows.ts'
import type { Saves } from './saves.ts'

export interface HandoffsOptions {
  readonly node: string
  readonly table: SessionTable
  readonly directory: Pick<BelievedDirectory, 'row'>
  readonly saves: Pick<Saves, 'settle'>
  readonly routes: Routes
  readonly leaving: Leaving
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

/** The client that comes back; its turn, once it has one, or 0. */
export interface ComesBack {
  readonly identity: SessionIdentity
  turn: number
  /** The last push that its client saw. */
  readonly seq: number | undefined
  /** Whether its socket is closed by now: then it takes the session from nobody [RES1]. */
  readonly isOver: () => boolean
}

export type Handoffs = ReturnType<typeof createHandoffs>

/** How this node gives sessions to other nodes, to which their clients came back. */
export function createHandoffs({ node, table, directory, saves, routes, leaving, ownerOf }: HandoffsOptions) {
  const { isHere, letGo } = leaving
  const isStillHere = (session: Session) =>
    table.get(session.identity.sessionId) === session && isHere(session.identity.sessionId)

  /** The asking node may have read the directory before its client came here, or came back. If it still waits, it reads again [RES1]. */
  async function isOutdated(session: Session, stamp: string): Promise<boolean> {
    if (stamp === stampOf({ fence: session.saving.fence, turn: session.turn })) return false
    await saves.settle()
    const row = await directory.row(session.identity.sessionId)
    // If the directory has lost something, this node knows better.
    return row !== undefined && stampOf(row) !== stamp
  }

  /** Resolves when nothing that came on an earlier socket takes effect any more. */
  async function retireAll(session: Session): Promise<boolean> {
    const { sessionId } = session.identity
    let retired: Sink | undefined
    for (let sink = sinkToRetire(session); sink !== undefined && sink !== retired; ) {
      await sink.retire()
      retired = sink
      if (!isStillHere(session)) return false
      sink = sinkToRetire(session)
    }
    const { socket } = session
    if (socket.is === 'open') table.detach(sessionId, socket.sink, false, table.now)
    return table.get(sessionId) === session
  }

  /** Another node wants a session that it found in the directory with this stamp. */
  return async (
    to: string,
    id: string,
    stamp: string,
    comesBack: Pick<ComesBack, 'identity' | 'turn' | 'seq'> | null,
  ): Promise<HandedOff> => {
    const { identity = null, turn: given = 0, seq } = comesBack ?? {}
    // The asking node found this node in the directory, wherever this node saw the session last.
    if (!isHere(id)) routes.forget(id)
    if (!isHere(id) && (await ownerOf(id)) !== node) return notHere
    const session = table.get(id)
    if (session === undefined || (await isOutdated(session, stamp))) return notHere
    if (!isStillHere(session)) return notHere
    if (identity === null ? isOpen(session) : !isOwn(session, identity)) return 'refused'
    // Counted before any socket is probed: a client that comes meanwhile is newer.
    const turn = identity === null ? session.turn : given === 0 ? ++session.turn : given
    const ahead = socketAhead(session, seq)
    if (ahead !== undefined) {
      if (await ahead.probe()) return 'late'
      if (!isStillHere(session)) return notHere
    }
    if (turn < session.turn) return 'late'
    const hadSocket = isOpen(session)
    // If nobody can come back, a request on an earlier socket goes on. The asking node may wait for just that request.
    if ((identity !== null || mayResume(session)) && !(await retireAll(session))) return notHere
    if (turn < session.turn) return 'late'
    return (await letGo(session, to)) ? { fence: String(session.saving.fence), hadSocket, turn } : notHere
  }
}

/** Nobody else touches a session, or its socket [RES2]. */
export function isOwn(session: Session, identity: SessionIdentity): boolean {
  const { participant, extended, deviceId } = session.identity
  return extended && deviceId === identity.deviceId && sameParticipant(participant, identity.participant)
}
