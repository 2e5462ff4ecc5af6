import type { Timers } from '../ports/clock.ts'
import { tagOfSessionId } from '../ports/session-id.ts'
import { ClosedError, LateError } from '../session/late.ts'
import type { SessionTable } from '../session/table.ts'
import { type Claims, createClaims } from './claims.ts'
import type { Row } from './directory.port.ts'
import type { BelievedDirectory } from './directory.ts'
import { notHere } from './frames.ts'
import { type ComesBack, createHandoffs, type HandedOff, type Handoffs } from './handoffs.ts'
import { askMs, type Inbox } from './inbox.ts'
import type { Living } from './living.ts'
import { changing, mostTries, pauseOf } from './retries.ts'
import { createRoutes } from './routes.ts'
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
  /** Names a log: no other has had the name [RES2]. */
  readonly newEpoch: () => string
  readonly timers: Pick<Timers, 'sleep'>
}

/** Which sessions this node owns, and how others become its own. At most one node owns a session: who saves under an old fence is refused. */
export interface Owner extends Pick<Claims, 'isFree' | 'isStillFree' | 'claim'>, Pick<Handoffs, 'isHere' | 'handOff'> {
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
  /** Makes a session this node's own whose place was found lost, and whose owner is silent. False where that is not so. */
  takeFromSilent(sessionId: string): Promise<boolean>
}

export function createOwner(options: OwnerOptions): Owner {
  const { node, table, directory, saves, ask, isDead, living, timers } = options
  const routes = createRoutes()
  const handoffs = createHandoffs({ ...options, routes, ownerOf })
  const { isHere, leaving } = handoffs
  const claims = createClaims({ ...options, routes, leaving })
  const { isFree, claim, take } = claims

  /** What is under way is waited for: a session that was just forgotten has to be gone from the directory, too. */
  async function settle(id: string): Promise<void> {
    await leaving(id)
    await claims.underWay(id)?.catch(() => false)
    if (!isHere(id)) await saves.settle()
  }

  function routeOf(id: string): string | undefined {
    // Who owns it is just being decided.
    if (isHere(id) || leaving(id) !== undefined || claims.underWay(id) !== undefined) return undefined
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
        routes.note(id, row.owner)
        return row.owner
      }
      await claim(row)
    }
    throw changing()
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
        const answer = await askFor(row, comesBack).finally(() => routes.forget(id))
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
    routes.forget(id)
    const isMine = await take(row)
    const session = isMine ? table.get(id) : undefined
    if (session !== undefined) session.isTaken = true
    return isMine
  }

  /** The client says itself that nothing comes of its old socket: a node that is silent keeps nothing from it. */
  async function askFor(row: Row, comesBack?: ComesBack): Promise<HandedOff | 'silent'> {
    const { owner, sessionId } = row
    const stamp = stampOf(row)
    if (comesBack === undefined) return ask(owner, ['yield', sessionId, stamp, null, 0]) as Promise<HandedOff>
    const { identity, turn, seq } = comesBack
    // In full: that it is silent is found out beside it, also of a node of which this one has only just heard.
    const asked = ask(owner, ['yield', sessionId, stamp, identity, turn, seq], askMs) as Promise<HandedOff>
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

  return {
    isHere,
    routeOf,
    ownerOf,
    forgetRoute: routes.forget,
    noteRoute: routes.note,
    acquire,
    claim,
    takeFromSilent,
    handOff: handoffs.handOff,
    isFree,
    isStillFree: claims.isStillFree,
  }
}
