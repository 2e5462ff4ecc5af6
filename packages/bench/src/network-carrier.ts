export interface Conditions {
  /** Of a packet, one way. */
  readonly delayMs: number
  /** Share of the packets that never arrive, one way. */
  readonly loss: number
}

/** Delivers each packet after the delay, in order, but for those that are lost. */
export function carrier(
  { delayMs, loss }: Conditions,
  deliver: (packet: Uint8Array) => void,
  random: () => number = Math.random,
): (packet: Uint8Array) => void {
  return (packet) => {
    if (random() >= loss) setTimeout(deliver, delayMs, packet)
  }
}
