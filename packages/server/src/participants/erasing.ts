/**
 * Erases participants for as long as it takes, whether or not somebody waits for it [SRV2].
 *
 *   const erasing = createErasing({ erasures, work })
 *   erasing.erase(participant)  → the counts of all that was erased, or undefined: it goes on; ask again
 *   erasing.heard(participant)  the answer has arrived: the next erasure counts from nothing
 */
import type { Participant } from '../call/call.ts'
import { participantHash } from '../ports/session-id.ts'
import { StoreError } from '../ports/store-error.ts'
import { type ErasedCounts, type Erasures, noneErased } from './erasures.port.ts'

/** Adds to what was counted. */
export type Count = (what: keyof ErasedCounts, count: number) => Promise<void>

export interface ErasingOptions {
  readonly erasures: Erasures
  /** Erases all that there is, and counts each step that is done. Answers since when tokens do not count. */
  readonly work: (participant: Participant, count: Count) => Promise<number>
  /** How long a request waits for the end, in ms: less than connections live without an answer. */
  readonly answerMs?: number | undefined
}

export interface Erased extends ErasedCounts {
  readonly tokensFrom: number
}

export interface Erasing {
  /** Rejects if it could not be done whole: the next request goes on. The counts are kept. */
  erase(participant: Participant): Promise<Erased | undefined>
  /** Whether this process erases somebody now: a further request then joins that. */
  isUnderWay(participant: Participant): boolean
  heard(participant: Participant): Promise<void>
}

const answerMs = 8_000
/** Counts are stored so often, in ms: a process that is killed loses no more of them. */
const storeMs = 250

export function createErasing({ erasures, work, answerMs: limitMs = answerMs }: ErasingOptions): Erasing {
  const underWay = new Map<string, Promise<Erased>>()
  /** Counts that the store does not have yet, also of an erasure that failed: the next one stores them. */
  const unsaved = new Map<string, ErasedCounts>()
  const forgetting = new Map<string, Promise<void>>()

  function add(name: string, counts: Partial<ErasedCounts>): void {
    const before = unsaved.get(name) ?? noneErased
    const sums = Object.entries(before).map(([what, count]) => [
      what,
      count + (counts[what as keyof ErasedCounts] ?? 0),
    ])
    unsaved.set(name, Object.fromEntries(sums))
  }

  async function save(name: string): Promise<void> {
    const counts = unsaved.get(name)
    unsaved.delete(name)
    if (counts === undefined || Object.values(counts).every((count) => count === 0)) return
    try {
      await erasures.add(name, counts)
    } catch (error) {
      // After an unknown outcome they may be stored: then they would count twice.
      if (error instanceof StoreError && error.kind === 'unavailable') add(name, counts)
      throw error
    }
  }

  async function run(name: string, participant: Participant): Promise<Erased> {
    let savedAt = performance.now()
    try {
      await forgetting.get(name)
      const tokensFrom = await work(participant, async (what, count) => {
        add(name, { [what]: count })
        if (performance.now() - savedAt < storeMs) return
        savedAt = performance.now()
        await save(name)
      })
      await save(name)
      return { tokensFrom, ...(await erasures.counted(name)) }
    } catch (error) {
      // Why it failed is more than that its counts could not be stored either.
      await save(name).catch(() => {})
      throw error
    } finally {
      underWay.delete(name)
    }
  }

  return {
    async erase(participant) {
      const name = participantHash(participant)
      const job = underWay.get(name) ?? run(name, participant)
      underWay.set(name, job)
      const { promise: late, resolve } = Promise.withResolvers<undefined>()
      const timer = setTimeout(resolve, limitMs, undefined)
      return Promise.race([job, late]).finally(() => clearTimeout(timer))
    },
    isUnderWay: (participant) => underWay.has(participantHash(participant)),
    async heard(participant) {
      const name = participantHash(participant)
      const forgotten = (async () => erasures.forget(name))()
      // The next erasure begins after it, and does not fail with it.
      const settled = forgotten.catch(() => {}).then(() => void forgetting.delete(name))
      forgetting.set(name, settled)
      await forgotten
    },
  }
}
