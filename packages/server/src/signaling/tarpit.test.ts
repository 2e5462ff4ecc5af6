import { expect, test } from 'bun:test'
import { createTarpit } from './tarpit.ts'

const there = new AbortController().signal

test('[HTTP1] answers wait, so many at once; the next one does not, and then there is room again', async () => {
  const tarpit = createTarpit({ holdMs: 20, most: 2 })
  const answers = [new Response(), new Response(), new Response()] as const
  const first = tarpit.hold(answers[0], there)
  const second = tarpit.hold(answers[1], there)
  expect(first).toBeInstanceOf(Promise)
  expect(second).toBeInstanceOf(Promise)
  expect(tarpit.hold(answers[2], there)).toBe(answers[2])
  expect(await first).toBe(answers[0])
  expect(await second).toBe(answers[1])
  const again = tarpit.hold(answers[2], there)
  expect(again).toBeInstanceOf(Promise)
  expect(await again).toBe(answers[2])
})

test('[HTTP1] who is gone takes no room', async () => {
  const tarpit = createTarpit({ holdMs: 3_600_000, most: 1 })
  const gone = new AbortController()
  const answer = tarpit.hold(new Response(), gone.signal)
  gone.abort()
  await answer
  expect(tarpit.hold(new Response(), there)).toBeInstanceOf(Promise)
})

test('[HTTP1] the service learns that who asked is gone', async () => {
  const gone = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const tarpit = createTarpit({ holdMs: 3_600_000, most: 1 })
  const server = Bun.serve({
    port: 0,
    async fetch({ signal }) {
      const answer = tarpit.hold(new Response(), signal)
      asked.resolve()
      await answer
      gone.resolve()
      return answer
    },
  })
  const socket = await Bun.connect({ hostname: '127.0.0.1', port: server.port ?? 0, socket: { data() {} } })
  socket.write('GET / HTTP/1.1\r\nHost: here\r\n\r\n')
  await asked.promise
  socket.terminate()
  await gone.promise
  await server.stop(true)
})
