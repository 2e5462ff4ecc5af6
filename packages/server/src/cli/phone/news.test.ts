import { expect, test } from 'bun:test'
import { createNews } from './news.ts'

test('a wait that lasts says so once, goes on, and ends with the news', async () => {
  const news = createNews()
  const late = Promise.withResolvers<void>()
  let said = 0
  let isThere = false
  const waited = news.until(
    () => isThere,
    1,
    () => {
      said++
      late.resolve()
    },
  )
  await late.promise
  isThere = true
  news.wake()
  await waited
  expect(said).toBe(1)
})

test('what holds already is not waited for, and nothing is said', async () => {
  await createNews().until(
    () => true,
    0,
    () => expect.unreachable(),
  )
  await new Promise((resolve) => setTimeout(resolve, 1))
})
