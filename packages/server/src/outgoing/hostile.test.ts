import { afterAll, afterEach, beforeAll, expect, spyOn, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { makeCertificates } from '@ringwire/testkit/certificates'
import { createAddressGuard } from './addresses.ts'
import { type Answer, createPost } from './post.ts'

/** Real servers that answer what no server should, over TCP and TLS [HOOK4]. */

let certificates: Awaited<ReturnType<typeof makeCertificates>>
/** Each connection that a request was made on. */
const connections: Socket[] = []
const spies = [Agent, TlsAgent].map(({ prototype }) => {
  const connect = prototype.createConnection
  return spyOn(prototype, 'createConnection').mockImplementation(function (this: Agent, ...asked) {
    const socket = connect.apply(this, asked)
    connections.push(socket as Socket)
    return socket
  })
})
const servers: Server[] = []
beforeAll(async () => {
  certificates = await makeCertificates()
})
afterEach(() => {
  connections.length = 0
  for (const server of servers.splice(0)) server.close()
})
afterAll(async () => {
  for (const spy of spies) spy.mockRestore()
  await certificates.remove()
})

const transports = ['http', 'https'] as const
const read = (file: string) => readFileSync(file, 'utf8')

/** A server that gives each connection to `act` with its first request. */
async function serve(transport: (typeof transports)[number], act: (socket: Socket) => void): Promise<string> {
  const accept = (socket: Socket) => {
    socket.on('error', () => {})
    socket.once('data', () => act(socket))
  }
  const { cert, key } = certificates.server
  const server =
    transport === 'http'
      ? createServer(accept)
      : (createTlsServer({ cert: read(cert), key: read(key) }, accept as never) as Server)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `${transport}://localhost:${(server.address() as AddressInfo).port}/`
}

const postFor = (deadlineMs?: number) =>
  createPost({
    guard: createAddressGuard(['127.0.0.1']),
    resolve: async () => ['127.0.0.1'],
    ca: read(certificates.ca),
    ...(deadlineMs !== undefined && { deadlineMs }),
  })

/** Sends `text` without end, as fast as it is read. */
function flood(socket: Socket, text: string): void {
  const chunk = Buffer.from(text.repeat(Math.ceil(40_000 / text.length)))
  const more = () => {
    while (!socket.destroyed && socket.write(chunk));
  }
  socket.on('drain', more)
  more()
}

const ok = 'HTTP/1.1 200 OK\r\n'
const chunked = `${ok}Transfer-Encoding: chunked\r\n\r\n`
const failed = (error: unknown) => ({ ok: false, error })
const status = (code: number, body: unknown = expect.any(String)) => ({ ok: true, status: code, body })
const tooMany = failed('too many informational answers')
const tooLarge = failed('the answer is too large')
const unreadable = failed(expect.stringMatching(/^HPE_/))

/** What it begins with, what it repeats without end, and what is made of it. */
const endless: Readonly<Record<string, readonly [begin: string, again: string, expected: unknown]>> = {
  '100 Continue': ['', 'HTTP/1.1 100 Continue\r\n\r\n', tooMany],
  '102 Processing': ['', 'HTTP/1.1 102 Processing\r\n\r\n', tooMany],
  '103 with headers': ['', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX: y\r\n\r\n', tooMany],
  'an unknown 1xx': ['', 'HTTP/1.1 199 What\r\n\r\n', tooMany],
  '100 and 103 in turn': ['', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n', tooMany],
  '100 with a large header section': ['', `HTTP/1.1 100 C\r\nX: ${'x'.repeat(15_000)}\r\n\r\n`, tooLarge],
  '101 without an upgrade': ['', 'HTTP/1.1 101 Go on\r\n\r\n', failed('the answer is no final one')],
  '101 with an upgrade': [
    'HTTP/1.1 101 Go on\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
    'anything',
    failed('the answer is another protocol'),
  ],
  'empty lines': ['', '\r\n', tooLarge],
  'line feeds': ['', '\n', tooLarge],
  'NUL bytes': ['', '\0', unreadable],
  'HTTP/0.9': ['', '<html>hello</html>\n', unreadable],
  'a version': ['HTTP/', '1', unreadable],
  'a status': ['HTTP/1.1 ', '2', unreadable],
  'a reason': ['HTTP/1.1 200 ', 'x', unreadable],
  'the name of a header': [ok, 'n', unreadable],
  'the value of a header': [`${ok}a: `, 'v', unreadable],
  headers: [ok, 'a: b\r\n', unreadable],
  'a folded header': [`${ok}a: b\r\n`, ' c\r\n', unreadable],
  'a Content-Length': [`${ok}Content-Length: `, '0', unreadable],
  'a body to the end of the connection': [`${ok}\r\n`, 'y', status(200, 'y'.repeat(1024))],
  'a body of a terabyte': [`${ok}Content-Length: 999999999999\r\n\r\n`, 'y', status(200, 'y'.repeat(1024))],
  'a body that expands': [`${ok}Content-Encoding: gzip\r\n\r\n`, '\x1f\x0b\x08', status(200)],
  'small chunks': [chunked, '1\r\nz\r\n', status(200, 'z'.repeat(1024))],
  'a huge chunk': [`${chunked}ffffffffff\r\n`, 'q', status(200, 'q'.repeat(1024))],
  'the size of a chunk': [chunked, '0', status(200, '')],
  'the extension of a chunk': [`${chunked}1`, ';a=b', status(200, '')],
  'chunks with extensions': [chunked, `1;${'a'.repeat(100)}\r\nz\r\n`, status(200)],
  trailers: [`${chunked}1\r\na\r\n0\r\n`, 't: v\r\n', status(200, 'a')],
  'a second answer': [`${ok}Content-Length: 1\r\n\r\na`, `${ok}Content-Length: 1\r\n\r\nb`, status(200, 'a')],
  'a body where there is none': ['HTTP/1.1 204 No\r\n\r\n', 'x', status(204, '')],
}

/** 64 KiB, and what one read of a socket may have brought beside. */
const mostRead = 64 * 1024 + 512 * 1024

for (const transport of transports) {
  for (const [name, [begin, again, expected]] of Object.entries(endless)) {
    test(`[HOOK4] ${transport}: ${name} without end is read no further than 64 KiB`, async () => {
      const { promise: closed, resolve } = Promise.withResolvers<void>()
      const url = await serve(transport, (socket) => {
        socket.on('close', () => resolve())
        socket.write(begin)
        flood(socket, again)
      })
      expect(await postFor()({ url, headers: {}, body: 'x' })).toMatchObject(expected as Answer)
      await closed
      expect(connections).toHaveLength(1)
      expect(connections[0]?.bytesRead).toBeLessThanOrEqual(mostRead)
    })
  }
}

test('[HOOK4] 8 informational answers are passed over, a ninth is refused, however slowly they come', async () => {
  const answering = async (count: number) => {
    const url = await serve('http', async (socket) => {
      for (let n = 0; n < count; n++) {
        socket.write(n % 2 === 0 ? 'HTTP/1.1 100 Continue\r\n\r\n' : 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
        await Bun.sleep(1)
      }
      socket.write(`${ok}Content-Length: 2\r\n\r\nok`)
    })
    return postFor()({ url, headers: {}, body: 'x' })
  }
  expect(await answering(8)).toMatchObject(status(200, 'ok'))
  expect(await answering(9)).toMatchObject(tooMany)
})

test('[HOOK4] no status below 200 is an answer, whatever comes after it', async () => {
  for (const code of ['000', '042', '099', '101']) {
    const url = await serve('http', (socket) => void socket.write(`HTTP/1.1 ${code} What\r\nContent-Length: 0\r\n\r\n`))
    expect([code, await postFor()({ url, headers: {}, body: 'x' })]).toEqual([
      code,
      expect.objectContaining({ ok: false }),
    ])
  }
})

test('[HOOK3] an answer that trickles is given up at the deadline, wherever it is', async () => {
  for (const begin of ['', 'HTTP/1.1 ', ok, `${ok}a: `]) {
    const url = await serve('http', (socket) => {
      socket.write(begin)
      const timer = setInterval(() => socket.write(begin === ok ? 'a: b\r\n' : begin === '' ? '\r\n' : ' '), 5)
      socket.on('close', () => clearInterval(timer))
    })
    const answer = await postFor(200)({ url, headers: {}, body: 'x' })
    expect([begin, answer.ok]).toEqual([begin, false])
  }
})

test('[HOOK4] bytes on a connection that waits for the next request end it: they answer nothing', async () => {
  for (const transport of transports) {
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    const answer = `${ok}Content-Length: 2\r\n\r\n`
    let count = 0
    const waiting: Socket[] = []
    const url = await serve(transport, (socket) => {
      if (count++ > 0) return void socket.write(`${answer}no`)
      socket.on('close', () => resolve())
      socket.write(`${answer}ok`)
      waiting.push(socket)
    })
    const post = postFor()
    expect(await post({ url, headers: {}, body: 'x' })).toMatchObject(status(200, 'ok'))
    // The next answer before anybody asked, and then no end of it.
    flood(waiting[0] as Socket, `${answer}ok`)
    await closed
    expect(await post({ url, headers: {}, body: 'x' })).toMatchObject(status(200, 'no'))
    expect(connections.splice(0)[0]?.bytesRead).toBeLessThanOrEqual(mostRead)
  }
})

test('[HOOK4] a TLS server that never ends its handshake, or speaks no TLS, is given up', async () => {
  const silent = (await serve('http', () => {})).replace('http:', 'https:')
  expect(await postFor(200)({ url: silent, headers: {}, body: 'x' })).toMatchObject({ ok: false })
  const babbling = (await serve('http', (socket) => flood(socket, 'what? '))).replace('http:', 'https:')
  expect(await postFor()({ url: babbling, headers: {}, body: 'x' })).toMatchObject({ ok: false })
  expect(connections.at(-1)?.bytesRead).toBeLessThanOrEqual(mostRead)
})
