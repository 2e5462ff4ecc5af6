import { expect, test } from 'bun:test'
import { inPages, rowsOfPage } from './pages.ts'

test('a long list is read page by page, and sockets have their turn between two pages', async () => {
  const numbers = Array.from({ length: 3 * rowsOfPage + 1 }, (_, index) => index + 1)
  const events: string[] = []
  let isOver = false
  const turn = () => {
    events.push('turn')
    if (!isOver) setImmediate(turn)
  }
  setImmediate(turn)
  const read = await inPages(
    0,
    (after) => {
      events.push('page')
      return numbers.slice(after, after + rowsOfPage)
    },
    (number) => number,
  )
  isOver = true
  expect(read).toEqual(numbers)
  const pages = events.flatMap((event, index) => (event === 'page' ? [index] : []))
  expect(pages).toHaveLength(4)
  for (const [nth, at] of pages.slice(1).entries()) expect(events.slice(pages[nth], at)).toContain('turn')
})
