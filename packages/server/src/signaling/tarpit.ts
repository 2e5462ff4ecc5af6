import type { MaybePromise } from '../ports/maybe.ts'

/**
 * A client that is refused again and again gets the answer late [HTTP1]: with the connections that it has it cannot come
 * as often as the service could refuse it. Only a limited number of answers waits at once; more would be a burden
 * themselves. A client that does not wait for the answer is not held up.
 */
export interface Tarpit {
  /** `gone`: who asked is there no more. */
  hold(answer: Response, gone: AbortSignal): MaybePromise<Response>
}

export interface TarpitOptions {
  /** How long an answer waits, in ms. */
  readonly holdMs: number
  readonly most: number
}

export function createTarpit({ holdMs, most }: TarpitOptions): Tarpit {
  let held = 0

  return {
    hold(answer, gone) {
      if (held >= most) return answer
      held++
      return new Promise((resolve) => {
        const release = () => {
          clearTimeout(timer)
          gone.removeEventListener('abort', release)
          held--
          resolve(answer)
        }
        // The end of the process waits for none of them.
        const timer = setTimeout(release, holdMs).unref()
        gone.addEventListener('abort', release)
      })
    },
  }
}
