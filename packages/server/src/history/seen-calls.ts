/**
 * The calls of a product as its backend reads them [SRV2].
 *
 *   const seen = createSeenCalls({ calls, timeline })
 *   seen.one(product, callUuid)  → a view, or undefined; rejects where the store fails
 *   seen.page(product, query)    → { ok: true, data, next_cursor } | { ok: false, field, message }
 *
 * `query` holds the texts of the request. `limit` and `cursor` are read as those of the history are, and cannot be wrong
 * [HIST1]; an unreadable filter is refused: without it more calls would come than the request wanted.
 */
import type { CallView, RefusedInvite } from '@ringwire/protocol/backend'
import { callStatuses } from '@ringwire/protocol/rest'
import { fitsBytes, isStorable, maxIdBytes, uuidPattern } from '@ringwire/protocol/text'
import type { Call, Participant } from '../call/call.ts'
import { callView } from '../call/view.ts'
import type { CallStore, ListQuery, SeenCall } from '../ports/call-store.ts'
import { andThen, type MaybePromise } from '../ports/maybe.ts'
import type { TimelineStore } from '../ports/timeline.ts'
import { readQueryInstant } from '../time/instant.ts'
import { cursorAfter, readCursor, readLimit } from './history.ts'
import { pageWithRefused } from './refused-invites.ts'

export interface SeenCalls {
  one(product: string, callUuid: string): MaybePromise<CallView | undefined>
  page(product: string, query: ListTexts): MaybePromise<SeenPage | WrongFilter>
}

/** What the query says; undefined and blank: nothing. */
export interface ListTexts {
  readonly status?: string | undefined
  readonly userId?: string | undefined
  readonly role?: string | undefined
  readonly since?: string | undefined
  readonly limit?: string | undefined
  readonly cursor?: string | undefined
  /** `1`: with the invites of the participant that were refused [TRACE1]. */
  readonly refused?: string | undefined
}

export interface SeenPage {
  readonly ok: true
  readonly data: readonly CallView[]
  readonly refused?: readonly RefusedInvite[]
  readonly next_cursor: string | null
}

export interface WrongFilter {
  readonly ok: false
  readonly field: string
  readonly message: string
}

export interface SeenCallsDeps {
  readonly calls: Pick<CallStore, 'seen' | 'list'>
  readonly timeline: Pick<TimelineStore, 'refusedOf'>
  /** Writes what this process still holds of timelines. */
  readonly flush?: () => Promise<void>
}

export function createSeenCalls({ calls, timeline, flush }: SeenCallsDeps): SeenCalls {
  async function withRefused(query: ListQuery, texts: ListTexts): Promise<SeenPage | WrongFilter> {
    const { participant } = query
    if (texts.refused !== '1') return wrong('refused', 'must be 1')
    if (participant === undefined) return wrong('user_id', 'is required where refused is given')
    if (query.statuses !== undefined) return wrong('refused', 'cannot be combined with status')
    await flush?.()
    const page = await pageWithRefused({ calls, timeline }, { ...query, participant }, texts.cursor)
    return { ok: true, data: page.calls.map(viewOf), refused: page.refused, next_cursor: page.next }
  }

  return {
    one(product, callUuid) {
      if (!uuid.test(callUuid)) return undefined
      return andThen(calls.seen({ product, callUuid: callUuid.toLowerCase() }), (seen) => seen && viewOf(seen))
    },
    page(product, texts) {
      const query = readQuery(product, texts)
      if ('field' in query) return query
      if (given(texts.refused) !== undefined) return withRefused(query, texts)
      return andThen(calls.list(query), (page) => ({
        ok: true as const,
        data: page.calls.map(viewOf),
        next_cursor: page.next === undefined ? null : cursorAfter(page.next),
      }))
    },
  }
}

const uuid = new RegExp(uuidPattern)
const viewOf = ({ call, by }: SeenCall) => callView(call, by)
const wrong = (field: string, message: string): WrongFilter => ({ ok: false, field, message })

function readQuery(product: string, texts: ListTexts): ListQuery | WrongFilter {
  const participant = readParticipant(product, given(texts.userId), given(texts.role))
  if (participant !== undefined && 'field' in participant) return participant
  const statuses = readStatus(given(texts.status))
  if (statuses !== undefined && 'field' in statuses) return statuses
  const since = readSince(given(texts.since))
  if (since === undefined)
    return wrong('since', 'must be an ISO 8601 instant with an existing day and Z or ±hh:mm, as 2026-03-01T09:00:00Z')
  const [limit, after] = [readLimit(texts.limit), readCursor(texts.cursor)]
  return { product, participant, statuses, since, limit, after }
}

const given = (text: string | undefined) => (text === undefined || text.trim() === '' ? undefined : text)

/** A participant is a role and a user_id: one without the other names nobody [ID1]. */
function readParticipant(
  product: string,
  userId: string | undefined,
  role: string | undefined,
): Participant | WrongFilter | undefined {
  if (userId === undefined && role === undefined) return undefined
  if (userId === undefined) return wrong('user_id', 'is required where role is given')
  if (role === undefined) return wrong('role', 'is required where user_id is given')
  if (!isId(userId)) return wrong('user_id', `must be at most ${maxIdBytes} bytes of UTF-8, without NUL`)
  if (!isId(role)) return wrong('role', `must be at most ${maxIdBytes} bytes of UTF-8, without NUL`)
  return { product, role, userId }
}

/** Whether a text can be an identifier that somebody has [WS6]. */
export function isId(text: string): boolean {
  return text.trim() !== '' && fitsBytes(text, maxIdBytes) && isStorable(text)
}

function readStatus(text: string | undefined): readonly Call['status'][] | WrongFilter | undefined {
  if (text === undefined) return undefined
  if (text === 'live') return ['ringing', 'accepted', 'connected']
  const status = callStatuses.find((each) => each === text)
  return status === undefined ? wrong('status', `must be live or one of ${callStatuses.join(', ')}`) : [status]
}

/** In ms since the epoch; the beginning if nothing is given, undefined if the text is not an instant. */
function readSince(text: string | undefined): number | undefined {
  const at = text === undefined ? 0 : readQueryInstant(text)
  return at === undefined ? undefined : Math.max(0, at)
}
