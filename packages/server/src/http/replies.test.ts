import { expect, test } from 'bun:test'
import { jsonStream } from './replies.ts'

/** A server that answers with these pieces. */
async function serving<T>(pieces: () => AsyncGenerator<string>, use: (url: string, errors: unknown[]) => Promise<T>) {
  const errors: unknown[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => jsonStream(pieces(), (error) => errors.push(error)),
  })
  try {
    return await use(server.url.href, errors)
  } finally {
    await server.stop(true)
  }
}

test('[SRV2] pieces arrive whole and in order, as JSON that nobody keeps', async () => {
  async function* pieces() {
    yield '{"ä":['
    for (let n = 0; n < 2_000; n++) yield `${n === 0 ? '' : ','}"${'x'.repeat(100)}${n}"`
    yield ']}'
  }
  await serving(pieces, async (url) => {
    const response = await fetch(url)
    expect([response.headers.get('content-type'), response.headers.get('cache-control')]).toEqual([
      'application/json',
      'no-store',
    ])
    const { ä } = (await response.json()) as { ä: string[] }
    expect([ä.length, ä.at(-1)]).toEqual([2_000, `${'x'.repeat(100)}1999`])
  })
})

test('[SRV2] a store that goes away meanwhile cuts the connection: a part is never taken for the whole', async () => {
  async function* pieces() {
    yield '{"data":['
    await Bun.sleep(1)
    throw new Error('The store is away.')
  }
  await serving(pieces, async (url, errors) => {
    const read = fetch(url).then((response) => response.text())
    expect(
      await read.then(
        () => 'whole',
        () => 'cut',
      ),
    ).toBe('cut')
    expect(errors).toEqual([new Error('The store is away.')])
  })
})

test('[SRV2] what fails before the first piece is an answer of its own', async () => {
  // biome-ignore lint/correctness/useYield: it fails before it has one.
  async function* pieces(): AsyncGenerator<string> {
    throw new Error('The store is away.')
  }
  await expect(jsonStream(pieces(), () => {})).rejects.toThrow('The store is away.')
})

test('[SRV2] nothing is read for a client that is gone', async () => {
  const ended = Promise.withResolvers<void>()
  async function* pieces() {
    try {
      for (;;) {
        yield 'x'.repeat(64 * 1024)
        await Bun.sleep(1)
      }
    } finally {
      ended.resolve()
    }
  }
  await serving(pieces, async (url) => {
    const away = new AbortController()
    const response = await fetch(url, { signal: away.signal })
    await response.body?.getReader().read()
    away.abort()
    await ended.promise
  })
})
