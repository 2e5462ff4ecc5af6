import { createListeners } from '../../../src/listeners.ts'
import type { Call, CallEvents, CallState, IceCandidate, SessionDescription } from '../../../src/types.ts'

export type Signal =
  | { event: 'offer'; payload: SessionDescription<'offer'> }
  | { event: 'answer'; payload: SessionDescription<'answer'> }
  | { event: 'candidate'; payload: IceCandidate }

type Side = 'outgoing' | 'incoming'

export interface Wire {
  /** What the side sends from now on waits until `release`. */
  hold(from: Side): void
  /** Delivers what waits, in the order that `sort` gives. */
  release(from: Side, sort?: (signals: Signal[]) => Signal[]): void
  /** Everything that was sent, also what was lost. */
  sent: { from: Side; signal: Signal }[]
  /** Delivers once more what the side had sent. */
  repeat(from: Side, signal: Signal): void
  /** What the side sends from now on is lost, until `hold` or `release`. */
  lose(from: Side): void
}

export interface StubCall extends Call {
  become(state: CallState): void
  resync(restored: boolean): void
  setHeld(held: boolean): Promise<void>
  reported: number
}

/**
 * Two ends of one call without a service: whatever one sends comes to the other, when and in which order the test says.
 * `callAt` gives a new object for the side, as a page that was loaded again gets one.
 */
export function createStubCalls(callType: string) {
  const ends: Partial<Record<Side, { take(signal: Signal): void }>> = {}
  const waiting: Record<Side, Signal[] | 'lost' | undefined> = { outgoing: undefined, incoming: undefined }
  const sent: Wire['sent'] = []
  const other = (side: Side): Side => (side === 'outgoing' ? 'incoming' : 'outgoing')

  function deliver(from: Side, signal: Signal): void {
    queueMicrotask(() => ends[other(from)]?.take(signal))
  }

  async function send(from: Side, signal: Signal): Promise<void> {
    sent.push({ from, signal })
    const kept = waiting[from]
    if (kept === 'lost') return
    if (kept) kept.push(signal)
    else deliver(from, signal)
  }

  const wire: Wire = {
    sent,
    repeat: deliver,
    hold(from) {
      waiting[from] = []
    },
    lose(from) {
      waiting[from] = 'lost'
    },
    release(from, sort = (signals) => signals) {
      const kept = waiting[from]
      waiting[from] = undefined
      if (Array.isArray(kept)) for (const signal of sort(kept)) deliver(from, signal)
    },
  }

  function callAt(direction: Side, initial: CallState = { name: 'accepted' }): StubCall {
    const listeners = createListeners<CallEvents>()
    let state = initial
    const nothing = async () => undefined
    ends[direction] = { take: ({ event, payload }) => listeners.emit(event, payload as never) }
    return {
      ...{
        callUuid: 'stub',
        direction,
        callType,
        contextType: undefined,
        contextId: undefined,
        group: undefined,
        metadata: undefined,
      },
      ...{ accept: nothing, reject: nothing, cancel: nothing, alerting: nothing, reported: 0 },
      peer: { userId: 'peer', role: 'peer', displayName: null },
      peerState: { away: null, media: null, held: false },
      held: false,
      hold() {
        return this.setHeld(true)
      },
      resume() {
        return this.setHeld(false)
      },
      async setHeld(held) {
        Object.assign(this, { held })
        listeners.emit('held', held)
      },
      client: undefined as never,
      claimSignals: () => () => {},
      sendMedia: nothing,
      sendStats: nothing,
      invited: Promise.resolve(),
      get state() {
        return state
      },
      on: listeners.on,
      become(next) {
        state = next
        listeners.emit('state', next)
      },
      resync: (restored) => listeners.emit('resynced', { restored }),
      async end() {
        this.become({ name: 'over', status: 'ended', reason: 'hangup', by: null, error: undefined })
      },
      async connected() {
        this.reported++
      },
      sendOffer: (payload) => send(direction, { event: 'offer', payload }),
      sendAnswer: (payload) => send(direction, { event: 'answer', payload }),
      async sendCandidate(payload) {
        if (payload) await send(direction, { event: 'candidate', payload })
      },
    }
  }
  return { wire, callAt }
}
