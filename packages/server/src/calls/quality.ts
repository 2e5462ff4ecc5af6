/**
 * Media quality as the two sides of a call report it [STAT1]: of each the least, the mean and the greatest, kept with the
 * call's timeline. And from there what was seen of its media: quality, and holds [HOLD1].
 *
 *   const quality = createQuality({ recorder, holds, timeline, load, now })
 *   await quality.report(session, { call_uuid, stats })      → the call's status, or an error
 *   await quality.of(call)                                   → { quality: { caller, callee } | null, heldOf }
 */
import type { CallHeld, CallQuality } from '@ringwire/protocol/backend'
import { type ErrorBody, errorBody } from '@ringwire/protocol/errors'
import type { CallStats } from '@ringwire/protocol/events/call'
import { type Call, type CallRef, callKey, isLive, placeOf, type Side, sideOf } from '../call/call.ts'
import { type AnsweredSpan, holdsOf } from '../call/holds.ts'
import { addReport, qualityOf, type SideReports } from '../call/quality.ts'
import type { TimelineStore } from '../ports/timeline.ts'
import type { Recorder } from '../timeline/recorder.ts'
import type { Holds } from './holds.ts'
import type { ClientSession } from './request.ts'

export interface QualityOptions {
  readonly recorder: Pick<Recorder, 'replace' | 'flush'>
  readonly holds: Pick<Holds, 'hasWritten'>
  readonly timeline: Pick<TimelineStore, 'of'>
  /** A call as it is known here, or stored. */
  readonly load: (ref: CallRef) => Promise<Call | undefined>
  /** The clock that calls go by. */
  readonly now: () => number
}

export interface Quality {
  report(session: Pick<ClientSession, 'participant' | 'sessionId' | 'deviceId'>, data: CallStats): Promise<Reported>
  /** The reports so far, to any process, and the sides that had the call on hold. */
  of(ref: CallRef): Promise<SeenMedia>
}

export interface SeenMedia {
  /** Null where nothing was reported. */
  readonly quality: CallQuality | null
  /** For how long each side had the call on hold in this time. */
  heldOf(span: AnsweredSpan): CallHeld
}

export type Reported = Call['status'] | ErrorBody

/** A client reports every 30 s; one that is a little early is not refused. In ms. */
export const leastPauseMs = 25_000
/** A call that is over is reported of once more within this time, in ms. */
const lastReportMs = 60_000
const mostCalls = 50_000
/** A side that has not reported for this time begins anew, in ms. */
const idleMs = 300_000

interface Reporting {
  id: string | undefined
  reports: SideReports | undefined
  at: number
  /** The call was over when it reported last. */
  isDone: boolean
}

export function createQuality({ recorder, holds, timeline, load, now }: QualityOptions): Quality {
  const reporting = new Map<string, Reporting>()
  let sweptAt = 0

  function sweep(at: number): void {
    if (at - sweptAt < idleMs) return
    sweptAt = at
    for (const [key, side] of reporting) if (at - side.at >= idleMs) reporting.delete(key)
  }

  function reportingOf(call: Call, side: Side): Reporting | undefined {
    const key = side + callKey(call)
    const known = reporting.get(key)
    if (known !== undefined || reporting.size >= mostCalls) return known
    const begun = { id: undefined, reports: undefined, at: Number.NEGATIVE_INFINITY, isDone: false }
    reporting.set(key, begun)
    return begun
  }

  return {
    async report({ participant, sessionId, deviceId }, { call_uuid, stats }) {
      const call = await load({ product: participant.product, callUuid: call_uuid.toLowerCase() })
      const side = call === undefined ? undefined : sideOf(call, participant)
      if (call === undefined || side === undefined) return errorBody('CALL_NOT_FOUND')
      const at = now()
      const isTold = isLive(call) ? call.status !== 'ringing' : at - call.endedAt <= lastReportMs
      if (!isTold || placeOf(call, 'callee') === null) return errorBody('CALL_INVALID_STATE', { status: call.status })
      if (placeOf(call, side)?.sessionId !== sessionId) return errorBody('CALL_NOT_PARTICIPANT')
      sweep(at)
      const its = reportingOf(call, side)
      const isLast = !isLive(call)
      if (its === undefined || (isLast ? its.isDone : at - its.at < leastPauseMs)) {
        const wait = its === undefined || isLast ? leastPauseMs : its.at + leastPauseMs - at
        return errorBody('RATE_LIMITED', { limit: 'messages', retry_after_ms: wait })
      }
      its.at = at
      its.isDone = isLast
      its.reports = addReport(its.reports, stats)
      const entry = {
        what: 'quality',
        side,
        sessionId,
        deviceId: deviceId ?? undefined,
        detail: { ...its.reports },
      } as const
      its.id = recorder.replace(its.id, call, entry)
      return call.status
    },
    async of(ref) {
      // The reports of this node are stored first: then there is one place to read.
      const isOwn = (['caller', 'callee'] as const).some((side) => reporting.get(side + callKey(ref))?.id !== undefined)
      if (isOwn || holds.hasWritten(ref)) await recorder.flush()
      const rows = await timeline.of(ref)
      return { quality: qualityOf(rows), heldOf: (span) => holdsOf(rows, span) }
    },
  }
}
