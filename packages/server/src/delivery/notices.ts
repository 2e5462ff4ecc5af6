import { overStatuses } from '@ringwire/protocol/end-reasons'
import type { CallAccepted } from '@ringwire/protocol/events/call'
import {
  type Call,
  isLive,
  type Participant,
  participantOf,
  placeOf,
  type RingingCall,
  ringsAt,
  type Side,
  sameParticipant,
} from '../call/call.ts'
import {
  acceptedData,
  elsewhereData,
  type Notice,
  type PeerNews,
  type PlaceMove,
  rungTo,
  type Step,
} from '../call/effects.ts'
import { allDone, andThen, type MaybePromise } from '../ports/maybe.ts'
import type { Push } from '../ports/push.ts'
import type { SessionPlaces, SessionPushes, SessionStep } from '../ports/sessions.ts'

export interface NoticesOptions {
  readonly sessions: SessionPushes & Pick<SessionPlaces, 'apply'>
  readonly now: () => number
  /** An instant of a call as if the clock had never jumped: sessions go by that. */
  readonly unjumped: (call: Call, at: number) => number
  /** A call began to ring at its callee, or at the members of a group: `people` of them had a session [TRACE1, GROUP1]. */
  readonly onRang?: ((call: RingingCall, people: number) => void) | undefined
}

/** The notices of a step become pushes, and go to the sessions that they are for. */
export interface Notices {
  /** To every session of the callee where the call rings. */
  tellRung(key: string, step: Step): MaybePromise<unknown>[]
  /**
   * When a client returns and another device has taken its place, the service tells it so, or how the call ended there
   * [PLACE2], and tells a session whose place was taken so at once [TAKE1]. The push waits in the log of the session that left, as what it missed of any other call does [RES1, WS4].
   */
  tellLeft(key: string, step: Step, move: PlaceMove): MaybePromise<unknown>
}

/** Milliseconds after the end of a call in which a callee that could not be rung in time hears of ring and end [RING1]. */
const lateRingMs = 10_000

export function createNotices({ sessions, now, unjumped, onRang }: NoticesOptions): Notices {
  /** A late delivery must not ring a call that was already answered, rings at somebody else by now, or ended long ago. */
  function isWorthRinging(call: Call, callee: Participant): boolean {
    if (isLive(call)) return ringsAt(call, callee)
    return call.calleePlace === null && now() - call.endedAt < lateRingMs
  }

  function tellRung(key: string, call: Call, notice: Notice): MaybePromise<unknown> {
    const push = pushOf(key, call, notice)
    const callees = rungTo(call, notice.to).filter((callee) => push.kind !== 'ringing' || isWorthRinging(call, callee))
    const except = 'except' in notice.to ? notice.to.except : []
    // A session that came after the end found no such call.
    const until = isLive(call) ? undefined : unjumped(call, call.endedAt)
    if (push.kind === 'ringing')
      return ring(
        call,
        callees.map((callee) => sessions.appendLive(callee, push, until, call.startedAt)),
      )
    return allDone(callees.map((callee) => sessions.appendRung(callee, withDevice(push, call, callee), except)))
  }

  /** `told`: at how many sessions of each callee it rings. */
  function ring(call: Call, told: readonly MaybePromise<number>[]): MaybePromise<unknown> {
    // One that rings in turn has an event for each turn.
    if (onRang === undefined || call.status !== 'ringing' || call.group?.turns) return allDone(told)
    let people = 0
    const counted = told.map((each) =>
      andThen(each, (sessions) => {
        if (sessions > 0) people++
      }),
    )
    return andThen(allDone(counted), () => onRang(call, people))
  }

  return {
    tellRung: (key, { call, event }) =>
      event.notices.filter(({ to }) => to.place === 'rung').map((notice) => tellRung(key, call, notice)),
    tellLeft(key, step, move) {
      const { call, event } = step
      const { side, from, leftDevice } = move
      if (leftDevice === undefined) return
      // The call may be over by now, when an earlier step is handed on.
      const [ended] = isEnd(step) ? event.notices : []
      const push = pushOf(key, call, ended ?? leftNotice(step, move))
      const told: SessionStep = { call: key, pushes: [push] }
      return andThen(sessions.apply(from, told), (done) => {
        // Nothing waited in it, and it was forgotten. A session that came after the place was taken has read the call, so a
        // late push does no harm.
        if (done !== undefined) return
        const participant = participantOf(call, side)
        const identity = { sessionId: from, participant, deviceId: leftDevice, extended: false }
        return sessions.apply(from, { ...told, orOpen: { identity, at: unjumped(call, event.at) } })
      })
    },
  }
}

/** Whether the call is over by this step. */
export const isEnd = ({ event }: Step) => overStatuses.some((status) => status === event.type)

/** The notice for a session whose place another one has by now. */
export function leftNotice({ call, event }: Step, { side, taken }: PlaceMove): Notice {
  const data = elsewhereData(call, taken ? 'taken_elsewhere' : 'answered_elsewhere', event.by)
  return { to: { place: side }, event: 'call.cancelled', data }
}

/** The pushes for the session that has the place of a side. */
export function pushesTo(key: string, { call, event }: Step, side: Side): readonly Push[] {
  const noticed = event.notices.filter(({ to }) => to.place === side).map((notice) => pushOf(key, call, notice))
  // After the notices of the same version: a session counts them apart.
  return [...noticed, ...(event.peers ?? []).filter(({ to }) => to === side).map((news) => peerPush(key, call, news))]
}

function peerPush(key: string, call: Call, news: PeerNews): Push {
  const { event, data } = news
  const push: Push = { kind: 'peer', call: key, version: call.version, text: JSON.stringify({ event, data }) }
  return 'needs' in news ? { ...push, needs: news.needs } : push
}

function pushOf(key: string, call: Call, notice: Notice): Push {
  if (notice.event === 'call.accepted') return acceptedPush(key, call)
  const text = JSON.stringify({ event: notice.event, data: notice.data })
  const push: Push = { kind: kindOf(notice), call: key, version: call.version, text }
  return notice.needs === undefined ? push : { ...push, needs: notice.needs }
}

/** A `stop` to the sessions that were rung is about an answer. */
function withDevice(push: Push, call: Call, callee: Participant): Push {
  const isIts = push.kind === 'stop' && sameParticipant(callee, participantOf(call, 'callee'))
  const device = isIts ? placeOf(call, 'callee')?.deviceId : undefined
  return typeof device === 'string' ? { ...push, device } : push
}

/** With the callee's name, and who of a group it is. Sessions leave both out for base ones: see `baseText` [EXT5, GROUP1]. */
export function acceptedPush(key: string, call: Call): Push {
  const { displayName, userId } = call.callee
  const data: CallAccepted = {
    ...acceptedData(call),
    ...(displayName !== null && { display_name: displayName }),
    ...(call.group !== undefined && { callee_user_id: userId }),
  }
  return { kind: 'state', call: key, version: call.version, text: JSON.stringify({ event: 'call.accepted', data }) }
}

function kindOf(notice: Exclude<Notice, { event: 'call.accepted' }>): Push['kind'] {
  if (notice.event === 'call.ringing') return 'ringing'
  if (!('ended_at' in notice.data)) return 'notice'
  return notice.data.ended_at === null ? 'stop' : 'final'
}
