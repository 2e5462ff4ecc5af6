import { expect, test } from 'bun:test'
import { createWebPost } from './web-post.ts'

test('[PUSH2] a name that nobody answers for is given up at the deadline', async () => {
  const never = () => new Promise<never>(() => {})
  const post = createWebPost(null, never)
  const asked = post('https://push.example/', {}, new Uint8Array(), AbortSignal.timeout(20))
  expect(await asked.catch((error) => error.name)).toBe('TimeoutError')
  const over = post('https://push.example/', {}, new Uint8Array(), AbortSignal.abort())
  expect(await over.catch((error) => error.name)).toBe('AbortError')
})
