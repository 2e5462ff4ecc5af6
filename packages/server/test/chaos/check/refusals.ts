import type { Header } from '../recording.ts'
import { type CallFacts, type Facts, isRung, peerOf, sideOf } from './facts.ts'
import { clockSlackMs, type Report } from './findings.ts'
import type { Reading, SeenPush, SeenRequest } from './reading.ts'
import { isInTurn } from './turns.ts'

/** The event that asks for everything that came so far: nobody knows it, and that is the answer. */
const settle = 'test.settle'

/** A request is refused for a reason that can be seen; these people ask for nothing that is forbidden [END1, ENV5]. */
export function checkRefusals(readings: readonly Reading[], facts: Facts, header: Header, report: Report): void {
  for (const reading of readings) {
    const known = knownSince(reading)
    const seen = { states: reading.states, known }
    for (const request of reading.requests) {
      const [reply] = request.replies
      if (reply?.frame.error === undefined) continue
      const reason = unreasonable(request, reply, seen, facts, header)
      if (reason === undefined) continue
      const { frame, session } = request
      const text = `${frame.event} ${request.n} got ${reply.frame.error.code}: ${reason}`
      report('refusal', text, { user: session.user, call: frame.data?.call_uuid, at: reply.at })
    }
  }
}

interface Seen extends Pick<Reading, 'states'> {
  readonly known: ReadonlyMap<string, number>
}

/** The place in a trace by which a request was done: the reply to one that was not sent again is from before the resume. */
function doneBefore({ lastAt }: SeenRequest, reply: SeenPush, states: Reading['states']): number {
  const resumed = states.find(({ at, index }) => at > lastAt && index < reply.index)
  return resumed?.index ?? reply.index
}

/** The place in a trace where the service first said that a call exists. */
function knownSince({ stretches, states, requests }: Reading): ReadonlyMap<string, number> {
  const known = new Map<string, number>()
  const say = (call: string | undefined, index: number) => {
    if (call !== undefined) known.set(call, Math.min(index, known.get(call) ?? Number.POSITIVE_INFINITY))
  }
  for (const { frame, index } of stretches.flatMap(({ pushes }) => pushes)) say(frame.data?.call_uuid, index)
  for (const { frame, index } of states)
    for (const { call_uuid } of frame.data?.active_calls ?? []) say(call_uuid, index)
  for (const { frame, index } of requests.flatMap(({ replies }) => replies)) say(frame.data?.call_uuid, index)
  return known
}

/** What is wrong with a refusal; undefined: nothing. */
function unreasonable(
  request: SeenRequest,
  reply: SeenPush,
  { states, known }: Seen,
  facts: Facts,
  { startedAt, apart: severalPhones = [], decides }: Header,
): string | undefined {
  const { frame, session, firstAt } = request
  const apart = new Set(severalPhones)
  const { code, status, call_uuid: named, field } = reply.frame.error ?? { code: '' }
  const { to_call_uuid: second } = frame.data ?? {}
  const call = (field === 'to_call_uuid' ? second : frame.data?.call_uuid) ?? ''
  const fact = facts.get(call)
  const reached = (of: CallFacts | undefined, what: string) =>
    (of?.reached.get(what) ?? Number.POSITIVE_INFINITY) <= startedAt + reply.at + clockSlackMs
  switch (code) {
    case 'UNKNOWN_EVENT':
      return frame.event === settle ? undefined : 'there is such an event'
    // What could not be done right now.
    case 'SERVICE_UNAVAILABLE':
    case 'RATE_LIMITED':
    case 'RELAY_BUFFER_FULL':
      return undefined
    case 'CALL_GLARE': {
      const waiting = facts.get(named ?? '')
      const isToPeer = decides === true || waiting?.row.caller === frame.data?.callee_user_id
      return isToPeer && waiting?.row.callee === session.user ? undefined : `${named} is not a call that waits`
    }
    case 'CALL_NOT_FOUND':
      // A member who only rang in a call that another member answered is not kept with it [GROUP1].
      if (fact?.isOver === true && isRung(fact, session.user)) return undefined
      return (known.get(call) ?? Number.POSITIVE_INFINITY) < doneBefore(request, reply, states)
        ? 'the service had named it'
        : undefined
    case 'CALL_INVALID_STATE':
      // The second call may have ended a moment ago [XFER1].
      if (field === 'to_call_uuid' && status === undefined && fact?.isOver === true) return undefined
      if (frame.event === 'call.accept' && fact !== undefined) {
        const [from, until] = [startedAt + firstAt, startedAt + reply.at]
        if (isInTurn(fact, session.user, from, until)) return 'it had its turn all the time'
      }
      return status !== undefined && reached(fact, status) ? undefined : `it never was ${status}`
    case 'CALL_ALREADY_ANSWERED':
      return fact !== undefined && isRung(fact, session.user) ? undefined : 'nobody else could answer'
    case 'CALL_NOT_PARTICIPANT':
      // It takes no place: a session that came after the one that has it asks in vain [XFER1].
      if (frame.event === 'call.transfer') return undefined
      // Its turn was over, and it answered in a later one [GROUP1].
      if (fact !== undefined && isRung(fact, session.user) && !reached(fact, 'accepted')) return undefined
      return fact !== undefined && sideOf(fact, session.user) !== undefined ? 'the place is its own' : undefined
    // What the backend refused leaves a record, if it is no transfer [HOOK5, XFER1].
    case 'CALL_REFUSED': {
      const { status: is, end_reason: why } = fact?.row ?? {}
      const isSo = frame.event === 'call.transfer' || (is === 'rejected' && why === reply.frame.error?.reason)
      return decides === true && isSo ? undefined : `it is ${is}, ${why}`
    }
    case 'CALL_TO_SELF':
      // Whom the backend has called instead may be in the call [HOOK5].
      if (frame.event === 'call.transfer' && decides === true) return undefined
      return isToSelf(fact, frame.data?.to_user_id, facts.get(second ?? ''), session.user)
        ? undefined
        : 'it was about somebody else'
    case 'NOT_SUPPORTED_BY_PEER': {
      return fact !== undefined && apart.has(peerOf(fact, session.user))
        ? undefined
        : 'its client said that it understands it'
    }
    default:
      return 'nothing of the kind was asked for'
  }
}

/** Somebody would be transferred to themselves: the target, or the other side of a second call, is in the first one. */
function isToSelf(
  first: CallFacts | undefined,
  target: unknown,
  second: CallFacts | undefined,
  asker: string,
): boolean {
  if (first === undefined) return false
  const to = second === undefined ? String(target) : peerOf(second, asker)
  return sideOf(first, to) !== undefined
}
