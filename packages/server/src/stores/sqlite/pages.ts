import { macrotask } from '../../ports/macrotask.ts'
import { sqlFailure } from './connection.ts'

/** Rows of one page: they are read and understood within a millisecond or two. */
export const rowsOfPage = 200

/**
 * Reads a list that may be long, page by page. Sockets have their turn between two pages. Rejects with a `StoreError` if a page
 * cannot be read.
 *
 *   const rows = await inPages(0, (after) => page.all(after, rowsOfPage), ({ id }) => id)
 */
export async function inPages<Row, Place>(
  first: Place,
  pageAfter: (place: Place) => readonly Row[],
  placeOf: (row: Row) => Place,
): Promise<Row[]> {
  const rows: Row[] = []
  for (let place = first; ; ) {
    const page = readPage(pageAfter, place)
    rows.push(...page)
    const last = page.at(-1)
    if (last === undefined || page.length < rowsOfPage) return rows
    place = placeOf(last)
    await macrotask()
  }
}

function readPage<Row, Place>(pageAfter: (place: Place) => readonly Row[], place: Place): readonly Row[] {
  try {
    return pageAfter(place)
  } catch (error) {
    throw sqlFailure(error)
  }
}
