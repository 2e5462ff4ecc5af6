/**
 * What happens to a call, as the spans of its trace [OTEL1]. Each node tells what it saw itself. All of these belong to
 * the span of the whole call, whose id every node derives: the node that ends the call sends that span.
 */
import { type Call, type CallRef, isLive, type OverCall, type Party, type Side, wasJoined } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import type { Asked as InviteAsked } from '../invite-hook/invite-hook.ts'
import type { CalleeDevices } from '../push/asleep.ts'
import type { Sent, SentResult } from '../push/sender.ts'
import type { Attempt, DeliveryResult } from '../webhooks/attempts.ts'
import { type CallTrace, spanIdOf, type TraceIds, traceparentOf } from './ids.ts'
import type { Attributes, Span, TracedSpan } from './otlp.ts'

export interface CallTraces {
  /** This process committed a step. */
  committed(step: Step): void
  /** The step has reached everybody. */
  told(step: Step): void
  /** The first message of its kind went from one side to the other through this process. */
  relayed(ref: CallRef, side: Side, event: string): void
  noDevice(call: Call, found: CalleeDevices): void
  pushed(result: SentResult, sent: Sent): void
  /** The `traceparent` of a request about a call: its receiver goes on with the trace. */
  traceparent(ref: CallRef): string
  hooked(result: DeliveryResult, attempt: Attempt): void
  inviteAsked(asked: InviteAsked): void
  /** Gives up the parts that have waited too long; at the end, all of them. */
  sweep(isEnd?: boolean): void
}

export interface CallTracesOptions {
  readonly ids: TraceIds
  readonly add: (span: TracedSpan) => void
  /** The clock that calls go by, which nodes share. */
  readonly now: () => number
  /** The call as this node has heard of it last. */
  readonly known: (ref: CallRef) => Call | undefined
  /** Whether participants are named; else a hash stands for each, the same as in the log. */
  readonly participants: boolean
}

/** A step that has not reached everybody by then is a span without the rest: other nodes may send it. In ms. */
const toldMs = 5_000
/** The most steps that wait for their delivery; later ones are spans at once. */
const mostUntold = 10_000

export function createCallTraces(options: CallTracesOptions): CallTraces {
  const { ids, add, now, known } = options
  /** A part of a call: it belongs to the span of the whole. */
  function tell(trace: CallTrace, span: Span, spanId = ids.newSpanId()): void {
    if (trace.isSampled) add({ trace, spanId, span })
  }
  const untold = createUntold(now, (step, trace, isTold) => tell(trace, partOfStep(step, now(), isTold)))

  /** A request to another service. It ends now and took `afterMs`. */
  function tellRequest(ref: CallRef, afterMs: number, span: Omit<Span, 'from' | 'to'>, spanId?: string): void {
    const to = now()
    tell(ids.of(ref), { isClient: true, from: to - afterMs, to, ...span }, spanId)
  }

  return {
    committed(step) {
      const { call } = step
      const trace = ids.of(call)
      if (!trace.isSampled) return
      untold.add(step, trace)
      const phase = phaseOf(step)
      if (phase !== undefined) tell(trace, phase)
      if (!isLive(call)) tell(trace, rootOf(call, options.participants), trace.rootId)
    },
    told: untold.told,
    relayed(ref, side, event) {
      const trace = ids.of(ref)
      // A later step of a call is a change of its media.
      if (!trace.isSampled || known(ref)?.status === 'connected') return
      const at = now()
      tell(trace, { name: event, from: at, to: at, attributes: { 'ringwire.side': side } })
    },
    noDevice(call, { connected, registered }) {
      const at = now()
      const attributes = { 'ringwire.connected': connected, 'ringwire.registered': registered }
      tell(ids.of(call), { name: 'no_device', from: at, to: at, attributes })
    },
    pushed(result, { device: { participant, address }, message: { type, callUuid }, afterMs }) {
      const { product } = participant
      const attributes = { 'ringwire.platform': address.platform, 'ringwire.result': result }
      tellRequest({ product, callUuid }, afterMs, { name: `push ${type}`, attributes, isFailed: result !== 'accepted' })
    },
    traceparent: (ref) => traceparentOf(ids.of(ref), ids.newSpanId()),
    hooked(result, { delivery: { subject, type, attempts }, endpoint, status, afterMs, traceparent }) {
      if (traceparent === undefined) return
      const attributes = {
        'ringwire.endpoint': endpoint.id,
        'ringwire.result': result,
        'ringwire.attempt': attempts + 1,
        ...ofHttp(status),
      }
      const span = { name: `webhook ${type}`, attributes, isFailed: result !== 'delivered' }
      tellRequest({ product: endpoint.product, callUuid: subject }, afterMs, span, spanIdOf(traceparent))
    },
    inviteAsked({ question, result, afterMs, traceparent }) {
      if (traceparent === undefined) return
      const span = { name: 'invite_hook', attributes: { 'ringwire.result': result }, isFailed: result === 'failed' }
      tellRequest(question, afterMs, span, spanIdOf(traceparent))
    },
    sweep: untold.sweep,
  }
}

/** Steps that were committed here, until they have reached everybody. */
function createUntold(now: () => number, tell: (step: Step, trace: CallTrace, isTold: boolean) => void) {
  const steps = new Map<Step, CallTrace>()
  return {
    add(step: Step, trace: CallTrace): void {
      if (steps.size < mostUntold) steps.set(step, trace)
      else tell(step, trace, false)
    },
    told(step: Step): void {
      const trace = steps.get(step)
      if (trace === undefined) return
      steps.delete(step)
      tell(step, trace, true)
    },
    sweep(isEnd = false): void {
      const before = isEnd ? Number.POSITIVE_INFINITY : now() - toldMs
      for (const [step, trace] of steps) {
        if (step.event.at > before) return
        steps.delete(step)
        tell(step, trace, false)
      }
    },
  }
}

/** From the decision until the step reached everybody. */
function partOfStep({ call, event }: Step, to: number, isTold: boolean): Span {
  const { role } = event.by ?? {}
  const attributes = { 'ringwire.version': call.version, 'ringwire.by.role': role, 'ringwire.told': isTold }
  return { name: event.type, from: event.at, to, attributes }
}

/** The time of a call that ends with this step: it rang, its media was set up, people talked. */
function phaseOf({ call, event: { type } }: Step): Span | undefined {
  if (call.status === 'accepted' && type === 'accepted')
    return wasJoined(call) ? undefined : phase('ring', call.startedAt, call.acceptedAt)
  if (call.status === 'connected' && type === 'connected')
    return phase('connect', call.acceptedAt, call.connectedAt ?? call.acceptedAt)
  if (isLive(call) || type === 'busy' || call.version === 1) return undefined
  const { startedAt, acceptedAt, connectedAt, endedAt } = call
  if (acceptedAt === null) return phase('ring', startedAt, endedAt)
  return connectedAt === null ? phase('connect', acceptedAt, endedAt) : phase('talk', connectedAt, endedAt)
}

const phase = (name: string, from: number, to: number): Span => ({ name, from, to, attributes: {} })

function rootOf(call: OverCall, participants: boolean): Span {
  const { product, caller, callee } = call
  const name = ({ role, userId }: Party) => (participants ? userId : hashOf(product, role, userId))
  const attributes: Attributes = {
    'ringwire.product': product,
    'ringwire.call_uuid': call.callUuid,
    'ringwire.call_type': call.callType,
    'ringwire.status': call.status,
    'ringwire.end_reason': call.endReason,
    'ringwire.caller.role': caller.role,
    'ringwire.caller': name(caller),
    'ringwire.callee.role': callee.role,
    'ringwire.callee': name(callee),
  }
  return { name: 'call', from: call.startedAt, to: call.endedAt, attributes }
}

/** The same as in the log [LOG2]: somebody who knows a participant can look for it. */
function hashOf(product: string, role: string, userId: string): string {
  return Bun.SHA256.hash(`${product}\0${role}\0${userId}`, 'hex').slice(0, 16)
}

/** Semantic conventions of OpenTelemetry; the URL of an endpoint may hold a secret. */
function ofHttp(status: number | null): Attributes {
  return { 'http.request.method': 'POST', 'http.response.status_code': status }
}
