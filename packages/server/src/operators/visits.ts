import { createHash, randomBytes } from 'node:crypto'

/** An operator who has entered the admin token in a browser. */
export interface Visit {
  /** The operator's name in the audit log; empty if none was given. */
  readonly name: string
  readonly endsAt: number
}

export interface Visits {
  /** Gives the secret of the cookie. */
  begin(name: string): string
  /** The visit of a cookie; undefined for one that is over, and for one that was never given out. */
  find(secret: string | undefined): Visit | undefined
  end(secret: string | undefined): void
}

/** An operator enters the token again after this time, in ms. */
export const visitMs = 12 * 60 * 60_000
/** The oldest visit ends where there are more. */
const mostVisits = 100

/**
 * Visits are in the memory of the process that has the listener: a restart, and so a new token, ends all of them. Only hashes
 * are kept, so a dump of the memory opens nothing.
 */
export function createVisits(now: () => number): Visits {
  const visits = new Map<string, Visit>()

  function forgetOld(): void {
    for (const [key, { endsAt }] of visits) if (endsAt <= now() || visits.size > mostVisits) visits.delete(key)
  }

  return {
    begin(name) {
      const secret = randomBytes(32).toString('base64url')
      visits.set(keyOf(secret), { name, endsAt: now() + visitMs })
      forgetOld()
      return secret
    },
    find(secret) {
      const visit = secret === undefined ? undefined : visits.get(keyOf(secret))
      return visit !== undefined && visit.endsAt > now() ? visit : undefined
    },
    end(secret) {
      if (secret !== undefined) visits.delete(keyOf(secret))
    },
  }
}

/** Looked up by its hash: how long that takes says nothing of the secret. */
const keyOf = (secret: string) => createHash('sha256').update(secret).digest('base64url')
