import { RingwireError } from './error.ts'
import type { Listeners } from './listeners.ts'
import type { CallEvents, Unsubscribe } from './types.ts'

type SignalName = 'offer' | 'answer' | 'candidate'
type Signal = { [E in SignalName]: { readonly event: E; readonly payload: CallEvents[E] } }[SignalName]

/** Above it the oldest go: a call to which nobody listens needs no more than the service itself keeps [REL2]. */
const maxKept = 256

/** The peer's offers, answers and candidates; kept in order until somebody listens. */
export function createSignals(listeners: Listeners<CallEvents>) {
  let kept: Signal[] = []
  let isFlushing = false
  let isClaimed = false

  const isHeard = () => listeners.has('offer') || listeners.has('answer') || listeners.has('candidate')
  const emit = ({ event, payload }: Signal) => listeners.emit(event, payload as never)

  return {
    receive(signal: Signal): void {
      if (isHeard() && kept.length === 0) emit(signal)
      else if (kept.push(signal) > maxKept) kept.shift()
    },
    on<E extends keyof CallEvents>(event: E, listener: (payload: CallEvents[E]) => void): Unsubscribe {
      const end = listeners.on(event, listener)
      if (kept.length > 0 && isHeard() && !isFlushing) {
        isFlushing = true
        queueMicrotask(() => {
          isFlushing = false
          while (isHeard()) {
            const signal = kept.shift()
            if (!signal) return
            emit(signal)
          }
        })
      }
      return end
    },
    /** Throws while another claim holds them. */
    claim(): Unsubscribe {
      if (isClaimed)
        throw new RingwireError('SIGNALS_CLAIMED', 'Something else negotiates the media of this call already.')
      isClaimed = true
      let isMine = true
      return () => {
        isClaimed &&= !isMine
        isMine = false
      }
    },
    /** They belong to a negotiation that is gone. */
    drop(): void {
      kept = []
    },
  }
}
