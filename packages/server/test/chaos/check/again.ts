import { type Header, isRelay } from '../recording.ts'
import { markOf } from '../relay-text.ts'
import type { Reading, SeenPush } from './reading.ts'

/** Whether a relay may come once more, on whatever socket. */
export type MayComeAgain = (first: SeenPush) => boolean

/** How long after that a node may find out that Redis is there again, in ms. */
const foundOutMs = 5_000

/**
 * While a node has no Redis, it writes relays between its clients unsaved. A sender that goes on at another node before it
 * hears the ack sends the relay again there, and that node does not know that the peer has it [EXT3].
 */
export function againOf(readings: readonly Reading[], isUnsaved: (push: SeenPush) => boolean): MayComeAgain {
  const sentAgain = new Set<string>()
  for (const { frame, session, sent } of readings.flatMap(({ requests }) => requests))
    if (sent > 1 && isRelay(frame)) sentAgain.add(`${frame.data?.call_uuid} ${session.user} ${markOf(frame)}`)
  return (first) => {
    const { frame } = first
    return isUnsaved(first) && sentAgain.has(`${frame.data?.call_uuid} ${frame.data?.from_user_id} ${markOf(frame)}`)
  }
}

/** Whether what came may not have been saved: while a node has no Redis, it writes relays unsaved [EXT3]. */
export function unsavedOf({ faults }: Header): (push: SeenPush) => boolean {
  const isAway = (at: number) =>
    faults.some(({ kind, from, until }) => kind.includes('Redis') && from <= at && at <= until + foundOutMs)
  return ({ frame, at }) => (isRelay(frame) || frame.event === 'call.media') && isAway(at)
}
