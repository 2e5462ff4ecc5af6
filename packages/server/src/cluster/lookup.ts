import type { Claims } from './claims.ts'
import type { BelievedDirectory } from './directory.ts'
import type { Leaving } from './leaving.ts'
import { changing, mostTries } from './retries.ts'
import type { Routes } from './routes.ts'
import type { Saves } from './saves.ts'

export interface LookupOptions {
  readonly node: string
  readonly directory: Pick<BelievedDirectory, 'row'>
  readonly saves: Pick<Saves, 'settle'>
  readonly isDead: (node: string) => boolean
  readonly routes: Routes
  readonly leaving: Leaving
  readonly claims: Claims
}

/** Which node owns a session. */
export interface Lookup {
  /** The other node that owned a session when it was seen last; undefined where that is not known, or is over. */
  routeOf(sessionId: string): string | undefined
  /** The node that owns a session, after it was taken over here where its owner is gone; undefined where there is none. */
  ownerOf(sessionId: string): Promise<string | undefined>
  /** Resolves when no change of the owner is under way here: a session that was just forgotten is gone from the directory, too. */
  settled(sessionId: string): Promise<void>
}

export function createLookup({ node, directory, saves, isDead, routes, leaving, claims }: LookupOptions): Lookup {
  const { isHere } = leaving

  function routeOf(id: string): string | undefined {
    // Its owner is just being decided.
    if (isHere(id) || leaving.underWay(id) !== undefined || claims.underWay(id) !== undefined) return undefined
    const route = routes.get(id)
    return route === undefined || isDead(route) ? undefined : route
  }

  async function settled(id: string): Promise<void> {
    await leaving.underWay(id)
    await claims.underWay(id)?.catch(() => false)
    if (!isHere(id)) await saves.settle()
  }

  async function ownerOf(id: string): Promise<string | undefined> {
    for (let tries = 0; tries < mostTries; tries++) {
      const route = routeOf(id)
      if (route !== undefined) return route
      await settled(id)
      if (isHere(id)) return node
      const row = await directory.row(id)
      if (isHere(id)) return node
      if (row === undefined) return undefined
      if (!claims.isFree(row)) {
        routes.note(id, row.owner)
        return row.owner
      }
      await claims.claim(row)
    }
    throw changing()
  }

  return { routeOf, ownerOf, settled }
}
