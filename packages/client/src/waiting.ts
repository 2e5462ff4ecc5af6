/**
 * A call that rings during another call: what the user may do with the two of them [WAIT1]. Each promise is rejected with a
 * RingwireError if the call that shall go on cannot. You may ignore it, as the promises of a call.
 *
 *   client.on('incoming', (second) => showBanner(second))
 *   await holdAndAnswer(first, second)
 *   await swap(second, first)
 */
import { RingwireError } from './error.ts'
import type { Call } from './types.ts'

type First = Pick<Call, 'state' | 'held' | 'hold' | 'resume' | 'end'>
type Second = Pick<Call, 'state' | 'accept'>

/**
 * Puts the first call on hold and answers the second one. If the second call cannot be answered any more, the first one goes
 * on. A first call that still rings cannot be put on hold: CALL_INVALID_STATE, and the second call rings on.
 */
export function holdAndAnswer(first: First, second: Second): Promise<void> {
  return quiet(answerInstead(first, second))
}

async function answerInstead(first: First, second: Second): Promise<void> {
  checkRings(second)
  if (first.state.name === 'ringing') throw refused('A call that rings cannot be put on hold.')
  const wasHeld = first.held
  // Both at once: the first peer must not hear what is said to the second one.
  void first.hold()
  try {
    await second.accept()
  } catch (error) {
    // After a timeout the client goes on asking, and the second call may still be answered.
    const { state } = second
    const isAsked = state.name === 'ringing' && state.direction === 'incoming' && state.answering
    if (!wasHeld && !isAsked) void first.resume()
    throw error
  }
}

/** Ends the first call, also one that still rings, and answers the second one. */
export function endAndAnswer(first: Pick<First, 'end'>, second: Second): Promise<void> {
  return quiet(
    (async () => {
      checkRings(second)
      void first.end()
      await second.accept()
    })(),
  )
}

/** Puts the call that goes on on hold, and goes on with the one that is on hold. */
export function swap(active: Pick<First, 'hold'>, held: Pick<First, 'resume'>): Promise<void> {
  const both = [active.hold(), held.resume()]
  return quiet(Promise.all(both).then(() => {}))
}

function checkRings({ state }: Second): void {
  if (state.name === 'ringing' && state.direction === 'incoming') return
  throw refused('The second call does not ring here.')
}

const refused = (message: string) => new RingwireError('CALL_INVALID_STATE', message)

function quiet(promise: Promise<void>): Promise<void> {
  promise.catch(() => {})
  return promise
}
