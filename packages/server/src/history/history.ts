/**
 * The call history of a participant [HIST1, HIST2].
 *
 *   const history = createHistory({ calls })
 *   history.page(participant, { limit, cursor }) → { data, next_cursor }; rejects where the store fails
 *
 * `limit` and `cursor` are the texts of the query, or undefined. Neither can be wrong: an unreadable `limit` means the
 * default, and an unreadable `cursor` means the first page. A cursor holds a position and no right: a changed one still
 * only opens the reader's own calls.
 */
import { type CallRecord, historyLimit } from '@ringwire/protocol/rest'
import type { Participant } from '../call/call.ts'
import { callRecord } from '../call/record.ts'
import type { CallStore, HistoryQuery } from '../ports/call-store.ts'
import { andThen, type MaybePromise } from '../ports/maybe.ts'

export interface HistoryAnswer {
  readonly data: CallRecord[]
  readonly next_cursor: string | null
}

export interface History {
  page(
    participant: Participant,
    query: { limit?: string | undefined; cursor?: string | undefined },
  ): MaybePromise<HistoryAnswer>
}

export function createHistory(options: { calls: Pick<CallStore, 'history'> }): History {
  const { calls } = options
  return {
    page(participant, query) {
      const limit = readLimit(query.limit)
      const after = readCursor(query.cursor)
      return andThen(calls.history({ participant, limit, after }), (page) => {
        const last = page.calls.at(-1)
        return {
          data: page.calls.map((call) => callRecord(call, participant)),
          next_cursor: page.more && last !== undefined ? cursorAfter(last) : null,
        }
      })
    },
  }
}

/** Unreadable or under 1: the default; too large: 100; a fraction is cut off [HIST1]. */
export function readLimit(text: string | undefined): number {
  const isReadable = text !== undefined && /^\s*\+?\d+(?:\.\d+)?\s*$/.test(text)
  const limit = isReadable ? Math.trunc(Number(text)) : 0
  return limit < historyLimit.min ? historyLimit.default : Math.min(limit, historyLimit.max)
}

export function cursorAfter(call: { startedAt: number; callUuid: string }): string {
  return Buffer.from(`${call.startedAt}.${call.callUuid}`).toString('base64url')
}

export function readCursor(text: string | undefined): HistoryQuery['after'] {
  if (text === undefined || text.length > 128) return undefined
  const plain = Buffer.from(text, 'base64url').toString('latin1')
  const [, at, callUuid] = /^(\d{1,15})\.([0-9a-f-]{36})$/.exec(plain) ?? []
  return at === undefined || callUuid === undefined ? undefined : { startedAt: Number(at), callUuid }
}
