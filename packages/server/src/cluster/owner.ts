import { type Acquisitions, type AcquisitionsOptions, createAcquisitions } from './acquisitions.ts'
import { type Claims, type ClaimsOptions, createClaims } from './claims.ts'
import { createHandoffs, type Handoffs } from './handoffs.ts'
import { createLeaving, type Leaving } from './leaving.ts'
import { createLookup, type Lookup } from './lookup.ts'
import { createRoutes } from './routes.ts'

type OwnParts = 'routes' | 'leaving' | 'claims' | 'lookup'

export type OwnerOptions = Omit<ClaimsOptions, OwnParts> & Omit<AcquisitionsOptions, OwnParts>

/** Which sessions this node owns, and how others become its own. At most one node owns a session: a save under an old fence is refused. */
export interface Owner extends Pick<Claims, 'isFree' | 'isStillFree' | 'claim'>, Acquisitions, Lookup {
  readonly isHere: Leaving['isHere']
  readonly handOff: Handoffs
  /** The route was wrong: the next request asks the directory. */
  forgetRoute(sessionId: string): void
  /** Notes where a session was seen last. */
  noteRoute(sessionId: string, node: string): void
}

export function createOwner(options: OwnerOptions): Owner {
  const routes = createRoutes()
  const leaving = createLeaving({ ...options, routes })
  const claims = createClaims({ ...options, routes, leaving: leaving.underWay })
  const lookup = createLookup({ ...options, routes, leaving, claims })
  return {
    isHere: leaving.isHere,
    ...lookup,
    forgetRoute: routes.forget,
    noteRoute: routes.note,
    ...createAcquisitions({ ...options, routes, leaving, claims, lookup }),
    handOff: createHandoffs({ ...options, routes, leaving, ownerOf: lookup.ownerOf }),
    isFree: claims.isFree,
    isStillFree: claims.isStillFree,
    claim: claims.claim,
  }
}
