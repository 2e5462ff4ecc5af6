import { expect, test } from 'bun:test'
import { createTarpit } from './tarpit.ts'

test('[HTTP1] answers wait, so many at once; the next one does not, and then there is room again', async () => {
  const tarpit = createTarpit({ holdMs: 20, most: 2 })
  const answers = [new Response(), new Response(), new Response()] as const
  const first = tarpit.hold(answers[0])
  const second = tarpit.hold(answers[1])
  expect(first).toBeInstanceOf(Promise)
  expect(second).toBeInstanceOf(Promise)
  expect(tarpit.hold(answers[2])).toBe(answers[2])
  expect(await first).toBe(answers[0])
  expect(await second).toBe(answers[1])
  const again = tarpit.hold(answers[2])
  expect(again).toBeInstanceOf(Promise)
  expect(await again).toBe(answers[2])
})
