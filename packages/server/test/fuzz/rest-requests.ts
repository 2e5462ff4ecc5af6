import { connect } from 'node:net'
import type { Findings } from './findings.ts'
import { mutateBytes, mutateJson } from './mutations.ts'
import type { Random } from './random.ts'

export interface RestTarget {
  readonly url: string
  readonly keyId: string
  readonly secret: string
  readonly token: string
}

interface Request {
  method: string
  target: string
  headers: [string, string][]
  body: Buffer
}

const tokenBody = {
  product: 'shop',
  context_type: 'order',
  context_id: '1',
  user_id: 'somebody',
  role: 'agent',
  display_name: 'Somebody',
  device_id: 'phone',
  app_version: '1.0',
  allowed_peer_role: 'customer',
}

function valid(random: Random, { keyId, secret, token }: RestTarget): Request {
  const none = Buffer.alloc(0)
  const bearer: [string, string] = ['Authorization', `Bearer ${token}`]
  const kinds: (() => Request)[] = [
    () => ({
      method: 'POST',
      target: '/v1/call/session-token',
      headers: [
        ['Content-Type', 'application/json'],
        ['X-SVC-Product-Key-ID', keyId],
        ['X-SVC-Product-Secret', secret],
      ],
      body: Buffer.from(JSON.stringify(random.chance(0.7) ? mutateJson(random, tokenBody) : tokenBody)),
    }),
    () => ({ method: 'GET', target: '/v1/calls/history?limit=5', headers: [bearer], body: none }),
    () => ({ method: 'GET', target: '/v1/ws', headers: [bearer], body: none }),
    () => ({ method: 'POST', target: '/v1/call/ice-servers', headers: [bearer], body: none }),
    () => ({ method: 'GET', target: random.pick(['/healthz', '/readyz']), headers: [], body: none }),
  ]
  return random.pick(kinds)()
}

const methods = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD', 'TRACE']
const values = [
  '',
  ' ',
  ',',
  '*',
  '-1',
  '99999999999999999999',
  'null',
  '%',
  '%00',
  '../..',
  '[::',
  'é',
  'a'.repeat(9000),
]
const names = [
  'Host',
  'Origin',
  'X-Forwarded-For',
  'Upgrade',
  'Authorization',
  'Sec-WebSocket-Protocol',
  'Accept',
  'Cookie',
]

/** A request that is one (its lengths are right), with something in it that nobody would send. */
function strangeRequest(random: Random, target: RestTarget): Request {
  const request = valid(random, target)
  switch (random.int(6)) {
    case 0:
      request.method = random.pick(methods)
      break
    case 1: {
      // A line break would end the head: only what can stand in a request line.
      const text = mutateBytes(random, Buffer.from(request.target)).toString('latin1')
      request.target = `/${text.replaceAll(/[^\x21-\x7e]/g, '')}`
      break
    }
    case 2:
      request.headers.push([random.pick(names), random.pick(values)])
      break
    case 3:
      request.headers = request.headers.filter(() => random.chance(0.6))
      break
    case 4:
      request.headers = request.headers.map(([name, value]) => {
        const text = mutateBytes(random, Buffer.from(value)).toString('latin1')
        return [name, text.replaceAll(/[^\x20-\x7e]/g, '')]
      })
      break
    default:
      request.body = mutateBytes(random, request.body)
  }
  return request
}

function encode({ method, target, headers, body }: Request, last: boolean): Buffer {
  const host = headers.some(([name]) => name === 'Host') ? [] : ['Host: localhost']
  const lines = [
    `${method} ${target} HTTP/1.1`,
    ...host,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...(method === 'GET' && body.length === 0 ? [] : [`Content-Length: ${body.length}`]),
    ...(last ? ['Connection: close'] : []),
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body])
}

/** Requests one after another on a connection for each handful, a broken one at the end; every answer is judged. */
export async function fuzzRest(target: RestTarget, random: Random, count: number, findings: Findings): Promise<void> {
  for (let left = count; left > 0; ) {
    const requests = Array.from({ length: Math.min(left, 8) }, (_, i) => {
      const bytes = encode(random.chance(0.15) ? valid(random, target) : strangeRequest(random, target), i === 7)
      return i === 7 ? mutateBytes(random, bytes) : bytes
    })
    left -= requests.length
    findings.sent += requests.length
    await converse(target.url, requests, findings)
  }
}

/** Sends requests, each after the answer to the previous one, until the service closes or everything is sent. */
function converse(url: string, requests: readonly Buffer[], findings: Findings): Promise<void> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    let next = 0
    let received = Buffer.alloc(0)
    let input: Buffer = Buffer.alloc(0)
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    const send = () => {
      input = requests[next++] ?? input
      // After the last one our half is over: what the service waits for will never come.
      if (next >= requests.length) socket.end(input)
      else socket.write(input)
    }
    socket.on('connect', send)
    socket.on('data', (bytes) => {
      received = Buffer.concat([received, bytes as Buffer])
      for (;;) {
        const answer = takeAnswer(received, input)
        if (answer === undefined) return
        received = received.subarray(answer.size)
        findings.answer(answer.status, answer.body, input)
        if (next < requests.length) send()
      }
    })
    const done = () => {
      socket.resetAndDestroy()
      resolve()
    }
    socket.on('end', done)
    socket.on('error', () => {})
    socket.on('close', done)
  })
}

function takeAnswer(received: Buffer, input: Buffer): { status: number; body: string; size: number } | undefined {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = received.subarray(0, end).toString('latin1')
  const status = Number(head.split(' ', 2)[1])
  const isHead = input.subarray(0, 5).toString('latin1') === 'HEAD '
  const length = isHead ? 0 : Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0)
  const size = end + 4 + length
  if (received.length < size) return undefined
  return { status, body: received.subarray(end + 4, size).toString(), size }
}
