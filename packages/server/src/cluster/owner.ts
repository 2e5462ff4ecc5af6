import { sameParticipant } from '../call/call.ts'
import type { Timers } from '../ports/clock.ts'
import { forgetOldest } from '../ports/oldest.ts'
import { tagOfSessionId } from '../ports/session-id.ts'
import type { SessionIdentity, Sink } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import { readSession } from '../session/copy.ts'
import { LateError, socketAhead } from '../session/late.ts'
import { isOpen, mayResume, type Session, sinkToRetire } from '../session/session.ts'
import type { SessionTable } from '../session/table.ts'
import type { Row } from './directory.port.ts'
import type { BelievedDirectory } from './directory.ts'
import { notHere } from './frames.ts'
import { askMs, type Inbox } from './inbox.ts'
import type { Living } from './living.ts'
import { stampOf } from './rows.ts'
import type { Saves } from './saves.ts'

export interface OwnerOptions {
  readonly node: string
  readonly table: SessionTable
  readonly directory: BelievedDirectory
  readonly saves: Saves
  readonly ask: Inbox['ask']
  /** Known for sure not to serve any more, as far as was seen at the last look; and the same as of now. */
  readonly isDead: (node: string) => boolean
  readonly isStillDead: (node: string) => Promise<boolean>
  readonly living: Pick<Living, 'falls' | 'isSaid' | 'isSilent' | 'staysSilent'>
  /** Something was taken from a node that seems to be dead. */
  readonly onTaken: (from: string) => void
  readonly timers: Pick<Timers, 'sleep'>
}

/** What a node that gives a session away answers. */
export type Yielded =
  | { readonly fence: string; readonly hadSocket: boolean; readonly turn: number }
  /** A newer one has come back meanwhile. */
  | 'late'
  | 'refused'
  | typeof notHere

/** Which sessions this node owns, and how others become its own. At most one node owns a session: who saves under an old fence is refused. */
export interface Owner {
  isHere(sessionId: string): boolean
  /** The other node that owned a session when it was seen last; undefined where that is not known, or is over. */
  routeOf(sessionId: string): string | undefined
  /** The node that owns a session, after it was taken over here where its owner is gone; undefined where there is none. */
  ownerOf(sessionId: string): Promise<string | undefined>
  /** That was wrong: the directory is asked the next time. */
  forgetRoute(sessionId: string): void
  /** Where a session was seen last. */
  noteRoute(sessionId: string, node: string): void
  /** Makes a session this node's own, for its client that came back here, or because it has no socket. False where it cannot be. */
  acquire(sessionId: string, comesBack?: ComesBack): Promise<boolean>
  /** The same of one that is free by the row that was just read; false where another one was faster, or its owner lives after all. */
  claim(row: Row): Promise<boolean>
  /** Makes a session this node's own whose place was found lost, and whose owner is silent. False where that is not so. */
  takeFromSilent(sessionId: string): Promise<boolean>
  /** Another node wants it, as it found it in the directory: with this stamp. */
  yieldTo(
    to: string,
    sessionId: string,
    stamp: string,
    comesBack: Pick<ComesBack, 'identity' | 'turn' | 'seq'> | null,
  ): Promise<Yielded>
  /** Whether nobody owns it, as far as was seen at the last look. */
  isFree(row: Row): boolean
  /** The same after another look: a node that stood still may have gone on since, and owns what comes to it from then on. */
  isStillFree(row: Row): Promise<boolean>
}

/** Whoever comes back; its turn, once it was given one, or 0. */
export interface ComesBack {
  readonly identity: SessionIdentity
  turn: number
  /** The last push that its client saw. */
  readonly seq: number | undefined
  /** Whether its socket is closed by now: then it takes the session from nobody [RES1]. */
  readonly isOver: () => boolean
}

/** Its owner of before, unless that gave it away itself. */
type Taken = Pick<Row, 'sessionId' | 'fence'> & Partial<Pick<Row, 'owner'>>

/** A session that changes its owner that often while it is looked for has to wait. */
const mostTries = 8
const mostRoutes = 50_000

export function createOwner(options: OwnerOptions): Owner {
  const { node, table, directory, saves, ask, isDead, isStillDead, living, onTaken, timers } = options
  /** Sessions that are just being taken over, or given away. */
  const claiming = new Map<string, Promise<boolean>>()
  const leaving = new Map<string, Promise<void>>()
  const routes = new Map<string, string>()

  const isHere = (id: string) => table.get(id) !== undefined && !leaving.has(id)

  function isFree({ owner }: Row): boolean {
    return owner === '' || owner === node || isDead(owner)
  }

  async function isStillFree(row: Row): Promise<boolean> {
    return isFree(row) && (row.owner === '' || row.owner === node || isStillDead(row.owner))
  }

  async function claim(row: Row): Promise<boolean> {
    return (await isStillFree(row)) && take(row)
  }

  function take({ sessionId, fence, owner = '' }: Taken): Promise<boolean> {
    const known = claiming.get(sessionId)
    if (known !== undefined) return known
    // Whoever gets it has asked first.
    const going = leaving.get(sessionId)
    if (going !== undefined) return going.then(() => false)
    const mine = takeNow(sessionId, fence, owner).finally(() => claiming.delete(sessionId))
    claiming.set(sessionId, mine)
    return mine
  }

  async function takeNow(id: string, fence: string, from: string): Promise<boolean> {
    await living.isSaid()
    const copy = await directory.claim(id, fence)
    // It may live, with sockets at which nothing comes any more [INV4].
    if (copy !== undefined && from !== '' && from !== node) onTaken(from)
    if (copy === undefined || copy === 'gone' || table.get(id) !== undefined) return false
    const session = readSession(copy.state, copy.entries, table.now)
    // Of a version that this one does not know: its client begins a new one [RES2].
    if (session === undefined) {
      await directory.forget(id, copy.fence)
      return false
    }
    session.saving.fence = copy.fence
    // What its client saw may not be in it.
    if (!copy.isWhole) session.broken = true
    session.saving.isSaved = true
    session.saving.isStale = true
    table.adopt(session)
    routes.delete(id)
    saves.save()?.catch(() => {
      // It is saved when the store is back.
    })
    return true
  }

  /** What is under way is waited for: a session that was just forgotten has to be gone from the directory, too. */
  async function settle(id: string): Promise<void> {
    await leaving.get(id)
    await claiming.get(id)?.catch(() => false)
    if (!isHere(id)) await saves.settle()
  }

  function routeOf(id: string): string | undefined {
    // Who owns it is just being decided.
    if (isHere(id) || leaving.has(id) || claiming.has(id)) return undefined
    const route = routes.get(id)
    return route === undefined || isDead(route) ? undefined : route
  }

  async function ownerOf(id: string): Promise<string | undefined> {
    for (let tries = 0; tries < mostTries; tries++) {
      const route = routeOf(id)
      if (route !== undefined) return route
      await settle(id)
      if (isHere(id)) return node
      const row = await directory.row(id)
      if (isHere(id)) return node
      if (row === undefined) return undefined
      if (!isFree(row)) {
        noteRoute(id, row.owner)
        return row.owner
      }
      await claim(row)
    }
    throw changing()
  }

  function noteRoute(id: string, owner: string): void {
    routes.delete(id)
    routes.set(id, owner)
    forgetOldest(routes, mostRoutes)
  }

  /** Where a replica was promoted that has not heard that this node gave it away, whoever got it is asked first. */
  async function rowOf(id: string): Promise<Row | undefined> {
    const row = await directory.row(id)
    const given = row?.owner === node && table.get(id) === undefined ? routeOf(id) : undefined
    return row && given !== undefined ? { ...row, owner: given } : row
  }

  async function acquire(id: string, comesBack?: ComesBack): Promise<boolean> {
    for (let tries = 0; tries < mostTries; tries++) {
      await settle(id)
      if (isHere(id)) return true
      const row = await rowOf(id)
      if (isHere(id)) return true
      if (row === undefined) return false
      if (comesBack?.isOver() === true) throw new ClosedError()
      if (isFree(row)) await claim(row)
      else {
        const answer = await askFor(row, comesBack).finally(() => routes.delete(id))
        if (answer === 'silent') {
          await take(row)
          continue
        }
        if (answer === 'refused') return false
        if (answer === 'late') throw new LateError()
        if (answer === notHere) await timers.sleep(pauseOf(tries))
        else {
          if (comesBack !== undefined) comesBack.turn = answer.turn
          await take({ sessionId: id, fence: answer.fence })
          const session = table.get(id)
          // No time counts against who had a socket until now [RES1].
          if (answer.hadSocket && session?.socket.is === 'lost') session.socket.at = Number.MAX_SAFE_INTEGER
        }
      }
    }
    throw changing()
  }

  async function takeFromSilent(id: string): Promise<boolean> {
    if (tagOfSessionId(id) === undefined) return false
    const route = routeOf(id)
    if (route !== undefined && !living.isSilent(route)) return false
    await settle(id)
    const row = isHere(id) ? undefined : await directory.row(id)
    if (row === undefined || isHere(id)) return false
    if (isFree(row)) return claim(row)
    if (!(await living.staysSilent(row.owner)) || isHere(id)) return false
    routes.delete(id)
    const isMine = await take(row)
    const session = isMine ? table.get(id) : undefined
    if (session !== undefined) session.isTaken = true
    return isMine
  }

  /** The client says itself that nothing comes of its old socket: a node that is silent keeps nothing from it. */
  async function askFor(row: Row, comesBack?: ComesBack): Promise<Yielded | 'silent'> {
    const { owner, sessionId } = row
    const stamp = stampOf(row)
    if (comesBack === undefined) return ask(owner, ['yield', sessionId, stamp, null, 0]) as Promise<Yielded>
    const { identity, turn, seq } = comesBack
    // In full: that it is silent is found out beside it, also of a node of which this one has only just heard.
    const asked = ask(owner, ['yield', sessionId, stamp, identity, turn, seq], askMs) as Promise<Yielded>
    const answered = asked.catch((error) => {
      if (living.isSilent(owner)) return 'silent' as const
      throw error
    })
    // Whatever becomes of the question then.
    answered.catch(() => {})
    const over = new AbortController()
    const falls = living.falls(owner, over.signal).then(() => 'silent' as const)
    return Promise.race([answered, falls]).finally(() => over.abort())
  }

  /** Whoever asks has looked at the directory before its client came here, or came back: it looks again, if it still waits [RES1]. */
  async function isOutdated(session: Session, stamp: string): Promise<boolean> {
    if (stamp === stampOf({ fence: session.saving.fence, turn: session.turn })) return false
    await saves.settle()
    const row = await directory.row(session.identity.sessionId)
    // Where the directory has lost something, it is not this node that goes by an old one.
    return row !== undefined && stampOf(row) !== stamp
  }

  const yieldTo: Owner['yieldTo'] = async (to, id, stamp, comesBack) => {
    const { identity = null, turn: given = 0, seq } = comesBack ?? {}
    // Whoever asks has found this node in the directory, wherever the session was seen before.
    if (!isHere(id)) routes.delete(id)
    if (!isHere(id) && (await ownerOf(id)) !== node) return notHere
    const session = table.get(id)
    if (session === undefined || (await isOutdated(session, stamp))) return notHere
    if (table.get(id) !== session || leaving.has(id)) return notHere
    if (identity === null ? isOpen(session) : !isOwn(session, identity)) return 'refused'
    // Before anybody is asked: who comes meanwhile is newer.
    const turn = identity === null ? session.turn : given === 0 ? ++session.turn : given
    const ahead = socketAhead(session, seq)
    if (ahead !== undefined) {
      if (await ahead.probe()) return 'late'
      if (table.get(id) !== session || leaving.has(id)) return notHere
    }
    if (turn < session.turn) return 'late'
    const hadSocket = isOpen(session)
    // Where nobody can come back, what was asked for on a socket of before goes on, and may be just what this waits for.
    if ((identity !== null || mayResume(session)) && !(await retireAll(session))) return notHere
    if (turn < session.turn) return 'late'
    return (await letGo(session, to)) ? { fence: String(session.saving.fence), hadSocket, turn } : notHere
  }

  /** Nothing that came on a socket of before takes effect any more. */
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
      noteRoute(sessionId, to)
      return true
    } finally {
      leaving.delete(sessionId)
      resolve()
    }
  }

  const forgetRoute = (id: string) => void routes.delete(id)
  return {
    isHere,
    routeOf,
    ownerOf,
    forgetRoute,
    noteRoute,
    acquire,
    claim,
    takeFromSilent,
    yieldTo,
    isFree,
    isStillFree,
  }
}

/** Who came back is gone again. */
export class ClosedError extends StoreError {
  constructor() {
    super('unavailable', 'the connection was closed meanwhile')
  }
}

export function changing(): StoreError {
  return new StoreError('unavailable', 'the session changes its node again and again')
}

/** Whoever changes the owner gets a moment for it, in ms. */
export function pauseOf(tries: number): number {
  return Math.min(200, 5 * 2 ** tries)
}

/** Nobody else touches a session, or its socket [RES2]. */
export function isOwn(session: Session, identity: SessionIdentity): boolean {
  const { participant, extended, deviceId } = session.identity
  return extended && deviceId === identity.deviceId && sameParticipant(participant, identity.participant)
}
