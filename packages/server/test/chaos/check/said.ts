import { saidMarkOf } from '../media-mark.ts'
import { type CallFacts, type Facts, overStatuses, sideOf } from './facts.ts'
import type { Report } from './findings.ts'
import { atOnceMs, isThere, type Patience } from './patience.ts'
import { isWithAnother } from './places.ts'
import { isVolatile, outcomeOf, type Reading, type SeenPush, type SeenRequest, type Stretch } from './reading.ts'

/** What one side heard the other say of its media, in one part of its session. */
interface Heard {
  readonly mark: number
  readonly push: SeenPush
  readonly stretch: Stretch
}

export interface SaidOptions {
  readonly readings: readonly Reading[]
  readonly facts: Facts
  readonly startedAt: number
  readonly patience: Patience
  /** People of whom nobody knows what they said. */
  readonly apart: ReadonlySet<string>
  /** Whether a push that came may not have been saved. */
  readonly isUnsaved: (push: SeenPush) => boolean
  readonly report: Report
}

/** What a side says last of its media, and whether it holds the call, is what the other one knows of it [MEDIA1, HOLD1]. */
export function checkSaid(options: SaidOptions): void {
  const { readings, facts, apart } = options
  const byUser = new Map(readings.map((reading) => [reading.user, reading]))
  const said = Map.groupBy(
    readings.flatMap(({ requests }) => requests).filter(({ frame }) => frame.event === 'call.media'),
    ({ frame, session }) => `${frame.data?.call_uuid} ${session.user}`,
  )
  for (const receiver of readings) {
    for (const [name, heard] of heardBy(receiver))
      if (!apart.has(name.split(' ')[1] ?? '')) checkHeard(heard, said.get(name) ?? [], options)
    checkAgain(receiver, options)
  }
  for (const [name, requests] of said) {
    const [call = '', user = ''] = name.split(' ')
    const fact = facts.get(call)
    const side = fact && sideOf(fact, user)
    const receiver = fact && byUser.get(side === 'caller' ? fact.row.callee : fact.row.caller)
    if (fact === undefined || side === undefined || receiver === undefined) continue
    const heard = heardBy(receiver).get(name) ?? []
    for (const request of requests) checkArrived(request, heard, fact, receiver, options)
  }
}

/** By the call and who said it, in order. */
function heardBy({ stretches }: Reading): Map<string, Heard[]> {
  const all = stretches.flatMap((stretch) =>
    stretch.pushes
      .filter(({ frame }) => frame.event === 'call.media')
      .map((push): Heard => ({ mark: saidMarkOf(push.frame), push, stretch })),
  )
  return Map.groupBy(all, ({ push: { frame } }) => `${frame.data?.call_uuid} ${frame.data?.from_user_id}`)
}

/** It was said, and nothing older comes after it. */
function checkHeard(heard: readonly Heard[], said: readonly SeenRequest[], { report }: SaidOptions): void {
  const last = new Map<unknown, number>()
  for (const { mark, push, stretch } of heard) {
    const where = { user: stretch.session.user, call: push.frame.data?.call_uuid, at: push.at }
    const request = said.find(({ frame }) => saidMarkOf(frame) === mark)
    if (request === undefined) report('effect', `call.media ${mark} was never sent`, where)
    else if (outcomeOf(request) === 'refused' && request.sent === 1)
      report('effect', `call.media ${mark} came, and it was refused`, where)
    const before = last.get(stretch.session) ?? 0
    if (mark < before) report('order', `call.media ${mark} after ${before}`, where)
    last.set(stretch.session, Math.max(mark, before))
  }
}

/** The receiver has heard what was acknowledged, or something later. */
function checkArrived(
  request: SeenRequest,
  heard: readonly Heard[],
  fact: CallFacts,
  receiver: Reading,
  { patience, startedAt, report }: SaidOptions,
): void {
  const [reply] = request.replies
  if (reply === undefined || outcomeOf(request) !== 'done' || isVolatile(reply.frame)) return
  const status = reply.frame.data?.status ?? ''
  if (status === 'ringing' || overStatuses.includes(status)) return
  const mark = saidMarkOf(request.frame)
  if (heard.some((each) => each.mark >= mark)) return
  const stretch = receiver.stretches.findLast(({ from }) => from <= request.firstAt)
  if (stretch === undefined || patience.excuses(receiver, stretch, reply.at)) return
  if (isWithAnother(receiver, fact, reply.at, startedAt)) return
  const where = { user: receiver.user, call: fact.row.call_uuid, at: reply.at }
  report('lost', `call.media ${mark} of ${request.session.user} was acknowledged (${status}) and never came`, where)
}

/**
 * A client that resumes its session gets the last state of the other side again. Not one that has relays which were not saved:
 * then nobody knows what it heard last [MEDIA1].
 */
function checkAgain(receiver: Reading, { facts, startedAt, isUnsaved, report }: SaidOptions): void {
  const all = heardBy(receiver)
  for (const { kind, index, at, frame, session } of receiver.states) {
    if (kind !== 'recovered') continue
    // Everything but relays waits for its save, and for that of everything before it [EXT3].
    const last = session.stretches.at(-1)?.pushes.findLast((push) => push.index < index && push.frame.seq !== undefined)
    if (last !== undefined && isUnsaved(last)) continue
    for (const { call_uuid: call, holds_place: holds } of frame.data?.active_calls ?? []) {
      const fact = facts.get(call)
      const side = fact && sideOf(fact, receiver.user)
      const endedAt = (fact?.row.ended_at ?? Number.POSITIVE_INFINITY) - startedAt
      if (!holds || side === undefined || endedAt < at + atOnceMs) continue
      const peer = side === 'caller' ? fact?.row.callee : fact?.row.caller
      const heard = (all.get(`${call} ${peer}`) ?? []).filter(({ stretch }) => stretch.session === session)
      const before = heard.findLast(({ push }) => push.index < index)
      const isAgain = heard.some(({ push }) => push.index > index)
      if (before === undefined || isAgain || !isThere(receiver, at + atOnceMs / 4, at + atOnceMs)) continue
      report('untold', `what ${peer} said last of its media was not told again`, { user: receiver.user, call, at })
    }
  }
}
