import { type Frame, isRelay } from '../recording.ts'
import { markOf } from '../relay-text.ts'
import type { MayComeAgain } from './again.ts'
import type { Facts } from './facts.ts'
import type { Report } from './findings.ts'
import type { Reading, SeenPush, SeenSession, Stretch } from './reading.ts'

/**
 * What one session receives: numbers without gaps, nothing twice, in order, and a reply to everything [EXT1, EXT2].
 * `apart`: people with several phones. Each phone at which a call rings may say so [EXT5], and counts what it sends by itself.
 */
export function checkStreams(
  readings: readonly Reading[],
  facts: Facts,
  apart: ReadonlySet<string>,
  mayComeAgain: MayComeAgain,
  report: Report,
): void {
  const ofSeveral = ({ event, data }: Frame) => {
    const callee = facts.get(data?.call_uuid ?? '')?.row.callee
    return apart.has((event === 'call.alerting' ? (data?.by?.user_id ?? callee) : data?.from_user_id) ?? '')
  }
  // A phone says in each turn of its member that it rings [GROUP1].
  const ofTurns = ({ event, data }: Frame) =>
    event === 'call.alerting' &&
    (facts
      .get(data?.call_uuid ?? '')
      ?.events.filter(({ type, member }) => type === 'turn' && member === data?.by?.user_id).length ?? 0) > 1
  for (const reading of readings) {
    const { user } = reading
    for (const { frame, at } of reading.strange) {
      report('protocol', `${frame.event} ${strangenessOf(frame)}`, { user, at, call: frame.data?.call_uuid })
    }
    for (const stretch of reading.stretches) checkNumbers(stretch, report)
    for (const session of reading.sessions) {
      const isAllowed = (first: SeenPush) => ofSeveral(first.frame) || ofTurns(first.frame) || mayComeAgain(first)
      checkDoubles(session, isAllowed, report)
      checkVersions(session, report)
      checkReplies(session, report)
    }
  }
}

function strangenessOf({ event, request_id: id }: Frame): string {
  if (event === 'auth.ok') return 'says recovered: true, and goes on with another session or log'
  return id === undefined ? 'before auth.ok' : `${id} was not asked for`
}

function checkNumbers({ session, pushes }: Stretch, report: Report): void {
  const { user } = session
  let last = 0
  for (const { frame, at } of pushes) {
    const { seq, event, data } = frame
    const where = { user, call: data?.call_uuid, at }
    // A relay past the log has none: its sender heard so.
    if (seq === undefined) {
      if (!isRelay(frame)) report('protocol', `${event} has no seq`, where)
      continue
    }
    if (seq <= last) report('double', `${event} has seq ${seq} after ${last}`, where)
    else if (seq > last + 1) report('gap', `${event} has seq ${seq} after ${last}`, where)
    last = Math.max(last, seq)
  }
}

/** What makes a push the same as another one; a snapshot is never the same. */
function nameOf({ frame }: SeenPush): string | undefined {
  const { event, version, data } = frame
  // The state of a side's media is repeated, and says nothing that counts.
  if (event === 'call.media') return undefined
  if (isRelay(frame)) return `${event} ${data?.call_uuid} from ${data?.from_user_id} ${markOf(frame)}`
  // Each member of a group says that its phone rings.
  const by = event === 'call.alerting' ? (data?.by?.user_id ?? '') : ''
  const call = subjectOf(frame)
  return call === undefined ? undefined : `${event} ${call} ${version} ${by}`.trim()
}

/** The call whose version a push has: a side that is handed over hears the version of the new call [XFER1]. */
export function subjectOf({ event, data }: Frame): string | undefined {
  return event === 'call.transferring' ? data?.new_call_uuid : data?.call_uuid
}

function checkDoubles(session: SeenSession, isAllowed: (first: SeenPush) => boolean, report: Report): void {
  const { user } = session
  const seen = new Map<string, SeenPush>()
  for (const push of session.stretches.flatMap(({ pushes }) => pushes)) {
    const name = nameOf(push)
    if (name === undefined) continue
    const first = seen.get(name)
    if (first === undefined) seen.set(name, push)
    else if (!isAllowed(first))
      report('double', `${name} came twice`, { user, call: push.frame.data?.call_uuid, at: push.at })
  }
  for (const { frame, replies } of session.requests.values()) {
    const [, second] = replies
    if (second !== undefined)
      report('double', `${frame.event} ${frame.n} has ${replies.length} replies`, { user, at: second.at })
  }
}

export const finals: readonly string[] = ['call.ended', 'call.rejected', 'call.cancelled', 'call.missed']

/** Versions of a call come in order, and nothing about it after how it ended [ORD2, ORD3]. */
function checkVersions(session: SeenSession, report: Report): void {
  const { user } = session
  const versions = new Map<string, number>()
  const over = new Map<string, string>()
  for (const { frame, at } of session.stretches.flatMap(({ pushes }) => pushes)) {
    const { event, version, data } = frame
    const call = subjectOf(frame)
    if (call === undefined) continue
    const end = over.get(call)
    if (end !== undefined) report('order', `${event} after ${end}`, { user, call, at })
    // One that was answered elsewhere goes on: who names it again may still hear how it ended [END4].
    if (finals.includes(event) && data?.ended_at !== null) over.set(call, event)
    if (version === undefined) continue
    const last = versions.get(call) ?? 0
    if (version < last) report('order', `${event} of version ${version} after version ${last}`, { user, call, at })
    versions.set(call, Math.max(version, last))
  }
}

/** Requests of a session take effect one after another: a reply says that those before have theirs [ORD1]. */
function checkReplies(session: SeenSession, report: Report): void {
  const { user } = session
  const requests = [...session.requests.values()].sort((a, b) => a.n - b.n)
  const lastReplied = requests.findLast(({ replies }) => replies.length > 0)?.n ?? 0
  let latest: SeenPush | undefined
  for (const { n, frame, replies, firstAt } of requests) {
    const where = { user, call: frame.data?.call_uuid, at: firstAt }
    const [reply] = replies
    if (reply === undefined) {
      if (n < lastReplied) report('reply', `${frame.event} ${n} has none, ${lastReplied} has one`, where)
    } else if (latest !== undefined && reply.index < latest.index)
      report('order', `reply to ${frame.event} ${n} overtook`, where)
    else latest = reply
  }
}
