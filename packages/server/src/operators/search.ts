/** Calls by what an operator knows of them: a person, an id, a context. */
import type { CallView } from '@ringwire/protocol/backend'
import { uuidPattern } from '@ringwire/protocol/text'
import type { ListTexts, SeenCalls, WrongFilter } from '../history/seen-calls.ts'
import { macrotask } from '../ports/macrotask.ts'

export interface FoundCalls {
  readonly ok: true
  readonly data: readonly CallView[]
  readonly next_cursor: string | null
  /** How many calls were looked at for this page. */
  readonly searched: number
}

/** The number of calls that are looked at for one page: no index has the texts. */
const mostSearched = 2_000
const pageSize = 100
const mostFound = 50

const uuid = new RegExp(uuidPattern, 'i')

/** `filter` as for a list of calls; its limit does not count. */
export async function searchCalls(
  seenCalls: SeenCalls,
  product: string,
  text: string,
  filter: ListTexts,
): Promise<FoundCalls | WrongFilter> {
  const wanted = text.trim().toLowerCase()
  if (uuid.test(wanted)) {
    const call = await seenCalls.one(product, wanted)
    return { ok: true, data: call === undefined ? [] : [call], next_cursor: null, searched: 1 }
  }
  const data: CallView[] = []
  let searched = 0
  let { cursor } = filter
  for (;;) {
    const page = await seenCalls.page(product, { ...filter, cursor, limit: String(pageSize) })
    if (!page.ok) return page
    searched += page.data.length
    data.push(...page.data.filter((call) => isMeant(call, wanted)))
    cursor = page.next_cursor ?? undefined
    if (cursor === undefined || data.length >= mostFound || searched >= mostSearched)
      return { ok: true, data, next_cursor: cursor ?? null, searched }
    await macrotask()
  }
}

function isMeant(
  { call_uuid, caller, callee, context_type, context_id, call_type }: CallView,
  wanted: string,
): boolean {
  const people = [caller, callee].flatMap(({ role, user_id, display_name }) => [`${role}/${user_id}`, display_name])
  const texts = [call_uuid, ...people, callee.group, `${context_type}/${context_id}`, call_type]
  return texts.some((each) => each?.toLowerCase().includes(wanted))
}
