import { tagOfSessionId } from '../ports/session-id.ts'
import type { SessionIdentity, Sessions, Sink } from '../ports/sessions.ts'
import { ClosedError, LateError, socketAhead, turnAway } from '../session/late.ts'
import type { Session } from '../session/session.ts'
import type { SessionTable } from '../session/table.ts'
import { isOwn } from './handoffs.ts'
import type { Owner } from './owner.ts'
import { changing, mostTries } from './retries.ts'
import type { Saves } from './saves.ts'

export interface ResumesOptions {
  readonly table: SessionTable
  readonly owner: Owner
  /** Resolves when others find the session with this socket; rejects where it is not the session's any more. */
  readonly registered: (sessionId: string, sink: Sink, isNew: boolean) => Promise<void>
  readonly settle: Saves['settle']
}

/** A socket that wants a session, and the last push that its client saw. */
interface ComingBack {
  readonly id: string
  readonly identity: SessionIdentity
  readonly seq: number | undefined
  readonly sink?: Sink | undefined
  readonly next?: Sink | undefined
}

/** Resumes sessions whose clients come back here: each becomes this node's own first, and then it is as on one node. */
export function createResumes({
  table,
  owner,
  registered,
  settle,
}: ResumesOptions): Pick<Sessions, 'sinkToReplace' | 'resume'> {
  const { bringHere, giveWay, hasTurn } = createTurns(table, owner)

  /**
   * Until the session is here, and no other socket has it: it may go elsewhere while an earlier socket is waited for. It gets
   * its socket in the turn in which that is so: nothing would be delivered to a session that is being given away [INV4].
   */
  async function bringAndOpen<T>(coming: ComingBack, sink: Sink, retired: Sink | undefined, open: () => T): Promise<T> {
    const { id, identity } = coming
    for (let tries = 0, last = retired; tries < mostTries; tries++) {
      if (!sink.isClosed) await bringHere({ ...coming, sink, next: hasTurn(sink) ? sink : undefined })
      if (sink.isClosed) throw new ClosedError()
      if (table.get(id) !== undefined && !owner.isHere(id)) continue
      const here = table.sinkToReplace(id, identity)
      if (here === undefined || here === last) {
        giveWay(id, sink)
        return open()
      }
      await here.retire()
      last = here
    }
    throw changing()
  }

  /**
   * A node that stood still may not know yet that another one has the session: it refuses nobody by what it had of it. A
   * save says whose it is.
   */
  async function bringAndResume<T>(
    coming: ComingBack,
    sink: Sink,
    retired: Sink | undefined,
    resume: () => T | undefined,
  ): Promise<T | undefined> {
    for (let tries = 0; tries < mostTries; tries++) {
      let refused: Session | undefined
      const open = await bringAndOpen(coming, sink, retired, () => {
        const session = table.get(coming.id)
        const resumed = resume()
        if (resumed === undefined) refused = session
        return resumed
      })
      if (open !== undefined || refused === undefined) return open
      await settle()
      if (table.get(coming.id) === refused) return undefined
    }
    throw changing()
  }

  return {
    async sinkToReplace(id, identity, next, seq) {
      if (next?.isClosed === true || tagOfSessionId(id) === undefined) return undefined
      await bringHere({ id, identity, seq, sink: next, next })
      return table.sinkToReplace(id, identity)
    },
    async resume(request, identity, sink, at, retired) {
      const { sessionId, seq, replied = 0 } = request
      if (tagOfSessionId(sessionId) === undefined) return undefined
      const open = await bringAndResume({ id: sessionId, identity, seq }, sink, retired, () =>
        table.resume(request, identity, sink, at),
      )
      if (open === undefined) return undefined
      // A node that died may have answered more than it saved; what was answered was handled.
      const { upstream } = open
      upstream.handled = Math.max(upstream.handled, replied)
      upstream.final = Math.max(upstream.final, replied)
      await registered(sessionId, sink, false)
      return open
    },
  }
}

/** In which turn sockets came back: the owner counts. Of several at once the newest wins [RES1]. */
function createTurns(table: SessionTable, owner: Owner) {
  const turns = new WeakMap<Sink, number>()

  /** Makes the session this node's own for a socket. `next`: that socket again, where it wants a turn among several. */
  async function bringHere({ id, identity, seq, sink, next }: ComingBack): Promise<void> {
    const isOver = () => sink?.isClosed === true
    const comesBack = { identity, turn: (next && turns.get(next)) ?? 0, seq, isOver }
    try {
      if (!owner.isHere(id)) await owner.acquire(id, comesBack)
    } catch (error) {
      if (error instanceof LateError && next !== undefined) turnAway(next)
      throw error
    }
    const session = table.get(id)
    if (next === undefined || session === undefined || !isOwn(session, identity)) return
    if (comesBack.turn === 0) comesBack.turn = ++session.turn
    // Noted before any socket is probed: a client that comes meanwhile is newer.
    turns.set(next, comesBack.turn)
    const ahead = socketAhead(session, seq)
    if (ahead !== undefined) {
      if (await ahead.probe()) turnAway(next)
      if (isOver()) throw new ClosedError()
    }
    giveWay(id, next)
  }

  /** Another one came back after this one. */
  function giveWay(id: string, sink: Sink): void {
    const turn = turns.get(sink)
    if (turn === undefined || turn >= (table.get(id)?.turn ?? 0)) return
    turnAway(sink)
  }

  return { bringHere, giveWay, hasTurn: (sink: Sink) => turns.has(sink) }
}
