import { messageLimits } from '@ringwire/protocol/envelope'
import { fitsBytes } from '@ringwire/protocol/text'

/** Stands for bytes that are not text: they are not an envelope either [ENV1]. */
const unreadable = '\0'

/** The text of a frame; a binary frame with UTF-8 is read as text [ENV1]. Undefined if it is larger than a message may be. */
export function textOfFrame(frame: string | Uint8Array): string | undefined {
  const { messageBytes } = messageLimits
  if (typeof frame === 'string') return fitsBytes(frame, messageBytes) ? frame : undefined
  return frame.byteLength <= messageBytes ? (decode(frame) ?? unreadable) : undefined
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
