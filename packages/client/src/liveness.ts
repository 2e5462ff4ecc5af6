import type { Environment } from './environment.ts'

export interface LivenessOptions {
  /** After this time without any message the client asks the service for one. */
  readonly idleMs: number
  /** How long the service may take to say anything after that question. */
  readonly answerMs: number
  /** Sends something that has a reply. */
  readonly probe: () => void
  /** Nothing came: the socket is dead. */
  readonly onDead: () => void
}

/**
 * Notices a dead socket. A browser shows no pings, so the client asks in silence: every question has a reply [EXT2], and
 * any message is a sign of life.
 */
export function createLiveness(env: Environment, options: LivenessOptions) {
  let endIdle: (() => void) | undefined
  let endAnswer: (() => void) | undefined

  function rest(): void {
    endIdle?.()
    endIdle = env.after(options.idleMs, options.probe)
  }

  function stop(): void {
    endIdle?.()
    endAnswer?.()
    endIdle = endAnswer = undefined
  }

  return {
    start: rest,
    stop,
    heard(): void {
      if (!endIdle) return
      endAnswer?.()
      endAnswer = undefined
      rest()
    },
    /** Something that has a reply was sent. */
    sent(): void {
      if (!endIdle || endAnswer) return
      endAnswer = env.after(options.answerMs, () => {
        stop()
        options.onDead()
      })
    },
    /** Asks now, because there is a reason to doubt. */
    doubt(): void {
      if (endIdle && !endAnswer) options.probe()
    },
  }
}

export type Liveness = ReturnType<typeof createLiveness>
