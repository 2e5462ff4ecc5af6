import { expect, test } from 'bun:test'
import type { HistoryQuery } from '../ports/call-store.ts'
import { createHistory, cursorAfter, readCursor, readLimit } from './history.ts'

const uuid = '0b6f9f0c-3c1e-4a53-9d43-6f0f0a7a5a11'

test('[HIST1] limit: unreadable or under 1 means 30, too large 100', () => {
  for (const text of [
    undefined,
    '',
    ' ',
    'abc',
    'NaN',
    'Infinity',
    '1e3',
    '0x10',
    '5;6',
    'null',
    '--5',
    '[]',
    '0',
    '-1',
    '-99999',
    '0.5',
  ]) {
    expect(readLimit(text)).toBe(30)
  }
  for (const text of ['1', '1.9']) expect(readLimit(text)).toBe(1)
  for (const text of ['100', '101', '99999999999999999999']) expect(readLimit(text)).toBe(100)
  expect(readLimit('42')).toBe(42)
  expect(readLimit(' 42 ')).toBe(42)
  expect(readLimit('42.9')).toBe(42)
})

test('[HIST2] a cursor that was not touched reads back; any other means the first page', () => {
  const position = { startedAt: 1_700_000_000_000, callUuid: uuid }
  const cursor = cursorAfter(position)
  expect(cursor).toMatch(/^[\w-]+$/)
  expect(readCursor(cursor)).toEqual(position)
  for (const text of [undefined, '', 'x', cursor.slice(1), `${cursor}${cursor}`, '%%%', 'é', 'A'.repeat(100_000)]) {
    expect(readCursor(text)).toBeUndefined()
  }
  for (const plain of [`1.${uuid}x`, `-1.${uuid}`, `1e3.${uuid}`, `1.${uuid.slice(1)}`, `1.${uuid}'; --`]) {
    expect(readCursor(Buffer.from(plain).toString('base64url'))).toBeUndefined()
  }
})

test('[HIST1] the store is asked for the bounded page of this participant alone', async () => {
  const asked: HistoryQuery[] = []
  const history = createHistory({
    calls: {
      history(query) {
        asked.push(query)
        return { calls: [], more: true }
      },
    },
  })
  const participant = { product: 'p', role: 'r', userId: 'u' }
  const cursor = cursorAfter({ startedAt: 5, callUuid: uuid })
  expect(await history.page(participant, { limit: '1000', cursor })).toEqual({ data: [], next_cursor: null })
  await history.page(participant, {})
  expect(asked).toEqual([
    { participant, limit: 100, after: { startedAt: 5, callUuid: uuid } },
    { participant, limit: 30, after: undefined },
  ])
})
