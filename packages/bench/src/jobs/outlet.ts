// What one end sends: copies of one frame, or of one whose number counts on.
import type { Numbered } from '../dialects/dialect.ts'
import { WIDEST_WINDOW } from './window.ts'

export interface Outlet {
  readonly frameBytes: number
  /** So many frames, to be written at once; the bytes are good until the next call. */
  burst(count: number): Uint8Array
}

const DIGIT_ZERO = 0x30

function copies(frame: Uint8Array): Uint8Array {
  const all = new Uint8Array(frame.length * WIDEST_WINDOW)
  for (let i = 0; i < WIDEST_WINDOW; i++) all.set(frame, i * frame.length)
  return all
}

export function fixedOutlet(frame: Uint8Array): Outlet {
  const all = copies(frame)
  const bursts = Array.from({ length: WIDEST_WINDOW + 1 }, (_, n) => all.subarray(0, n * frame.length))
  return { frameBytes: frame.length, burst: (count) => bursts[count]! }
}

/**
 * `frame` is masked, and its number keeps its digits: only they are written anew, under the mask that is there. The
 * frame's own number was sent before.
 */
export function numberedOutlet(frame: Uint8Array, text: string, { first, sentAfter }: Numbered): Outlet {
  const digits = String(first)
  const digitsAt = text.indexOf(sentAfter + digits) + sentAfter.length
  const payloadAt = frame.length - Buffer.byteLength(text)
  const at = payloadAt + Buffer.byteLength(text.slice(0, digitsAt))
  // What a masked zero is at each place; a digit differs from it by its own bits.
  const zeros = Array.from(digits, (digit, i) => frame[at + i]! ^ (digit.charCodeAt(0) - DIGIT_ZERO))
  let number = first
  return {
    frameBytes: frame.length,
    burst(count) {
      // A frame that is not written whole keeps these bytes: each burst has its own.
      const burst = new Uint8Array(frame.length * count)
      for (let i = 0; i < count; i++) {
        const start = i * frame.length
        burst.set(frame, start)
        let rest = ++number
        for (let digit = digits.length - 1; digit >= 0; digit--) {
          // 0x30 to 0x39: the low four bits are the digit.
          burst[start + at + digit] = zeros[digit]! ^ (rest % 10)
          rest = Math.floor(rest / 10)
        }
      }
      return burst
    },
  }
}
