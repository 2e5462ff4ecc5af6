import {
  answer,
  arrivalOf,
  away,
  callOf,
  type Draft,
  firstOf,
  isPush,
  isRelayPush,
  lose,
  pushAfter,
  replyTo,
  requestsOf,
  type Spot,
  spots,
} from './draft.ts'
import type { Plant } from './plant.ts'

const inEvent = (draft: Draft, event: string) =>
  spots(draft, 'in', (spot) => isPush(spot) && spot.frame.event === event)
const where = (spot: Spot) => ({ call: callOf(spot), user: spot.trace.user })

/** Two pushes of one call with nothing of the session between them but frames of other kinds. */
function neighbours(draft: Draft, first: (spot: Spot) => boolean, second: (b: Spot, a: Spot) => boolean): [Spot, Spot] {
  const pairs = spots(draft, 'in', first).flatMap((a): [Spot, Spot][] => {
    const b = spots(draft, 'in', (spot) => spot.trace === a.trace && isPush(spot)).find(
      ({ frame }) => frame.seq === (a.frame.seq ?? 0) + 1,
    )
    return b !== undefined && b.index > a.index && callOf(a) === callOf(b) && second(b, a) ? [[a, b]] : []
  })
  return firstOf(pairs, 'such neighbours')
}

/** The frames change places; the numbers do not. */
function swap(draft: Draft, [a, b]: [Spot, Spot]) {
  const [first, second] = [a.trace.entries[a.index], b.trace.entries[b.index]]
  if (first?.kind !== 'in' || second?.kind !== 'in') throw new Error('these are no pushes')
  const [x, y] = [first.frame.seq, second.frame.seq]
  first.frame = { ...b.frame, ...(x === undefined ? {} : { seq: x }) }
  second.frame = { ...a.frame, ...(y === undefined ? {} : { seq: y }) }
  return { call: callOf(a), user: draft.traces.find(({ user }) => user === a.trace.user)?.user ?? '' }
}

/** Loses a relay that was acknowledged while its call had that status, and after which that came. */
function loseRelay(draft: Draft, status: string, isLast: boolean) {
  const requests = ['webrtc.offer', 'webrtc.answer', 'webrtc.ice_candidate'].flatMap((event) =>
    requestsOf(draft, event, status),
  )
  const lost = requests.filter((request) => {
    const arrival = arrivalOf(draft, request)
    if (arrival === undefined) return false
    const later = spots(draft, 'in', isRelayPush).filter(
      (spot) => spot.trace === arrival.trace && spot.index > arrival.index && callOf(spot) === callOf(arrival),
    )
    return isLast === (later.length === 0)
  })
  const arrival = arrivalOf(draft, firstOf(lost, `relay while ${status}`))
  if (arrival === undefined) throw new Error('it did not arrive')
  lose(arrival)
  return where(arrival)
}

/** A reply that is not the last of its session. */
function replyInTheMiddle(draft: Draft): Spot {
  const replies = spots(draft, 'in', ({ frame }) => frame.event === 'call.ack')
  return firstOf(
    replies.filter((spot) => {
      const next = spot.trace.entries[spot.index + 1]
      return next?.kind === 'in' && next.frame.event === 'call.ack'
    }),
    'two replies in a row',
  )
}

export const plantsInStreams: readonly Plant[] = [
  { name: 'a relay lost between others', kind: 'lost', plant: (draft) => loseRelay(draft, 'connected', false) },
  { name: 'the last relay of a call lost', kind: 'lost', plant: (draft) => loseRelay(draft, 'connected', true) },
  { name: 'a relay of before the answer lost', kind: 'lost', plant: (draft) => loseRelay(draft, 'ringing', false) },
  ...(['call.ended', 'call.rejected', 'call.accepted', 'call.status', 'call.ringing'] as const).map(
    (event): Plant => ({
      name: `${event} lost, and the numbers closed over it`,
      kind: 'untold',
      plant(draft) {
        // Nothing can excuse a loss after the last fault.
        const whole = Math.max(...draft.header.faults.map(({ until }) => until))
        const spot = firstOf(
          inEvent(draft, event).filter(({ at }) => at > whole + 300),
          event,
        )
        lose(spot)
        return where(spot)
      },
    }),
  ),
  {
    name: 'a phone that left when a call began, came back while it rang, and was not rung',
    kind: 'untold',
    plant: (draft) => where(away(draft, -1_000)),
  },
  {
    name: 'a push lost, and its number with it',
    kind: 'gap',
    plant(draft) {
      const spot = firstOf(spots(draft, 'in', isRelayPush), 'relay')
      spot.trace.entries.splice(spot.index, 1)
      return { user: spot.trace.user }
    },
  },
  {
    name: 'recovered: true, and the next number left out',
    kind: 'gap',
    plant(draft) {
      const resumes = spots(draft, 'in', ({ frame }) => frame.event === 'auth.ok' && frame.data?.recovered === true)
      const next = resumes.flatMap(
        (hello) =>
          spots(draft, 'in', (spot) => spot.trace === hello.trace && spot.index > hello.index && isPush(spot))[0] ?? [],
      )
      const spot = firstOf(next, 'push after a resume')
      spot.trace.entries.splice(spot.index, 1)
      return { user: spot.trace.user }
    },
  },
  {
    name: 'a relay twice, each with a number of its own',
    kind: 'double',
    plant(draft) {
      const spot = firstOf(spots(draft, 'in', isRelayPush), 'relay')
      pushAfter(spot, spot.frame)
      return where(spot)
    },
  },
  {
    name: 'call.accepted twice, each with a number of its own',
    kind: 'double',
    plant(draft) {
      const spot = firstOf(inEvent(draft, 'call.accepted'), 'call.accepted')
      pushAfter(spot, spot.frame)
      return where(spot)
    },
  },
  {
    name: 'a frame twice',
    kind: 'double',
    plant(draft) {
      const spot = firstOf(inEvent(draft, 'call.ringing'), 'call.ringing')
      spot.trace.entries.splice(spot.index, 0, structuredClone(spot.trace.entries[spot.index]!))
      return where(spot)
    },
  },
  {
    name: 'two replies to one request',
    kind: 'double',
    plant(draft) {
      const { trace, index } = replyInTheMiddle(draft)
      trace.entries.splice(index, 0, structuredClone(trace.entries[index]!))
      return { user: trace.user }
    },
  },
  {
    name: 'no reply, and the session goes on',
    kind: 'reply',
    plant(draft) {
      const { trace, index } = replyInTheMiddle(draft)
      trace.entries.splice(index, 1)
      return { user: trace.user }
    },
  },
  {
    name: 'two replies swapped',
    kind: 'order',
    plant(draft) {
      const { trace, index } = replyInTheMiddle(draft)
      const [first, second] = trace.entries.splice(index, 2)
      trace.entries.splice(index, 0, second!, first!)
      return { user: trace.user }
    },
  },
  {
    name: 'two relays swapped',
    kind: 'order',
    plant(draft) {
      const isNext = (b: Spot, a: Spot) => isRelayPush(b) && a.frame.data?.from_user_id === b.frame.data?.from_user_id
      return swap(draft, neighbours(draft, isRelayPush, isNext))
    },
  },
  {
    name: 'a relay of the callee before its answer',
    kind: 'order',
    plant: (draft) =>
      swap(
        draft,
        neighbours(draft, (spot) => spot.frame.event === 'call.accepted', isRelayPush),
      ),
  },
  {
    name: 'a relay after the end',
    kind: 'order',
    plant: (draft) =>
      swap(
        draft,
        neighbours(draft, isRelayPush, (spot) => spot.frame.event === 'call.ended'),
      ),
  },
  {
    name: 'an older version after a newer one',
    kind: 'order',
    plant(draft) {
      const pairs = inEvent(draft, 'call.status').flatMap((status) => {
        const accepted = inEvent(draft, 'call.accepted').find((each) => callOf(each) === callOf(status))
        return accepted?.trace === status.trace ? [{ status, accepted }] : []
      })
      const { status: spot, accepted } = firstOf(pairs, 'caller who was told of both')
      pushAfter(spot, accepted.frame)
      return where(spot)
    },
  },
  {
    name: 'a push without a number',
    kind: 'protocol',
    plant(draft) {
      const { trace, frame } = firstOf(inEvent(draft, 'call.ringing'), 'call.ringing')
      delete frame.seq
      return { user: trace.user }
    },
  },
  {
    name: 'a reply to nothing',
    kind: 'protocol',
    plant(draft) {
      const { trace, frame } = replyInTheMiddle(draft)
      frame.request_id = 'never'
      return { user: trace.user }
    },
  },
  {
    name: 'a relay that nobody sent',
    kind: 'effect',
    plant(draft) {
      const spot = firstOf(spots(draft, 'in', isRelayPush), 'relay')
      const { call_uuid } = spot.frame.data ?? {}
      const candidate = { candidate: `${call_uuid} 9999` }
      const { sdp: _, ...data } = spot.frame.data ?? {}
      pushAfter(spot, { ...spot.frame, event: 'webrtc.ice_candidate', data: { ...data, candidate } })
      return where(spot)
    },
  },
  {
    name: 'a relay that came with another text',
    kind: 'effect',
    plant(draft) {
      const spot = firstOf(
        spots(draft, 'in', (each) => isRelayPush(each) && each.frame.data?.sdp !== undefined),
        'description',
      )
      if (spot.frame.data?.sdp !== undefined) spot.frame.data.sdp.sdp += ' 48000'
      return where(spot)
    },
  },
  {
    name: 'a relay that was refused, and came',
    kind: 'effect',
    plant(draft) {
      const request = firstOf(
        requestsOf(draft, 'webrtc.offer', 'accepted').filter((each) => arrivalOf(draft, each) !== undefined),
        'offer',
      )
      const reply = replyTo(request)
      if (reply !== undefined) answer(reply, { event: 'call.error', error: { code: 'CALL_NOT_PARTICIPANT' } })
      return { call: callOf(request) }
    },
  },
]
