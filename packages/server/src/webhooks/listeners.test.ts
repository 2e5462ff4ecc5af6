import { expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { inTime } from '@ringwire/testkit/patience'
import { createLeftOver, isGone, leftOverMs, newListenerId, renewMs, runningAt } from './listeners.ts'

test('[HOOK1] an endpoint that no command renews is left over, on whichever machine it was; one that is renewed is not', () => {
  let now = 0
  const leftOver = createLeftOver(() => now)
  const [gone, running] = [{ id: 'we_listen_other_1' }, { id: 'we_listen_other_2' }]
  const look = () =>
    leftOver([
      { ...gone, description: runningAt(0) },
      { ...running, description: runningAt(now) },
    ]).map(({ id }) => id)
  for (; now <= leftOverMs; now += renewMs) expect(look()).toEqual([])
  expect(look()).toEqual([gone.id])
  // A command that finds its endpoint removed adds it again: it has its whole time.
  leftOver([])
  expect(look()).toEqual([])
})

test('[HOOK4] a command is gone where its port is free or answers for another one; what breaks the connection proves nothing', async () => {
  const id = newListenerId()
  const command = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(id) })
  const url = `http://127.0.0.1:${command.port}/`
  expect(await isGone({ id, url })).toBe(false)
  // It may take a second to answer.
  await inTime(async () => expect(await isGone({ id: newListenerId(), url })).toBe(true))
  await command.stop(true)
  expect(await isGone({ id, url })).toBe(true)
  const broken = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1')
  await new Promise((resolve) => broken.once('listening', resolve))
  const address = broken.address()
  const port = typeof address === 'object' ? address?.port : undefined
  expect(await isGone({ id, url: `http://127.0.0.1:${port}/` })).toBe(false)
  broken.close()
})
