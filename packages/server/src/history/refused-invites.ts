/** Invites that were refused before there was a call, among the calls of the participant that sent them [TRACE1]. */
import type { RefusedInvite } from '@ringwire/protocol/backend'
import type { TimelineRow } from '../call/observed.ts'
import { timelineOf } from '../call/timeline.ts'
import type { CallStore, ListQuery, Position, SeenCall } from '../ports/call-store.ts'
import type { RefusedAt, TimelineStore } from '../ports/timeline.ts'
import { cursorAfter, readCursor } from './history.ts'

export interface RefusedInvitesDeps {
  readonly calls: Pick<CallStore, 'list'>
  readonly timeline: Pick<TimelineStore, 'refusedOf'>
}

export interface MixedPage {
  readonly calls: readonly SeenCall[]
  readonly refused: readonly RefusedInvite[]
  readonly next: string | null
}

type Item = { readonly at: number; readonly call: SeenCall } | { readonly at: number; readonly row: TimelineRow }

/**
 * A page of both, the latest first, `limit` of both together. Of the same millisecond calls come first. A page of calls may
 * end early because many were looked at: then only the refused invites of the time until there are in it.
 */
export async function pageWithRefused(
  { calls, timeline }: RefusedInvitesDeps,
  query: ListQuery & { readonly participant: NonNullable<ListQuery['participant']> },
  cursor: string | undefined,
): Promise<MixedPage> {
  const { limit, since } = query
  const from = readPlace(cursor)
  const page = await calls.list({ ...query, after: from.calls })
  const read = await timeline.refusedOf(query.participant, limit, from.refused)
  const rows = read.filter(({ at }) => at >= since && (page.next === undefined || at > page.next.startedAt))
  const items: Item[] = [
    ...page.calls.map((call) => ({ at: call.call.startedAt, call })),
    ...rows.map((row) => ({ at: row.at, row })),
  ]
  const taken = items.sort((a, b) => b.at - a.at).slice(0, limit)
  const isCut = taken.length < items.length
  const last = taken.at(-1)
  const hasMoreRows = read.length === limit && rows.length === limit
  const next =
    page.next !== undefined && !isCut ? cursorAfter(page.next) : last && (isCut || hasMoreRows) ? cursorOf(last) : null
  return {
    calls: taken.flatMap((item) => ('call' in item ? [item.call] : [])),
    refused: taken.flatMap((item) => ('row' in item ? shownRefusals(item.row) : [])),
    next,
  }
}

/** As backends see it. */
export function shownRefusals(row: TimelineRow): RefusedInvite[] {
  return timelineOf(undefined, [], [row]).map((entry) => ({ call_uuid: row.callUuid, entry }))
}

/** Before every other uuid: the calls of its millisecond are all before a refused invite of the same one. */
const firstUuid = '00000000-0000-0000-0000-000000000000'

function cursorOf(item: Item): string {
  if ('call' in item) return cursorAfter(item.call.call)
  return Buffer.from(`${item.row.at}/${item.row.id}`).toString('base64url')
}

function readPlace(cursor: string | undefined): { calls?: Position; refused?: RefusedAt } {
  const after = readCursor(cursor)
  if (after !== undefined) return { calls: after, refused: { at: after.startedAt + 1, id: '' } }
  if (cursor === undefined || cursor.length > 256) return {}
  const [, time, id = ''] = /^(\d{1,15})\/(.+)$/.exec(Buffer.from(cursor, 'base64url').toString('utf8')) ?? []
  if (time === undefined || id.includes('\0')) return {}
  return { calls: { startedAt: Number(time), callUuid: firstUuid }, refused: { at: Number(time), id } }
}
