import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Agent, type IncomingMessage, request } from 'node:http'
import { connect } from 'node:net'
import { Service } from '@ringwire/testkit/service'

let service: Service
beforeAll(async () => {
  // Longer than an unfinished request has, and short enough to wait for nothing.
  service = await new Service({ RINGWIRE_HTTP_IDLE_MS: '60000' }).start()
})
afterAll(() => service?.dispose())

const whole = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'
const head = 'POST /v1/call/session-token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n'

/** A connection that has sent this; what it hears, and when it is closed. */
function send(text: string) {
  const { hostname, port } = new URL(service.url)
  const socket = connect(Number(port), hostname)
  const closed = Promise.withResolvers<'closed'>()
  const answered = Promise.withResolvers<void>()
  let received = ''
  socket.on('data', (bytes) => {
    received += bytes.toString('latin1')
    answered.resolve()
  })
  socket.on('error', () => {})
  socket.on('close', () => closed.resolve('closed'))
  socket.write(text)
  return {
    closed: closed.promise,
    answered: answered.promise,
    write: (more: string) => void socket.write(more),
    destroy: () => socket.destroy(),
    get received() {
      return received
    },
  }
}

test('[HTTP2] an unfinished request ends after 12 s, also after a complete one; a connection without one stays', async () => {
  const idle = send(whole)
  await idle.answered
  expect(idle.received).toMatch(/^keep-alive: timeout=60\r$/im)
  const later = send(whole)
  await later.answered
  later.write(`${head}\r\n{"half`)
  const unfinished = [send('GET /healthz HTTP/1.1\r\nHost: '), send(`${head}\r\n{"half`), later]
  await Promise.all(unfinished.map(({ closed }) => closed))
  expect(await Promise.race([idle.closed, Promise.resolve('open')])).toBe('open')
  idle.write(whole)
  idle.destroy()
}, 60_000)

test('[HTTP2] a client that keeps connections uses the same one for requests of both methods', async () => {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const ports = new Set<number | undefined>()
  for (const method of ['GET', 'POST', 'GET']) {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const asked = request(`${service.url}/v1/call/session-token`, { method, agent })
    asked
      .on('response', resolve)
      .on('error', reject)
      .end(method === 'POST' ? '{}' : undefined)
    const response = await promise
    ports.add(response.socket.localPort)
    response.resume()
    await new Promise((ended) => response.on('end', ended))
  }
  expect(ports.size).toBe(1)
  agent.destroy()
}, 60_000)

test('[HTTP2] Expect: 100-continue is answered before the body; a client that does not wait for it is answered too', async () => {
  const lower = send(`${head}Expect: 100-continue\r\n\r\n`)
  await lower.answered
  expect(lower.received).toStartWith('HTTP/1.1 100 Continue\r\n')
  // The runtime knows no other spelling (oven-sh/bun#30248): such a client sends its body when it has waited.
  const upper = send(`${head}Expect: 100-Continue\r\n\r\n${' '.repeat(20)}`)
  await upper.answered
  expect(upper.received).toStartWith('HTTP/1.1 401 ')
  for (const each of [lower, upper]) each.destroy()
}, 60_000)
