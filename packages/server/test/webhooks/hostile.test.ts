import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createECDH } from 'node:crypto'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { acceptedCall, candidate, connectPair, invite, someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { makeVapidKey } from '../../src/config/push-keys.ts'
import { ask } from '../scenarios/backend/calls.ts'

/** A whole service beside a webhook endpoint and a push service that answer without end [HOOK4]. */

/** By path: how much each connection took. */
interface Flooded {
  readonly path: string
  sent: number
  isOver: boolean
}
const flooded: Flooded[] = []
let server: Server
let service: Service
beforeAll(async () => {
  const answer = Buffer.from(
    'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(1_000),
  )
  server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (request) => {
      const one: Flooded = { path: request.toString('latin1').split(' ')[1] ?? '', sent: 0, isOver: false }
      flooded.push(one)
      socket.on('close', () => {
        one.isOver = true
      })
      const more = () => {
        while (!socket.destroyed && socket.write(answer)) one.sent += answer.length
      }
      socket.on('drain', more)
      more()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  service = await new Service({
    RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1',
    RINGWIRE_VAPID_PRIVATE_KEY: makeVapidKey().privateKey,
    RINGWIRE_VAPID_SUBJECT: 'mailto:someone@example.com',
    RINGWIRE_VAPID_URL: originOf(server),
  }).start()
})
afterAll(async () => {
  await service.dispose()
  server.close()
})

const originOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
/** The 64 KiB that are read, and what the buffers of both ends may hold: a tenth of what 10 s without a limit take. */
const mostTaken = 16 * 1024 * 1024

async function registerBrowser(calleeId: string): Promise<void> {
  const ecdh = createECDH('prime256v1')
  const keys = { p256dh: ecdh.generateKeys().toString('base64url'), auth: Buffer.alloc(16).toString('base64url') }
  const token = await service.token({ user_id: calleeId, role: 'agent', device_id: 'browser' })
  const response = await fetch(`${service.url}/v1/call/device`, {
    method: 'PUT',
    headers: { Authorization: `Bearer ${token}` },
    body: JSON.stringify({ platform: 'webpush', subscription: { endpoint: `${originOf(server)}/push`, keys } }),
    keepalive: false,
  })
  expect(response.status).toBe(200)
}

test('[HOOK4] endpoints that answer 1xx without end are read no further, and relays go on meanwhile', async () => {
  for (let n = 0; n < 20; n++) await ask(service, 'POST', 'webhooks', { url: `${originOf(server)}/hook` })
  const asleep = someone('callee')
  await registerBrowser(asleep)
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  await invite(await service.connect({ user_id: someone('caller'), role: 'customer' }), asleep)
  await until('both are asked', async () =>
    ['/hook', '/push'].every((path) => flooded.some((one) => one.path === path)),
  )
  for (let n = 0; n < 200; n++) {
    const sender = n % 2 === 0 ? pair.caller : pair.callee
    const receiver = n % 2 === 0 ? pair.callee : pair.caller
    sender.send('webrtc.ice_candidate', candidate(callUuid, n))
    const { data } = await receiver.next('webrtc.ice_candidate')
    expect(data.candidate.candidate).toBe(`candidate:${n}`)
  }
  await until('each connection was ended', async () => flooded.length >= 21 && flooded.every(({ isOver }) => isOver))
  expect(Math.max(...flooded.map(({ sent }) => sent))).toBeLessThan(mostTaken)
  const { body } = await ask(service, 'GET', 'webhooks')
  const deliveries = await ask(service, 'GET', `webhooks/${body.data[0].id}/deliveries`)
  expect(deliveries.body.data.at(-1)).toMatchObject({
    response_status: null,
    response: 'too many informational answers',
  })
}, 120_000)
