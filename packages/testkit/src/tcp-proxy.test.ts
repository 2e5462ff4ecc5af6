import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { type Pass, TcpProxy } from './tcp-proxy.ts'

/** A server that echoes everything, and the messages of its connections. */
let server: Server
let target = ''
const served: Socket[] = []
beforeAll(async () => {
  server = createServer({ allowHalfOpen: true }, (socket) => {
    served.push(socket)
    socket.on('error', () => {})
    socket.on('data', (bytes) => socket.write(bytes))
    socket.on('end', () => socket.end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  target = `tcp://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
})
afterAll(() => {
  for (const socket of served) socket.destroy()
  server.close()
})

/** A client, and what it heard. */
class Ear {
  heard = ''
  /** The code of the error it ended with, or `closed`. */
  readonly end: Promise<string>
  readonly socket: Socket
  private watchers: (() => void)[] = []

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    let why = 'closed'
    this.socket.on('error', (error: NodeJS.ErrnoException) => {
      why = error.code ?? error.message
    })
    this.end = new Promise((resolve) => {
      this.socket.on('end', () => resolve(why))
      this.socket.on('close', () => resolve(why))
    })
    this.socket.on('data', (bytes) => {
      this.heard += bytes.toString()
      for (const watcher of this.watchers.splice(0)) watcher()
    })
  }

  async hears(text: string): Promise<void> {
    while (this.heard !== text) await new Promise<void>((resolve) => this.watchers.push(resolve))
  }
}

let proxy: TcpProxy
let pass: Pass
beforeEach(async () => {
  pass = (bytes) => bytes
  proxy = await new TcpProxy(target, (...all) => pass(...all)).start()
})
afterEach(() => proxy.stop())

async function talking(): Promise<Ear> {
  const ear = new Ear(proxy.port)
  ear.socket.write('a')
  await ear.hears('a')
  return ear
}

test('what is stalled one way or both arrives in order when it flows, and a close after it', async () => {
  const ear = await talking()
  for (const to of ['client', 'server', undefined] as const) {
    proxy.last.stall(to)
    ear.socket.write(`-${to}`)
    proxy.last.flow(to)
  }
  await ear.hears('a-client-server-undefined')
  proxy.last.stall()
  ear.socket.end('!')
  proxy.last.flow()
  await ear.hears('a-client-server-undefined!')
  expect(await ear.end).toBe('closed')
  ear.socket.destroy()
  await proxy.last.gone
  expect(proxy.open).toEqual([])
})

test('what is silent stays so while others get through; what is stalled holds back new connections too', async () => {
  const quiet = await talking()
  proxy.silence()
  quiet.socket.write('b')
  const ear = await talking()
  proxy.stall()
  const late = new Ear(proxy.port)
  late.socket.write('late')
  ear.socket.write('c')
  proxy.mend()
  await Promise.all([late.hears('late'), ear.hears('ac')])
  expect(quiet.heard).toBe('a')
})

test('a cut is a reset or a close; who refuses takes nobody until it is mended', async () => {
  for (const [how, end] of [
    ['reset', 'ECONNRESET'],
    ['close', 'closed'],
  ] as const) {
    const ear = await talking()
    proxy.cut(how)
    expect(await ear.end).toBe(end)
    await proxy.last.serverGone
  }
  proxy.refuse()
  const made = proxy.links.length
  const refused = new Ear(proxy.port)
  expect(await refused.end).toBe('ECONNRESET')
  expect([proxy.links.length, proxy.attempts]).toEqual([made, made + 1])
  proxy.mend()
  await talking()
})

test('bytes are swallowed or changed on their way, and delayed in order', async () => {
  pass = (bytes, to) => (to === 'server' ? Buffer.from(bytes.toString().toUpperCase()) : bytes)
  const ear = new Ear(proxy.port)
  ear.socket.write('a')
  await ear.hears('A')
  proxy.last.delay(30, 'client')
  const before = performance.now()
  ear.socket.write('b')
  await ear.hears('AB')
  expect(performance.now() - before).toBeGreaterThan(25)
  proxy.last.delay(0)
  const swallowed = Promise.withResolvers<void>()
  pass = () => void swallowed.resolve()
  ear.socket.write('x')
  await swallowed.promise
  pass = (bytes) => bytes
  ear.socket.write('c')
  await ear.hears('ABc')
})

test('the next connection is held until it may go, and what leads elsewhere ends what was open', async () => {
  const go = proxy.holdNext()
  const held = new Ear(proxy.port)
  held.socket.end('held')
  const ear = await talking()
  expect(held.heard).toBe('')
  go()
  await held.hears('held')
  proxy.leadTo('tcp://127.0.0.1:1')
  expect(await ear.end).toBe('closed')
  expect(await new Ear(proxy.port).end).toBe('ECONNRESET')
})
