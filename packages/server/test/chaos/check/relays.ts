import { isRelay } from '../recording.ts'
import { markOf, sameText } from '../relay-text.ts'
import type { MayComeAgain } from './again.ts'
import { nodeAt } from './due-rings.ts'
import { type CallFacts, type Facts, overStatuses, sideOf } from './facts.ts'
import { clockSlackMs, type Report } from './findings.ts'
import { atOnceMs, type Patience } from './patience.ts'
import { isWithAnother } from './places.ts'
import { isVolatile, outcomeOf, type Reading, type SeenPush, type SeenRequest, type Stretch } from './reading.ts'
import { finals } from './streams.ts'
import { turnsOf } from './turns.ts'

/** A relay as its receiver got it. */
interface Arrival {
  readonly mark: number
  readonly push: SeenPush
  readonly stretch: Stretch
}

export interface RelaysSeen {
  readonly readings: readonly Reading[]
  readonly facts: Facts
  readonly startedAt: number
  readonly patience: Patience
  /** People of whom nobody knows what they sent. */
  readonly apart: ReadonlySet<string>
  readonly mayComeAgain: MayComeAgain
  readonly report: Report
}

/** Relays arrive in the sender's order, and what was acknowledged arrives [EXT3, ORD2, REL1]. */
export function checkRelays(seen: RelaysSeen): void {
  const { readings, facts, startedAt, patience, apart, report } = seen
  const byUser = new Map(readings.map((reading) => [reading.user, reading]))
  const arrivals = arrivalsOf(readings)
  const sent = Map.groupBy(
    readings.flatMap(({ requests }) => requests).filter(({ frame }) => isRelay(frame)),
    ({ frame, session }) => `${frame.data?.call_uuid} ${session.user}`,
  )
  for (const [name, came] of arrivals) {
    const [, sender = ''] = name.split(' ')
    if (!apart.has(sender)) checkArrivals(came, sent.get(name) ?? [], seen)
  }
  for (const [name, requests] of sent) {
    const [call = '', user = ''] = name.split(' ')
    const fact = facts.get(call)
    const sender = byUser.get(user)
    const side = fact === undefined ? undefined : sideOf(fact, user)
    if (fact === undefined || sender === undefined || side === undefined) continue
    const receiver = byUser.get(side === 'caller' ? fact.row.callee : fact.row.caller)
    if (receiver === undefined) continue
    const stream: Stream = { fact, sender, receiver, came: arrivals.get(name) ?? [], startedAt, patience }
    for (const request of requests) checkArrived(request, stream, report)
  }
}

/** How long the sender to a call that is over hears nothing but that [END1], in ms. */
const endKnownMs = 60_000

/** Per call and sender, in the order in which they came. */
function arrivalsOf(readings: readonly Reading[]): Map<string, Arrival[]> {
  const arrivals = new Map<string, Arrival[]>()
  for (const stretch of readings.flatMap(({ stretches }) => stretches)) {
    for (const push of stretch.pushes) {
      if (!isRelay(push.frame)) continue
      const name = `${push.frame.data?.call_uuid} ${push.frame.data?.from_user_id}`
      const arrival = { mark: markOf(push.frame) ?? Number.NaN, push, stretch }
      const known = arrivals.get(name)
      if (known === undefined) arrivals.set(name, [arrival])
      else known.push(arrival)
    }
  }
  return arrivals
}

function checkArrivals(
  came: readonly Arrival[],
  sent: readonly SeenRequest[],
  { facts, startedAt, mayComeAgain, report }: RelaysSeen,
): void {
  const requests = new Map(sent.map((request) => [markOf(request.frame), request]))
  const last = new Map<unknown, number>()
  const first = new Map<number, SeenPush>()
  for (const { mark, push, stretch } of came) {
    const { user } = stretch.session
    const { data, event, seq } = push.frame
    const call = data?.call_uuid
    const where = { user, call, at: push.at }
    const request = requests.get(mark)
    const fact = facts.get(call ?? '')
    if (request === undefined || request.frame.event !== event)
      report('effect', `${event} ${mark} was never sent`, where)
    else if (!sameText(request.frame, push.frame)) report('effect', `${event} ${mark} came with another text`, where)
    else if (outcomeOf(request) === 'refused' && !isOver(request, fact, startedAt))
      report('effect', `${event} ${mark} came, and it was refused`, where)
    if (fact === undefined || sideOf(fact, user) === undefined)
      report('effect', `${event} ${mark} came to a stranger`, where)
    // A message past the log finds its way without it.
    if (seq === undefined) continue
    const known = first.get(mark)
    if (known !== undefined && mayComeAgain(known)) continue
    first.set(mark, push)
    const before = last.get(stretch.session) ?? 0
    if (mark < before) report('order', `${event} ${mark} after ${before}`, where)
    last.set(stretch.session, Math.max(mark, before))
  }
}

/** A repeated request to a call that is over for more than a minute only hears that: nobody knows any more what came [EXT4]. */
function isOver({ sent, replies: [reply] }: SeenRequest, fact: CallFacts | undefined, startedAt: number): boolean {
  const endedAt = fact?.row.ended_at
  if (sent === 1 || reply?.frame.error?.code !== 'CALL_INVALID_STATE' || typeof endedAt !== 'number') return false
  return startedAt + reply.at - endedAt > endKnownMs - clockSlackMs
}

/** What one side of a call sends to the other. */
interface Stream {
  readonly fact: CallFacts
  readonly sender: Reading
  readonly receiver: Reading
  readonly came: readonly Arrival[]
  readonly startedAt: number
  readonly patience: Patience
}

function checkArrived(request: SeenRequest, stream: Stream, report: Report): void {
  const [reply] = request.replies
  const mark = markOf(request.frame)
  if (reply === undefined || mark === undefined || outcomeOf(request) !== 'done' || isVolatile(reply.frame)) return
  const status = reply.frame.data?.status ?? ''
  // For a call that is over it is dropped [END1].
  if (overStatuses.includes(status) || stream.came.some((arrival) => arrival.mark === mark)) return
  const { fact, sender, receiver, startedAt, patience } = stream
  const where = { user: receiver.user, call: fact.row.call_uuid, at: reply.at }
  const text = `${request.frame.event} ${mark} of ${sender.user} was acknowledged (${status}) and never came`
  const acceptedAt = fact.reached.get('accepted')
  if (status === 'ringing') {
    // Nobody took the call, or the waiting messages were lost, and their sender heard so [REL2].
    if (acceptedAt === undefined || isFromBeforeTurn(request, fact, startedAt)) return
    const answered = Math.max(reply.at, acceptedAt - startedAt)
    if (patience.declared(sender, request.firstAt, answered) || isExcused(answered, answered, stream, mark)) return
    // It is handed over with the answer: not if the answer could not be delivered before the call was over.
    const nodes = [receiver, sender].map((reading) => nodeAt(reading, answered))
    const heardBy = patience.heardBy(answered, receiver.user, nodes)
    const endedAt = (fact.row.ended_at ?? Number.POSITIVE_INFINITY) - startedAt
    if (stream.came.length === 0 && heardBy > answered + atOnceMs && heardBy > endedAt) return
    report('lost', `${text}, though the call was answered`, where)
  } else if (!isExcused(request.firstAt, reply.at, stream, mark)) report('lost', text, where)
}

/** What a member sent before the turn in which it answered is for nobody: that turn began without it [REL2, GROUP1]. */
function isFromBeforeTurn({ session, firstAt }: SeenRequest, fact: CallFacts, startedAt: number): boolean {
  const turn = turnsOf(fact).at(-1)
  return turn?.member === session.user && startedAt + firstAt < turn.began.at + clockSlackMs
}

/**
 * Whether the receiver heard in time that something is missing. Not if more of the same sender came in that part of its
 * session, or how the call ended: then it was passed over in silence. What came past the log says nothing of it.
 */
function isExcused(
  from: number,
  at: number,
  { came, fact, receiver, patience, startedAt }: Stream,
  mark: number,
): boolean {
  const stretch = receiver.stretches.findLast((each) => each.from <= from)
  // It never was there.
  if (stretch === undefined) return receiver.stretches.length === 0
  if (isWithAnother(receiver, fact, at, startedAt)) return true
  const later = came.filter((arrival) => arrival.mark > mark && arrival.push.frame.seq !== undefined)
  const laterCame = later.some((arrival) => arrival.stretch === stretch)
  // How a transfer failed has the status of the other call.
  const endCame = stretch.pushes.some(
    ({ frame: { event, data } }) =>
      finals.includes(event) && data?.call_uuid === fact.row.call_uuid && overStatuses.includes(data.status ?? ''),
  )
  return !laterCame && !endCame && patience.excuses(receiver, stretch, at)
}
