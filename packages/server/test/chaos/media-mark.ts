import type { Frame, FrameData } from './recording.ts'

/** Four booleans are all that `call.media` says: a side says no more than this in one call. */
export const mostSaid = 15

/** What a side says with its nth message, from 1 on: every second one holds the call. */
export function saying(nth: number): FrameData {
  return { held: (nth & 1) > 0, audio: (nth & 2) > 0, video: (nth & 4) > 0, screen: (nth & 8) > 0 }
}

/** Which message of its side it is. */
export function saidMarkOf({ data }: Frame): number {
  const { held, audio, video, screen } = data ?? {}
  return [held, audio, video, screen].reduce<number>((sum, bit, i) => sum + (bit === true ? 1 << i : 0), 0)
}
