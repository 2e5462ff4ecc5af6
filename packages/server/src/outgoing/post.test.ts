import { afterEach, expect, jest, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { createServer as createPlain, type RequestListener, type Server } from 'node:http'
import { createServer as createTls } from 'node:https'
import { type AddressInfo, createServer as createTcp, type Socket, type Server as TcpServer } from 'node:net'
import { makeCertificates } from '@ringwire/testkit/certificates'
import { inTime } from '@ringwire/testkit/patience'
import { createAddressGuard } from './addresses.ts'
import { type Answer, createPost, noConnection, type PostOptions } from './post.ts'

/** 127.0.0.1 may get requests; 127.0.0.2 stands for an address that must never be reached. */
const guard = createAddressGuard(['127.0.0.1/32'])
const open: (Server | TcpServer)[] = []
afterEach(() => {
  for (const server of open.splice(0)) {
    if ('closeAllConnections' in server) server.closeAllConnections()
    server.close()
  }
})

async function listen<S extends Server | TcpServer>(server: S, host = '127.0.0.1', port = 0): Promise<number> {
  open.push(server)
  await new Promise<void>((resolve) => server.listen(port, host, resolve))
  return (server.address() as AddressInfo).port
}
const serve = (listener: RequestListener) => listen(createPlain(listener))

/** On the same port of 127.0.0.2: counts who comes. */
async function forbiddenAt(port: number): Promise<() => number> {
  let count = 0
  await listen(
    createTcp((socket) => {
      count++
      socket.destroy()
    }),
    '127.0.0.2',
    port,
  )
  return () => count
}

const without = (cause: string): Answer => ({ ok: false, error: noConnection, cause })
const notAllowed = without('the address is not allowed')

const ask = (url: string, options: Partial<PostOptions> = {}, signal?: AbortSignal) =>
  createPost({ guard, ...options })({ url, headers: { 'x-test': 'yes' }, body: '{"a":"ä"}', ...(signal && { signal }) })

test('what is sent arrives, and what is answered comes back', async () => {
  const port = await serve(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const { method, url, headers } = request
    response.writeHead(202)
    response.end(`${method} ${url} ${headers.host} ${headers['x-test']} ${Buffer.concat(chunks)}`)
  })
  expect(await ask(`http://127.0.0.1:${port}/hook?b=1`)).toEqual({
    ok: true,
    status: 202,
    body: `POST /hook?b=1 127.0.0.1:${port} yes {"a":"ä"}`,
  })
})

test('[HOOK4] a redirect is an answer: nobody follows it', async () => {
  const port = await serve((_request, response) => {
    response.writeHead(307, { location: `http://127.0.0.2:${port}/` })
    response.end('go there')
  })
  const visits = await forbiddenAt(port)
  expect(await ask(`http://127.0.0.1:${port}/`)).toEqual({ ok: true, status: 307, body: 'go there' })
  expect(visits()).toBe(0)
})

test('[HOOK4] a name that means another address the second time: the connection goes to what was checked, or none is made', async () => {
  let asked = 0
  const port = await serve((request, response) => response.end(request.headers.host))
  const visits = await forbiddenAt(port)
  // The first look is what is checked. A second look before connecting would be led astray.
  const turning = async () => [asked++ % 2 === 0 ? '127.0.0.1' : '127.0.0.2']
  const url = `http://turning.example:${port}/`
  expect(await ask(url, { resolve: turning })).toEqual({ ok: true, status: 200, body: `turning.example:${port}` })
  expect(asked).toBe(1)
  expect(await ask(url, { resolve: turning })).toEqual(notAllowed)
  expect(asked).toBe(2)
  expect(await ask(url, { resolve: async () => ['127.0.0.1', '127.0.0.2'] })).toMatchObject({ ok: false })
  expect(await ask(url, { resolve: async () => [] })).toMatchObject({ ok: false })
  expect(await ask(`http://127.0.0.2:${port}/`)).toEqual(notAllowed)
  expect(await ask(`http://[::ffff:127.0.0.2]:${port}/`)).toEqual(notAllowed)
  expect(visits()).toBe(0)
})

test('[HOOK4] of ten megabytes 64 KiB are read, and one is kept', async () => {
  let sent = 0
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  const port = await serve((_request, response) => {
    response.on('close', resolve)
    response.on('error', () => {})
    const chunk = Buffer.alloc(64 * 1024, 'x')
    const more = () => {
      while (sent < 10_000_000) {
        sent += chunk.length
        if (!response.write(chunk)) {
          response.once('drain', more)
          return
        }
      }
      response.end()
    }
    more()
  })
  const answer = await ask(`http://127.0.0.1:${port}/`)
  expect(answer).toMatchObject({ ok: true, status: 200, body: 'x'.repeat(1024) })
  await closed
  // What fits into the buffers of two sockets on the way.
  expect(sent).toBeLessThan(9_000_000)
})

test('[HOOK3] who does not answer is given up at the deadline', async () => {
  const { promise: reached, resolve } = Promise.withResolvers<void>()
  const silent = await listen(createTcp((socket) => void socket.once('data', () => resolve())))
  jest.useFakeTimers()
  try {
    const asked = ask(`http://127.0.0.1:${silent}/`, { deadlineMs: 100 })
    // Before that it would be no connection.
    await reached
    jest.advanceTimersByTime(100)
    expect(await asked).toEqual({ ok: false, error: 'no answer within 0.1 s' })
  } finally {
    jest.useRealTimers()
  }
  const never = () => new Promise<never>(() => {})
  expect(await ask('http://a.example/', { resolve: never, deadlineMs: 100 })).toMatchObject({ ok: false })
})

test('[HOOK3] a status that came until the deadline counts, whatever its body does', async () => {
  const slow = await listen(
    createTcp(
      (socket) => void socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbegun')),
    ),
  )
  // Its status needs some turns of the event loop, which come late where the machine stands still.
  await inTime(async () => {
    expect(await ask(`http://127.0.0.1:${slow}/`, { deadlineMs: 3_000 })).toMatchObject({ ok: true, status: 200 })
  })
})

test('[HOOK3] the deadline is 10 s, from the look-up of the name', async () => {
  jest.useFakeTimers()
  try {
    let isOver = false
    const asked = ask('https://a.example/', { resolve: () => new Promise(() => {}) })
    void asked.then(() => {
      isOver = true
    })
    jest.advanceTimersByTime(9_999)
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    expect(isOver).toBe(false)
    jest.advanceTimersByTime(1)
    expect(await asked).toEqual(without('no answer within 10 s'))
  } finally {
    jest.useRealTimers()
  }
})

test('who closes, who is not there, who has no name, who speaks something else', async () => {
  const closing = await listen(createTcp((socket) => socket.destroy()))
  const babbling = await listen(createTcp((socket) => void socket.end('what?\r\n\r\n')))
  // Nobody listens there, and nobody is given it who asks for any port.
  const gone = 1
  for (const port of [closing, babbling, gone]) {
    const answer = await ask(`http://127.0.0.1:${port}/`)
    expect(answer.ok).toBe(false)
    expect(answer.ok ? '' : answer.error).not.toBe('')
  }
})

test('[HOOK4] every request without a connection says the same: names inside cannot be told from others', async () => {
  const failing = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code }))
  const never = () => new Promise<never>(() => {})
  const url = 'http://name.example/'
  const plain = 'http://name.example:1/'
  const there = async () => ['127.0.0.1']
  const codes = ['ENOTFOUND', 'ENODATA', 'EAI_AGAIN', 'ESERVFAIL', 'ETIMEOUT', 'ECANCELLED']
  const answers = [
    ...(await Promise.all(codes.map((code) => ask(url, { resolve: failing(code) })))),
    await ask(url, { resolve: async () => [] }),
    await ask(url, { resolve: async () => ['10.0.0.1'] }),
    await ask(url, { resolve: async () => ['127.0.0.1', '169.254.169.254'] }),
    // Without TLS only the machine itself.
    await ask(url, { resolve: async () => ['93.184.215.14'] }),
    await ask(url, { resolve: never, deadlineMs: 50 }),
    await ask(url, { resolve: never }, AbortSignal.timeout(50)),
    // Nobody listens on port 1, with TLS or without.
    await ask(plain, { resolve: there }),
    await ask(plain.replace('http', 'https'), { resolve: there }),
    await ask('https://10.0.0.1/'),
    await ask('https://[::ffff:a00:1]/'),
  ]
  for (const answer of answers) expect(answer).toMatchObject({ ok: false, error: noConnection })
  // The operator reads the cause in the log.
  expect(answers[0]).toMatchObject({ cause: 'ENOTFOUND' })
})

test('an answer that is another protocol is none, and nobody waits for another one', async () => {
  const { port } = await counting((socket) =>
    socket.write('HTTP/1.1 101 Go on\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
  )
  expect(await ask(`http://127.0.0.1:${port}/`)).toEqual({ ok: false, error: 'the answer is another protocol' })
})

test('a request that is given up ends at once', async () => {
  const { promise: reached, resolve } = Promise.withResolvers<void>()
  const port = await serve(() => resolve())
  const abort = new AbortController()
  const answer = ask(`http://127.0.0.1:${port}/`, {}, abort.signal)
  await reached
  abort.abort()
  expect(await answer).toEqual({ ok: false, error: 'the request was given up' })
  expect(await ask(`http://127.0.0.1:${port}/`, {}, abort.signal)).toMatchObject({ ok: false })
})

test('[HOOK4] over TLS the certificate has to be that of the name', async () => {
  const certificates = await makeCertificates()
  try {
    const read = (file: string) => readFileSync(file, 'utf8')
    const { cert, key } = certificates.server
    const port = await listen(
      createTls({ cert: read(cert), key: read(key) }, (_request, response) => response.end('safe')),
    )
    const resolve = async () => ['127.0.0.1']
    const ca = read(certificates.ca)
    expect(await ask(`https://localhost:${port}/`, { resolve, ca })).toEqual({ ok: true, status: 200, body: 'safe' })
    expect(await ask(`https://other.example:${port}/`, { resolve, ca })).toEqual({
      ok: false,
      error: 'ERR_TLS_CERT_ALTNAME_INVALID',
    })
    expect(await ask(`https://localhost:${port}/`, { resolve })).toMatchObject({ ok: false })
  } finally {
    await certificates.remove()
  }
})

/** Answers each request with how many connections there were before, and says when one is over. */
async function counting(answer?: (socket: Socket, count: number) => void) {
  let connections = 0
  let requests = 0
  const over: Promise<void>[] = []
  const server = createTcp((socket) => {
    const own = connections++
    const { promise, resolve } = Promise.withResolvers<void>()
    over.push(promise)
    socket.on('error', () => {})
    socket.on('close', () => resolve())
    socket.on('data', () => {
      const count = requests++
      if (answer !== undefined) answer(socket, count)
      else socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n${own}`)
    })
  })
  return { port: await listen(server), over }
}

test('[HOOK4] a connection is kept for the same name alone, and asks for no name again', async () => {
  const { port } = await counting()
  let looked = 0
  const post = createPost({
    guard,
    resolve: async () => {
      looked++
      return ['127.0.0.1']
    },
  })
  const bodyOf = async (host: string) => {
    const answer = await post({ url: `http://${host}:${port}/`, headers: {}, body: 'x' })
    return answer.ok ? answer.body : answer.error
  }
  for (let n = 0; n < 20; n++) expect(await bodyOf('one.example')).toBe('0')
  expect(await bodyOf('two.example')).toBe('1')
  expect(await bodyOf('one.example')).toBe('0')
  // Requests at the same time have one each.
  expect((await Promise.all([1, 2, 3].map(() => bodyOf('one.example')))).sort()).toEqual(['0', '2', '3'])
  expect(looked).toBe(4)
})

test('[HOOK4] after its time a connection is not kept, and the name is checked again', async () => {
  const { port, over } = await counting()
  let address = '127.0.0.1'
  const post = createPost({ guard, resolve: async () => [address], kept: { ageMs: 0 } })
  const ask = () => post({ url: `http://turning.example:${port}/`, headers: {}, body: 'x' })
  expect(await ask()).toMatchObject({ ok: true, body: '0' })
  await over[0]
  address = '127.0.0.2'
  expect(await ask()).toEqual(notAllowed)
})

test('a connection waits so long and no longer; one that waits for an answer may take its time', async () => {
  const { port, over } = await counting((socket) => {
    setTimeout(() => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'), 150)
  })
  const post = createPost({ guard, kept: { idleMs: 50 } })
  const begin = performance.now()
  expect(await post({ url: `http://127.0.0.1:${port}/`, headers: {}, body: 'x' })).toMatchObject({
    ok: true,
    body: 'ok',
  })
  await over[0]
  expect(performance.now() - begin).toBeGreaterThan(190)
})

test('[HOOK3] a connection that ended while it waited is not used; one that ends under a request is said', async () => {
  const answered = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
  let ends: 'at once' | 'with the next request' | 'with nonsense' = 'at once'
  const { port, over } = await counting((socket, count) => {
    if (ends === 'with the next request' && count === 2) socket.destroy()
    else if (ends === 'with nonsense') socket.end('what?\r\n\r\n')
    else socket[count === 0 ? 'end' : 'write'](answered)
  })
  const post = createPost({ guard })
  const ask = () => post({ url: `http://127.0.0.1:${port}/`, headers: {}, body: 'x' })
  expect(await ask()).toMatchObject({ ok: true })
  await over[0]
  expect(await ask()).toMatchObject({ ok: true })
  ends = 'with the next request'
  expect(await ask()).toEqual({ ok: false, error: 'ECONNRESET', wasStale: true })
  expect(await ask()).toMatchObject({ ok: true })
  // Nonsense on a connection that was kept is an answer that was wrong, and no end of it.
  ends = 'with nonsense'
  const babbled = await ask()
  expect([babbled.ok, babbled]).toEqual([false, expect.not.objectContaining({ wasStale: true })])
})
