import { afterAll, expect, test } from 'bun:test'
import { connect, type Socket } from 'node:net'
import { until } from '@ringwire/testkit/patience'
import { json, jsonStream } from './replies.ts'
import { createUnread } from './unread.ts'

const mib = 1024 * 1024
/** Twice what the kernel takes of an answer that nobody reads. */
const size = 16 * mib
const unread = createUnread({ limit: 2.5 * size })
const answers: Record<string, () => Response | Promise<Response>> = {
  '/large': () => json(200, { text: 'x'.repeat(size) }),
  '/small': () => json(200, { text: 'x' }),
  '/stream': () => jsonStream(endless(), () => {}),
}
const server: Bun.Server<unknown> = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  // A client that does not read keeps its connection for the whole test.
  idleTimeout: 240,
  async fetch(request) {
    const response = (await answers[new URL(request.url).pathname]?.()) ?? new Response(null, { status: 404 })
    unread.add(response, () => server.timeout(request, 1))
    return response
  },
})
afterAll(() => server.stop(true))

async function* endless(): AsyncGenerator<string> {
  for (;;) {
    yield 'x'.repeat(mib)
    await Bun.sleep(1)
  }
}

/** A client that asks and does not read. */
async function ask(path: string): Promise<Socket> {
  const before = unread.size()
  const socket = connect(server.port ?? 0, '127.0.0.1').on('error', () => {})
  socket.pause()
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await until('it is answered', async () => unread.size() !== before)
  return socket
}

test('[HTTP3] the answers that wait for their readers the longest are cut, and who reads gets a whole one', async () => {
  const first = await ask('/large')
  const second = await ask('/large')
  // A third one is too much: the first goes.
  const read = fetch(new URL('/large', server.url)).then((response) => response.json() as Promise<{ text: string }>)
  expect((await read).text.length).toBe(size)
  await until('only the second is left', async () => unread.size() === size + '{"text":""}'.length)
  await until('the first is closed, though its client does not read', async () => server.pendingRequests === 1)
  let got = 0
  const ended = new Promise<void>((resolve) => first.on('close', resolve))
  first.on('data', ({ length }) => {
    got += length
  })
  first.resume()
  await ended
  expect(got).toBeLessThan(size)
  second.destroy()
  await until('who is gone leaves nothing', async () => unread.size() === 0)
})

test('[HTTP3] a stream counts until its client is gone, and what is small never', async () => {
  const stream = await ask('/stream')
  expect(unread.size()).toBeGreaterThan(0)
  const counted = unread.size()
  expect(await (await fetch(new URL('/small', server.url))).json()).toEqual({ text: 'x' })
  expect(unread.size()).toBe(counted)
  stream.destroy()
  await until('who is gone leaves nothing', async () => unread.size() === 0)
})
