import { branchOff } from '../session/branches.ts'
import { readSession } from '../session/copy.ts'
import { freshFence } from '../session/fence.ts'
import type { SessionTable } from '../session/table.ts'
import type { Row } from './directory.port.ts'
import type { BelievedDirectory, Taken } from './directory.ts'
import type { Living } from './living.ts'
import type { Routes } from './routes.ts'
import type { Saves } from './saves.ts'

export interface ClaimsOptions {
  readonly node: string
  readonly table: SessionTable
  readonly directory: Pick<BelievedDirectory, 'claim' | 'forget'>
  readonly saves: Pick<Saves, 'save'>
  readonly living: Pick<Living, 'isSaid'>
  readonly routes: Routes
  /** Known for sure not to serve any more, as far as was seen at the last look; and the same as of now. */
  readonly isDead: (node: string) => boolean
  readonly isStillDead: (node: string) => Promise<boolean>
  /** Resolves when a session that is just being given away is gone. */
  readonly leaving: (sessionId: string) => Promise<void> | undefined
  /** Something was taken from a node that seems to be dead. */
  readonly onTaken: (from: string) => void
  /** Names a log: no other has had the name [RES2]. */
  readonly newEpoch: () => string
}

/** How sessions become this node's own: it raises the fence of a session, and reads its copy. */
export interface Claims {
  /** Whether nobody owns it, as far as was seen at the last look. */
  isFree(row: Row): boolean
  /** The same after another look: a node that stood still may have gone on since, and owns what comes to it from then on. */
  isStillFree(row: Row): Promise<boolean>
  /** Claims one that is free. False where another node was faster, or its owner lives after all. */
  claim(row: Row): Promise<boolean>
  /** Claims one whose owner let go of it, or is silent. False where another node was faster. */
  take(taken: Taken): Promise<boolean>
  /** The claim of a session that is under way. */
  underWay(sessionId: string): Promise<boolean> | undefined
}

export function createClaims(options: ClaimsOptions): Claims {
  const { node, table, directory, saves, living, routes, isDead, isStillDead, leaving } = options
  const claiming = new Map<string, Promise<boolean>>()

  function isFree({ owner }: Row): boolean {
    return owner === '' || owner === node || isDead(owner)
  }

  async function isStillFree(row: Row): Promise<boolean> {
    return isFree(row) && (row.owner === '' || row.owner === node || isStillDead(row.owner))
  }

  async function claim(row: Row): Promise<boolean> {
    return (await isStillFree(row)) && take(row)
  }

  function take(taken: Taken): Promise<boolean> {
    const { sessionId } = taken
    const known = claiming.get(sessionId)
    if (known !== undefined) return known
    // Another node has asked for it first.
    const going = leaving(sessionId)
    if (going !== undefined) return going.then(() => false)
    const mine = takeNow(taken).finally(() => claiming.delete(sessionId))
    claiming.set(sessionId, mine)
    return mine
  }

  async function takeNow(taken: Taken): Promise<boolean> {
    const { sessionId: id, owner: from = '' } = taken
    await living.isSaid()
    const copy = await directory.claim(taken, freshFence(table.now))
    // It may live, with sockets at which nothing comes any more [INV4].
    if (copy !== undefined && from !== '' && from !== node) options.onTaken(from)
    if (copy === undefined || copy === 'gone' || table.get(id) !== undefined) return false
    const session = readSession(copy.state, copy.entries, table.now)
    // Of a version that this one does not know: its client begins a new one [RES2].
    if (session === undefined) {
      await directory.forget(id, copy.fence)
      return false
    }
    session.saving.fence = copy.fence
    if (from !== '') branchOff(session, options.newEpoch())
    // Its client may have seen more than it has.
    if (!copy.isWhole) session.broken = true
    session.saving.isSaved = true
    session.saving.isStale = true
    table.adopt(session)
    routes.forget(id)
    saves.save()?.catch(() => {
      // It is saved when the store is back.
    })
    return true
  }

  return { isFree, isStillFree, claim, take, underWay: (id) => claiming.get(id) }
}
