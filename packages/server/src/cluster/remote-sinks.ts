import type { Timers } from '../ports/clock.ts'
import { forgetOldest } from '../ports/oldest.ts'
import type { Sink } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import type { Frame } from './frames.ts'
import type { Inbox } from './inbox.ts'
import type { Living } from './living.ts'

/** A node that lives and does not answer for this time is busy, in ms. */
const busyMs = 3_000
/** Objects for sockets of other nodes that are kept. */
const mostRemotes = 1_000

/** Sockets of other nodes, as the port sees them: the same object for the same one. */
export function createRemoteSinks(
  { ask }: Pick<Inbox, 'ask'>,
  living: Living,
  onError: (error: unknown) => void,
  timers: Pick<Timers, 'monotonic'>,
) {
  const remotes = new Map<string, Sink>()

  /** Undefined where no answer came. */
  async function answerOf(node: string, frame: Frame): Promise<unknown> {
    try {
      return await ask(node, frame)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      return undefined
    }
  }

  return function remoteSink(node: string, sessionId: string): Sink {
    const key = `${node} ${sessionId}`
    const known = remotes.get(key)
    if (known !== undefined) return known
    const sink: Sink = {
      send: () => {},
      pushed: () => {},
      writtenSeq: 0,
      // Only its node knows.
      isBusy: true,
      isClosed: false,
      // A node that lives and does not answer proves nothing: its answer may be lost. A new session that took that for a sign of
      // life would never get its place [PLACE4].
      async probe() {
        for (const since = timers.monotonic(); await living.isThere(node); ) {
          const answer = await answerOf(node, ['probe', sessionId])
          if (answer !== undefined) return answer === true
          if (living.isSilent(node)) return false
          // A node that had just started was taken for silent, and had only a moment to answer.
          if (timers.monotonic() - since > busyMs) throw noAnswer()
        }
        return false
      },
      close: (code, reason) => void ask(node, ['close', sessionId, code, reason]).catch(onError),
      async retire() {
        const answer = await answerOf(node, ['retire', sessionId])
        if (answer !== undefined || !living.isAlive(node)) return
        throw noAnswer()
      },
    }
    remotes.set(key, sink)
    forgetOldest(remotes, mostRemotes)
    return sink
  }
}

function noAnswer(): StoreError {
  return new StoreError('unavailable', 'the node that holds the socket does not answer')
}
