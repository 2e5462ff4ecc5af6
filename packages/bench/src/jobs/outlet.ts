// What one end sends: copies of one frame, or of one whose number counts on.
import type { Numbered } from '../dialects/dialect.ts'
import { WIDEST_WINDOW } from './window.ts'

export interface Outlet {
  /** Of the last frame. */
  readonly frameBytes: number
  /** `count` frames, to be written at once; the bytes are good until the next call. */
  burst(count: number): Uint8Array
}

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

/** Frames of one text whose number has a certain count of digits. */
interface Template {
  readonly frame: Uint8Array
  /** Where the digits are. */
  readonly at: number
  /** What a masked zero is at each digit; a digit differs from it by its own bits. */
  readonly zeros: readonly number[]
  /** The last number that has this many digits. */
  readonly last: number
}

/**
 * Frames that count on, each with the number after that of the last one. `text` has the first number, and was sent before.
 * `frameOf` masks a text, always with the same key: only the digits are written anew, under the mask that is there.
 */
export function numberedOutlet(
  frameOf: (text: string) => Uint8Array,
  text: string,
  { first, sentAfter }: Numbered,
): Outlet {
  const digitsAt = text.indexOf(`${sentAfter}${first}`) + sentAfter.length
  const [before, after] = [text.slice(0, digitsAt), text.slice(digitsAt + String(first).length)]
  let number = first
  let template = templateOf(frameOf, before, after, String(first).length)
  return {
    get frameBytes() {
      return template.frame.length
    },
    burst(count) {
      const parts: Uint8Array[] = []
      for (let left = count; left > 0; ) {
        if (number === template.last) template = templateOf(frameOf, before, after, template.zeros.length + 1)
        const some = Math.min(left, template.last - number)
        parts.push(numbered(template, number, some))
        number += some
        left -= some
      }
      return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
    },
  }
}

function templateOf(frameOf: (text: string) => Uint8Array, before: string, after: string, digits: number): Template {
  const text = `${before}${'0'.repeat(digits)}${after}`
  const frame = frameOf(text)
  const at = frame.length - Buffer.byteLength(text) + Buffer.byteLength(before)
  return { frame, at, zeros: [...frame.subarray(at, at + digits)], last: 10 ** digits - 1 }
}

/** `count` frames with the numbers after this one. */
function numbered({ frame, at, zeros }: Template, after: number, count: number): Uint8Array {
  // A frame that is not written whole keeps these bytes: each burst has its own.
  const burst = new Uint8Array(frame.length * count)
  for (let i = 0; i < count; i++) {
    const start = i * frame.length
    burst.set(frame, start)
    let rest = after + 1 + i
    for (let digit = zeros.length - 1; digit >= 0; digit--) {
      // 0x30 to 0x39: the low four bits are the digit.
      burst[start + at + digit] = zeros[digit]! ^ (rest % 10)
      rest = Math.floor(rest / 10)
    }
  }
  return burst
}
