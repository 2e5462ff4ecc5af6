/**
 * Erases participants for as long as it takes, whoever waits for it [SRV2].
 *
 *   const erasing = createErasing({ erasures, work })
 *   erasing.erase(participant)  → what was erased in all, or undefined: it goes on, and is to be asked for again
 *   erasing.heard(participant)  the answer has arrived: the next erasure counts from nothing
 */
import type { Participant } from '../call/call.ts'
import { type ErasedCounts, type Erasures, noneErased } from '../ports/erasures.ts'
import { participantHash } from '../session/session-id.ts'

/** Adds to what was counted. */
export type Count = (what: keyof ErasedCounts, count: number) => Promise<void>

export interface ErasingOptions {
  readonly erasures: Erasures
  /** Erases all that there is, and counts each step that is done. Answers since when tokens do not count. */
  readonly work: (participant: Participant, count: Count) => Promise<number>
  /** Whoever asks waits for so long, in ms: less than connections live without an answer. */
  readonly answerMs?: number | undefined
}

export interface Erased extends ErasedCounts {
  readonly tokensFrom: number
}

export interface Erasing {
  /** Rejects if it could not be done whole: whoever asks again has it go on. What was counted is kept. */
  erase(participant: Participant): Promise<Erased | undefined>
  heard(participant: Participant): Promise<void>
}

const answerMs = 8_000
/** Counts are stored so often, in ms: a process that is killed loses no more of them. */
const storeMs = 250

export function createErasing({ erasures, work, answerMs: limitMs = answerMs }: ErasingOptions): Erasing {
  const underWay = new Map<string, Promise<Erased>>()

  async function run(name: string, participant: Participant): Promise<Erased> {
    let unsaved = noneErased
    let savedAt = performance.now()
    async function save(): Promise<void> {
      const counts = unsaved
      unsaved = noneErased
      savedAt = performance.now()
      if (Object.values(counts).some((count) => count > 0)) await erasures.add(name, counts)
    }
    try {
      const tokensFrom = await work(participant, async (what, count) => {
        unsaved = { ...unsaved, [what]: unsaved[what] + count }
        if (performance.now() - savedAt >= storeMs) await save()
      })
      await save()
      return { tokensFrom, ...(await erasures.counted(name)) }
    } catch (error) {
      // Why it failed is more than that its counts could not be stored either.
      await save().catch(() => {})
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
    heard: async (participant) => erasures.forget(participantHash(participant)),
  }
}
