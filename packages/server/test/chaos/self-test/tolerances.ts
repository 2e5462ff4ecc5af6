import {
  answer,
  arrivalOf,
  away,
  callOf,
  type Draft,
  type DraftTrace,
  firstOf,
  isFresh,
  isPush,
  isRelayPush,
  isResume,
  lose,
  missed,
  missedApart,
  pushAfter,
  refuse,
  replyTo,
  requestsOf,
  reset,
  type Spot,
  spots,
} from './draft.ts'

import type { RecordingName } from './plant.ts'

/** Something that looks wrong and is not. */
export interface Tolerance {
  readonly name: string
  /** Which recording it is put into; undefined: the one of one node. */
  readonly recording?: RecordingName
  change(draft: Draft): void
}

/** A relay that was acknowledged while its call was on, with its reply and where it came. */
function relays(draft: Draft): { request: Spot; reply: Spot; arrival: Spot }[] {
  return requestsOf(draft, 'webrtc.ice_candidate', 'connected').flatMap((request) => {
    const reply = replyTo(request)
    const arrival = arrivalOf(draft, request)
    return reply === undefined || arrival === undefined ? [] : [{ request, reply, arrival }]
  })
}

function unavailable(reply: Spot): void {
  answer(reply, { event: 'call.error', error: { code: 'SERVICE_UNAVAILABLE', retryable: true } })
}

export const tolerances: readonly Tolerance[] = [
  {
    name: 'a relay past the log that was lost: its sender was told that it might be',
    change(draft) {
      const { reply, arrival } = firstOf(relays(draft), 'relay')
      reply.frame.data = { ...reply.frame.data, volatile: true }
      lose(arrival)
    },
  },
  {
    name: 'a relay past the log that came: it has no number',
    change(draft) {
      const { reply, arrival } = firstOf(relays(draft), 'relay')
      reply.frame.data = { ...reply.frame.data, volatile: true }
      const entry = arrival.trace.entries[arrival.index]
      lose(arrival)
      if (entry?.kind !== 'in') return
      delete entry.frame.seq
      arrival.trace.entries.splice(arrival.index, 0, entry)
    },
  },
  {
    name: 'a relay that came twice: it was written while Redis was away, and its sender went on at another node',
    change(draft) {
      const { request, arrival } = firstOf(relays(draft), 'relay')
      pushAfter(arrival, arrival.frame)
      request.trace.entries.splice(request.index, 0, structuredClone(request.trace.entries[request.index]!))
      const { at } = arrival
      draft.header.faults.push({ kind: 'node cut from Redis', target: 'node-0', from: at - 100, until: at + 100 })
    },
  },
  {
    name: 'a relay that may have been done, and did not come',
    change(draft) {
      const { reply, arrival } = firstOf(relays(draft), 'relay')
      unavailable(reply)
      lose(arrival)
    },
  },
  {
    name: 'a relay that may have been done, and came',
    change(draft) {
      unavailable(firstOf(relays(draft), 'relay').reply)
    },
  },
  {
    name: 'an accept whose outcome was unknown, and which was done',
    change(draft) {
      const reply = replyTo(firstOf(requestsOf(draft, 'call.accept', 'accepted'), 'accept'))
      if (reply !== undefined) unavailable(reply)
    },
  },
  {
    name: 'a session whose last requests have no reply',
    change(draft) {
      const ends = spots(draft, 'in', ({ frame, index }) => index > 1 && isFresh(frame))
      const lastReplies = ends.flatMap(({ trace, index }) => {
        const before = spots(draft, 'in', (spot) => spot.trace === trace && spot.index < index)
        return before.findLast(({ frame }) => frame.request_id !== undefined) ?? []
      })
      // A session that heard of an end has to hear of it.
      const isOpen = ({ frame }: Spot) => frame.data?.status === 'accepted' || frame.data?.status === 'connected'
      const { trace, index } = firstOf(lastReplies.filter(isOpen), 'session that was lost in the middle of a call')
      trace.entries.splice(index, 1)
    },
  },
  {
    name: 'a log that was lost under a socket, as session.reset says, with a relay that was in it',
    recording: 'several',
    change(draft) {
      const { arrival } = firstOf(
        relays(draft).filter(({ arrival: { trace, index } }) => {
          const [previous, next] = [trace.entries[index - 1], trace.entries[index + 1]]
          const isQuiet = next !== undefined && next.at - trace.entries[index]!.at > 20
          return isQuiet && previous?.kind === 'in' && isPush({ ...arrivalAt(trace, index - 1) })
        }),
        'relay with nothing near it',
      )
      const before = arrivalAt(arrival.trace, arrival.index - 1)
      lose(arrival)
      reset(before, draft)
      draft.header.faults.push({ kind: 'Redis killed', target: 'Redis', from: before.at - 100, until: before.at })
    },
  },
  {
    name: 'a log that was lost with a relay that was in it, after which another one came past the log',
    recording: 'several',
    change(draft) {
      const all = relays(draft)
      const { lost, later } = firstOf(
        all.flatMap((each) => {
          const { trace, index, frame } = each.arrival
          const isNext = ({ arrival }: typeof each) =>
            arrival.trace === trace && arrival.index === index + 1 && callOf(arrival) === callOf(each.arrival)
          const next = all.find(
            (other) => isNext(other) && other.arrival.frame.data?.from_user_id === frame.data?.from_user_id,
          )
          const [previous, after] = [trace.entries[index - 1], trace.entries[index + 2]]
          const isQuiet = after !== undefined && after.at - trace.entries[index + 1]!.at > 20
          const isFollowing = previous?.kind === 'in' && isPush({ ...arrivalAt(trace, index - 1) })
          return next !== undefined && isQuiet && isFollowing ? [{ lost: each, later: next }] : []
        }),
        'two relays with nothing near them',
      )
      const { trace, index } = lost.arrival
      const before = arrivalAt(trace, index - 1)
      later.reply.frame.data = { ...later.reply.frame.data, volatile: true }
      lose(later.arrival)
      lose(lost.arrival)
      reset(before, draft)
      const { socket } = trace.entries[index] as { socket: number }
      const { seq: _, ...frame } = later.arrival.frame
      trace.entries.splice(index, 0, { kind: 'in', at: before.at, socket, frame })
      draft.header.faults.push({ kind: 'Redis killed', target: 'Redis', from: before.at - 100, until: before.at })
    },
  },
  {
    name: 'a log of which a key was evicted',
    recording: 'several',
    change(draft) {
      const spot = firstOf(spots(draft, 'in', isPush).slice(-1), 'push')
      const evicted = { key: 'index', user: spot.trace.user }
      draft.header.faults.push({ kind: 'keys evicted', target: 'Redis', from: spot.at - 100, until: spot.at, evicted })
      reset(spot, draft)
    },
  },
  {
    name: 'a phone that left before a call could ring there, and came back when it was over',
    change: (draft) => void away(draft, 1),
  },
  {
    name: 'a session that came back after its window',
    recording: 'several',
    change(draft) {
      refuse(firstOf(spots(draft, 'in', isResume).slice(-1), 'resume'))
      draft.header.resumeWindowMs = 1
    },
  },
  {
    name: 'a session that missed more than its log keeps',
    recording: 'several',
    change(draft) {
      refuse(missed(draft, 24))
    },
  },
  {
    name: 'a session that missed more than its log keeps, from a base client',
    recording: 'several',
    change(draft) {
      refuse(missedApart(draft, 24))
    },
  },
  {
    name: 'a session that was lost with its node, and with it the last that came',
    change(draft) {
      const last = spots(draft, 'in', isRelayPush).filter(({ trace, index, at }) => {
        const next = trace.entries.slice(index + 1).find((entry) => entry.kind === 'in')
        return next?.kind === 'in' && isFresh(next.frame) && next.at - at < 4_000
      })
      lose(firstOf(last, 'relay that was the last of its session'))
    },
  },
]

function arrivalAt(trace: DraftTrace, index: number): Spot {
  const entry = trace.entries[index]
  if (entry?.kind !== 'in') return { trace, index, at: 0, frame: { event: 'auth.ok' } }
  return { trace, index, at: entry.at, frame: entry.frame }
}
