import type { Call } from '../types.ts'
import type { Negotiation, OfferOptions } from './negotiation.ts'
import type { Recovery } from './recovery.ts'

/** A callee that was answered before this page listened waits this long for the offer, then makes its own. */
const offerWaitMs = 1000

export interface OpeningOptions {
  call: Pick<Call, 'state' | 'direction' | 'invited'>
  earlyOffer: boolean
  negotiation: Pick<Negotiation, 'prepare' | 'offer'>
  recovery: Pick<Recovery, 'begin' | 'resync'>
}

/** When the first offer is made, and by whom: the caller offers, a callee does so only where no offer comes. */
export function createOpening({ call, earlyOffer, negotiation, recovery }: OpeningOptions) {
  let offered = false
  let closed = false
  let wait: ReturnType<typeof setTimeout> | undefined
  let release: (mayBeSent: boolean) => void = () => {}

  const isCaller = () => call.direction === 'outgoing'
  const isAnswered = () => ['accepted', 'connected'].includes(call.state.name)

  function offerOnce(how: OfferOptions = {}): void {
    if (offered || closed) return
    offered = true
    void negotiation.offer(how)
  }

  /** Made at once, and sent when the service knows the call: it may give it another name, or make it the peer's [INV6, INV7]. */
  function offerEarly(): void {
    if (offered) return
    const mayBeSent = new Promise<boolean>((resolve) => {
      release = resolve
    })
    const invited = () => {
      offered = isCaller() && call.state.name !== 'over'
      release(offered)
    }
    call.invited.then(invited, () => release(false))
    offerOnce({ mayBeSent })
  }

  return {
    /** There is media to come, or the call may have gone on. */
    proceed(): void {
      void negotiation.prepare()
      if (isAnswered()) {
        recovery.begin()
        release(isCaller())
        if (isCaller()) offerOnce()
        else wait ??= setTimeout(() => offerOnce(), offerWaitMs)
      } else if (earlyOffer && isCaller()) offerEarly()
    },
    /** An offer of the peer, or one of ours that was made for another reason: there is no first one to make. */
    opened(): void {
      offered = true
    },
    /** Signals may be lost. A page that was loaded again has no connection at all. */
    resynced(restored: boolean): void {
      if (isAnswered()) {
        recovery.begin()
        if (restored && !offered) offerOnce()
        else recovery.resync()
      } else if (isCaller() && offered) void negotiation.offer({ restart: true })
    },
    close(): void {
      closed = true
      release(false)
      clearTimeout(wait)
    },
  }
}

export type Opening = ReturnType<typeof createOpening>
