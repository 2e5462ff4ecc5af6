/** Messages in flight per pair at the most, over both directions. */
export const WIDEST_WINDOW = 16
