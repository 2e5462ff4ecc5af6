import type { Frame } from './recording.ts'

/**
 * What a relay of these runs says: `call counter`, or `call counter length` of a long one. On the wire that is filled up to
 * its length; recordings have it without.
 */
export function textOf({ data }: Frame): string | undefined {
  return data?.sdp?.sdp ?? data?.candidate?.candidate
}

/** The counter that a relay carries. */
export function markOf(frame: Frame): number | undefined {
  const counter = Number(textOf(frame)?.split(' ')[1])
  return Number.isInteger(counter) ? counter : undefined
}

function statedLength(text: string): number {
  return Number(text.split(' ')[2] ?? 0)
}

export function isLong(frame: Frame): boolean {
  return statedLength(textOf(frame) ?? '') > 0
}

/** How long its text is on the wire. */
export function lengthOf(frame: Frame): number {
  const text = textOf(frame) ?? ''
  return Math.max(text.length, statedLength(text))
}

export function sameText(one: Frame, other: Frame): boolean {
  return textOf(one) === textOf(other)
}

const filler = '.'

/** As it goes over the wire. */
export function inFull(frame: Frame): Frame {
  return withText(frame, (text) => text.padEnd(statedLength(text), filler))
}

/** As it is recorded; one that is not as long as it says stays as it came. */
export function inShort(frame: Frame): Frame {
  return withText(frame, (text) => {
    const end = text.indexOf(filler)
    // A copy: a part of a string would keep all of it in memory.
    const short = end < 0 ? text : Buffer.from(text.slice(0, end)).toString()
    return short.padEnd(statedLength(short), filler) === text ? short : text
  })
}

/** Only a description can be long. */
function withText(frame: Frame, change: (text: string) => string): Frame {
  const { sdp } = frame.data ?? {}
  return sdp === undefined ? frame : { ...frame, data: { ...frame.data, sdp: { ...sdp, sdp: change(sdp.sdp) } } }
}
