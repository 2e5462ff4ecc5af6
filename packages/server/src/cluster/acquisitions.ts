import type { Timers } from '../ports/clock.ts'
import { tagOfSessionId } from '../ports/session-id.ts'
import { ClosedError, LateError } from '../session/late.ts'
import type { SessionTable } from '../session/table.ts'
import type { Claims } from './claims.ts'
import type { Row } from './directory.port.ts'
import type { BelievedDirectory } from './directory.ts'
import { notHere } from './frames.ts'
import type { ComesBack, HandedOff } from './handoffs.ts'
import { askMs, type Inbox } from './inbox.ts'
import type { Leaving } from './leaving.ts'
import type { Living } from './living.ts'
import type { Lookup } from './lookup.ts'
import { changing, mostTries, pauseOf } from './retries.ts'
import type { Routes } from './routes.ts'
import { stampOf } from './rows.ts'
import type { Saves } from './saves.ts'

export interface AcquisitionsOptions {
  readonly node: string
  readonly table: SessionTable
  readonly directory: BelievedDirectory
  readonly saves: Saves
  readonly ask: Inbox['ask']
  readonly living: Pick<Living, 'falls' | 'isSaid' | 'isSilent' | 'staysSilent'>
  readonly routes: Routes
  readonly leaving: Leaving
  readonly claims: Claims
  readonly lookup: Lookup
  readonly timers: Pick<Timers, 'sleep'>
}

/** How sessions of other nodes become this node's own. */
export interface Acquisitions {
  /** Takes a session over for its client that came back here, or because it has no socket. False where it cannot be. */
  acquire(sessionId: string, comesBack?: ComesBack): Promise<boolean>
  /** Takes a session over whose place was found lost, and whose owner is silent. False where that is not so. */
  takeFromSilent(sessionId: string): Promise<boolean>
}

export function createAcquisitions(options: AcquisitionsOptions): Acquisitions {
  const { node, table, directory, ask, living, routes, leaving, claims, lookup, timers } = options
  const { isHere } = leaving

  /**
   * A replica that was promoted may not have heard that this node gave the session away: this node asks its new owner
   * first.
   */
  async function rowOf(id: string): Promise<Row | undefined> {
    const row = await directory.row(id)
    const given = row?.owner === node && table.get(id) === undefined ? lookup.routeOf(id) : undefined
    return row && given !== undefined ? { ...row, owner: given } : row
  }

  /** False if its owner refuses. */
  async function takeFromOwner(row: Row, tries: number, comesBack: ComesBack | undefined): Promise<boolean> {
    const id = row.sessionId
    const answer = await askFor(row, comesBack, ask, living).finally(() => routes.forget(id))
    if (answer === 'silent') {
      await claims.take(row)
      return true
    }
    if (answer === 'refused') return false
    if (answer === 'late') throw new LateError()
    if (answer === notHere) {
      await timers.sleep(pauseOf(tries))
      return true
    }
    if (comesBack !== undefined) comesBack.turn = answer.turn
    await claims.take({ sessionId: id, fence: answer.fence })
    const session = table.get(id)
    // The session had a socket until now, so no time counts yet [RES1].
    if (answer.hadSocket && session?.socket.is === 'lost') session.socket.at = Number.MAX_SAFE_INTEGER
    return true
  }

  return {
    async acquire(id, comesBack) {
      for (let tries = 0; tries < mostTries; tries++) {
        await lookup.settled(id)
        if (isHere(id)) return true
        const row = await rowOf(id)
        if (isHere(id)) return true
        if (row === undefined) return false
        if (comesBack?.isOver() === true) throw new ClosedError()
        if (claims.isFree(row)) await claims.claim(row)
        else if (!(await takeFromOwner(row, tries, comesBack))) return false
      }
      throw changing()
    },
    async takeFromSilent(id) {
      if (tagOfSessionId(id) === undefined) return false
      const route = lookup.routeOf(id)
      if (route !== undefined && !living.isSilent(route)) return false
      await lookup.settled(id)
      const row = isHere(id) ? undefined : await directory.row(id)
      if (row === undefined || isHere(id)) return false
      if (claims.isFree(row)) return claims.claim(row)
      if (!(await living.staysSilent(row.owner)) || isHere(id)) return false
      routes.forget(id)
      const isMine = await claims.take(row)
      const session = isMine ? table.get(id) : undefined
      if (session !== undefined) session.isTaken = true
      return isMine
    },
  }
}

/** The client itself says that nothing comes of its old socket, so a silent node keeps nothing from it. */
async function askFor(
  row: Row,
  comesBack: ComesBack | undefined,
  ask: Inbox['ask'],
  living: Pick<Living, 'falls' | 'isSilent'>,
): Promise<HandedOff | 'silent'> {
  const { owner, sessionId } = row
  const stamp = stampOf(row)
  if (comesBack === undefined) return ask(owner, ['yield', sessionId, stamp, null, 0]) as Promise<HandedOff>
  const { identity, turn, seq } = comesBack
  // The owner gets the full time, also if this node has only just heard of it: `falls` finds out whether it is silent.
  const asked = ask(owner, ['yield', sessionId, stamp, identity, turn, seq], askMs) as Promise<HandedOff>
  const answered = asked.catch((error) => {
    if (living.isSilent(owner)) return 'silent' as const
    throw error
  })
  // The answer may come after the owner fell silent.
  answered.catch(() => {})
  const over = new AbortController()
  const falls = living.falls(owner, over.signal).then(() => 'silent' as const)
  return Promise.race([answered, falls]).finally(() => over.abort())
}
