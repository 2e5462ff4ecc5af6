/** Calls for application backends: /v1/server/calls and what is below it [SRV2]. */
import {
  type CallPage,
  type CallShown,
  EndRequest,
  type TimelineShown,
  type TransferBegun,
  TransferRequest,
} from '@ringwire/protocol/backend'
import type { ErrorBody, ErrorCode } from '@ringwire/protocol/errors'
import { createValidator } from '@ringwire/protocol/validate'
import type { CallRef } from '../call/call.ts'
import type { TransferForBackend } from '../calls/backend-transfers.ts'
import type { Quality } from '../calls/quality.ts'
import { failure, json, shortened } from '../http/replies.ts'
import { createProductEndpoint, type ProductEndpointDeps } from '../products/endpoint.ts'
import type { Timelines } from '../timeline/timelines.ts'
import type { SeenCalls } from './seen-calls.ts'

export interface ServerCallsDeps extends ProductEndpointDeps {
  readonly seenCalls: SeenCalls
  readonly timelines: Timelines
  readonly quality: Pick<Quality, 'of'>
  /** The clock that calls go by. */
  readonly now: () => number
  /** Ends a live call for its backend; of one that is over, or never was, nothing changes. */
  readonly endCall: (ref: CallRef, note: string | null) => Promise<unknown>
  readonly transferCall: TransferForBackend
}

export function createServerCallsEndpoints(deps: ServerCallsDeps) {
  const { seenCalls, timelines, quality, now, endCall } = deps
  const validateEnd = createValidator(EndRequest)
  const shown = async (product: string, callUuid: string) => {
    const call = await seenCalls.one(product, callUuid)
    if (call === undefined) return noSuchCall(product, callUuid)
    const media = await quality.of({ product, callUuid: call.call_uuid })
    const acceptedAt = call.accepted_at === null ? null : Date.parse(call.accepted_at)
    const until = call.ended_at === null ? now() : Date.parse(call.ended_at)
    const shownCall = { ...call, quality: media.quality, held: media.heldOf({ acceptedAt, until }) }
    return json(200, { success: true, call: shownCall } satisfies CallShown)
  }
  return {
    serverCalls: createProductEndpoint(deps, async ({ product, query }) => {
      const text = (name: string) => query.get(name) ?? undefined
      const page = await seenCalls.page(product, {
        status: text('status'),
        userId: text('user_id'),
        role: text('role'),
        since: text('since'),
        limit: text('limit'),
        cursor: text('cursor'),
        refused: text('refused'),
      })
      if (!page.ok) return failure('INVALID_QUERY', { message: `${page.field} ${page.message}.` })
      const { data, refused, next_cursor } = page
      return json(200, {
        success: true,
        data: [...data],
        ...(refused !== undefined && { refused: [...refused] }),
        next_cursor,
      } satisfies CallPage)
    }),
    serverCall: createProductEndpoint(deps, ({ product, params }) => shown(product, params.call_uuid ?? '')),
    serverTimeline: createProductEndpoint(deps, async ({ product, params }) => {
      const timeline = await timelines.of(product, params.call_uuid ?? '')
      return timeline === undefined
        ? noSuchCall(product, params.call_uuid ?? '')
        : json(200, { success: true, ...timeline } satisfies TimelineShown)
    }),
    serverEndCall: createProductEndpoint(deps, async ({ product, params, body }) => {
      const checked = validateEnd(body)
      if (!checked.ok) return failure('INVALID_REQUEST_BODY', { message: `${checked.field} ${checked.message}.` })
      const callUuid = (params.call_uuid ?? '').toLowerCase()
      if ((await seenCalls.one(product, callUuid)) === undefined) return noSuchCall(product, callUuid)
      await endCall({ product, callUuid }, checked.value.reason || null)
      return shown(product, callUuid)
    }),
    serverTransferCall: createServerTransfer(deps),
  }
}

function createServerTransfer(deps: ServerCallsDeps) {
  const { seenCalls, transferCall } = deps
  const validate = createValidator(TransferRequest)
  return createProductEndpoint(deps, async ({ product, params, body }) => {
    const checked = validate(body)
    if (!checked.ok) return failure('INVALID_REQUEST_BODY', { message: `${checked.field} ${checked.message}.` })
    const { by, to, metadata = null } = checked.value
    const callUuid = (params.call_uuid ?? '').toLowerCase()
    if ((await seenCalls.one(product, callUuid)) === undefined) return noSuchCall(product, callUuid)
    const named = { callee: { role: to.role, userId: to.user_id ?? '' }, group: to.group ?? undefined }
    const outcome = await transferCall({ product, callUuid }, { by, to: named, metadata })
    if (!outcome.ok) return notTransferred(outcome.error, product, callUuid)
    await outcome.handedOn
    return json(200, { success: true, ...outcome.value } satisfies TransferBegun)
  })
}

function notTransferred({ code, message, status }: ErrorBody, product: string, callUuid: string): Response {
  if (code === 'CALL_NOT_FOUND') return noSuchCall(product, callUuid)
  if (!isOfTransfer(code)) throw new Error(`a transfer was refused with ${code}`)
  const isAnswered = status === 'accepted' || status === 'connected'
  const state = isAnswered
    ? 'The call is being transferred already, or its other side is in a call with the target.'
    : `The call is ${status}: only an answered call can be transferred.`
  return failure(code, { message: code === 'CALL_INVALID_STATE' ? state : message })
}

const ofTransfer = [
  'GROUP_NOT_FOUND',
  'CALL_TO_SELF',
  'CALL_INVALID_STATE',
  'NOT_SUPPORTED_BY_PEER',
  'CALLEE_BUSY',
] as const
function isOfTransfer(code: ErrorCode): code is (typeof ofTransfer)[number] {
  return (ofTransfer as readonly ErrorCode[]).includes(code)
}

const noSuchCall = (product: string, callUuid: string) =>
  failure('NOT_FOUND', {
    message: `The product ${product} has no call ${shortened(callUuid)}. It never was, is of another product, or is not kept any more.`,
  })
