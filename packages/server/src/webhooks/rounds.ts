import type { MakeAttempt } from './attempts.ts'
import type { Claims } from './claims.ts'
import { createLag } from './lag.ts'

/**
 * Calls come first: while this process commits steps of them and the event loop is further behind than this, webhooks come in
 * rounds with a pause between them. In ms. Lag by itself says too little: on a slow machine webhooks make it themselves.
 */
const behindMs = 1.5
export const pauseMs = 40
/** A stop waits this long for what is under way, in ms. */
const graceMs = 1_000

export interface RoundsOptions {
  readonly claims: Claims
  readonly attempt: MakeAttempt
  /** From then on nothing is claimed. */
  readonly stopping: AbortSignal
  /** How calls are let go first; tests count it. */
  readonly pause?: () => Promise<void>
  readonly onRound: () => void
  readonly onError: (error: unknown) => void
}

/** Claims and sends, again and again while there is something to do. */
export function createRounds(options: RoundsOptions) {
  const { claims, attempt, stopping, pause = () => Bun.sleep(pauseMs), onRound, onError } = options
  const underWay = new Set<Promise<void>>()
  const lag = createLag()
  let isWorking = false
  let isAgain = false
  /** Whether a step was committed since the last round. */
  let isCalled = false

  async function takeOn(): Promise<void> {
    const { toSend, isMore } = await claims.take()
    if (isMore) isAgain = true
    for (const { delivery, endpoint } of toSend) {
      const done = attempt(delivery, endpoint).then((attempted) => {
        underWay.delete(done)
        claims.made(endpoint.id, attempted)
        void work()
      })
      underWay.add(done)
    }
  }

  async function round(): Promise<void> {
    isAgain = false
    const isBehind = (await lag.look()) > behindMs
    if (isBehind && isCalled && !stopping.aborted) await pause()
    isCalled = false
    // Ended deliveries are stored before more are taken on: a delivery that is done makes way for the next one of its call.
    await claims.settle()
    if (!stopping.aborted) await takeOn()
  }

  /** One round at a time; what comes meanwhile is in the next one. */
  async function work(): Promise<void> {
    isAgain = true
    if (isWorking) return
    isWorking = true
    try {
      while (isAgain) await round()
      onRound()
    } catch (error) {
      onError(error)
    } finally {
      isWorking = false
    }
  }

  return {
    work,
    /** A step of a call was committed. */
    called() {
      isCalled = true
    },
    /** Waits for what is under way, ends what takes longer with `giveUp`, and stores all results. */
    async stop(giveUp: () => void): Promise<void> {
      await Promise.race([Promise.all(underWay), Bun.sleep(underWay.size > 0 ? graceMs : 0)])
      giveUp()
      await Promise.all(underWay)
      while (isWorking) await Bun.sleep(5)
      await work()
    },
  }
}
