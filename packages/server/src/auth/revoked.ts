/**
 * Tokens that were taken back [SRV2]. Every process knows all of them, for an upgrade waits for no store; what another
 * process takes back it hears within `lookMs`.
 *
 *   const revoked = createRevoked({ products, now, onRevoked, onError })
 *   await revoked.start()                    reads them; rejects where the store fails
 *   revoked.isRevoked({ participant, issuedAt })
 *   await revoked.revoke(participant, before)
 */
import type { Participant } from '../call/call.ts'
import { type ProductStore, revocationKeptMs, revocationOverlapMs } from '../ports/product-store.ts'
import { participantHash } from '../ports/session-id.ts'
import { lookEvery } from '../time/looking.ts'

export interface RevokedOptions {
  readonly products: Pick<ProductStore, 'revoke' | 'revocations' | 'pruneRevocations'>
  readonly now: () => number
  /** Called after tokens of these participants were taken back, here or by another process; each is named by its hash. */
  readonly onRevoked: (participants: readonly string[]) => void
  readonly onError: (error: unknown) => void
}

/** A token of somebody, and when it was issued, in ms since the epoch. */
export interface Issued {
  readonly participant: Participant
  readonly issuedAt: number
  /** The tag of the product key that it was issued with; null: with none [KEY1]. */
  readonly key: string | null
}

export interface Revoked {
  start(): Promise<void>
  stop(): void
  /** Hears at once of what other processes have taken back by now; rejects where the store fails. */
  look(): Promise<void>
  isRevoked(token: Issued): boolean
  /** Before when tokens of a participant do not count; undefined: none were taken back. */
  tokensFrom(participant: Participant): number | undefined
  /** Tokens of the participant that were issued before an instant do not count any more, here at once. */
  revoke(participant: Participant, before: number): Promise<void>
}

/** Sockets everywhere are closed within a second; a look takes a moment, and closing them, too. */
const lookMs = 500
/** How often revocations are removed that no token can be affected by any more, in ms. */
const pruneMs = 10 * 60_000
/** Between two steps of that, in ms. */
const pauseMs = 10

export function createRevoked({ products, now, onRevoked, onError }: RevokedOptions): Revoked {
  const known = new Map<string, number>()
  let mark = 0
  let prunedAt = Number.NEGATIVE_INFINITY

  function learn(participant: string, before: number): boolean {
    if ((known.get(participant) ?? Number.NEGATIVE_INFINITY) >= before) return false
    known.set(participant, before)
    return true
  }

  async function look(): Promise<void> {
    const news: string[] = []
    for (const { participant, before, changedAt } of await products.revocations(mark - revocationOverlapMs)) {
      if (learn(participant, before)) news.push(participant)
      mark = Math.max(mark, changedAt)
    }
    if (news.length > 0) onRevoked(news)
  }

  async function prune(): Promise<void> {
    if (performance.now() - prunedAt < pruneMs) return
    prunedAt = performance.now()
    const gone = now() - revocationKeptMs
    for (const [participant, before] of known) if (before < gone) known.delete(participant)
    while ((await products.pruneRevocations(gone)) > 0) await Bun.sleep(pauseMs)
  }

  return {
    ...lookEvery(lookMs, look, onError, () => look().then(prune)),
    look,
    isRevoked({ participant, issuedAt }) {
      return known.size > 0 && issuedAt < (known.get(participantHash(participant)) ?? Number.NEGATIVE_INFINITY)
    },
    tokensFrom: (participant) => known.get(participantHash(participant)),
    async revoke(participant, before) {
      const hash = participantHash(participant)
      await products.revoke(hash, before, now())
      if (learn(hash, before)) onRevoked([hash])
    },
  }
}
