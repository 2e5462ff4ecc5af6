import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { invite, someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { answerTicket, forgetDevice, registerDevice } from '../src/push.ts'

const key = Buffer.alloc(32, 7)
let service: Service
beforeAll(async () => {
  service = await new Service({ RINGWIRE_JWT_SECRETS: `k:${key.toString('base64url')}` }).start()
})
afterAll(() => service.dispose())

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** As the service signs it, made by hand. */
function sign(claims: object): string {
  const text = `${encode({ alg: 'HS256', typ: 'JWT', kid: 'k' })}.${encode(claims)}`
  return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
}

async function ringing() {
  const calleeId = someone('callee')
  const caller = await service.connect({ user_id: someone('caller'), role: 'customer' }, { path: '/v1/ws?ext=1' })
  const callUuid = await invite(caller, calleeId, { call_type: 'video' })
  const seconds = Math.floor(Date.now() / 1000)
  const who = { sub: calleeId, product: 'shop', role: 'agent', call_uuid: callUuid }
  const ticket = (exp = seconds + 45) =>
    sign({ iss: 'ringwire', aud: 'ringwire-ring', purpose: 'ring', ...who, iat: seconds, exp })
  return { caller, callUuid, ticket }
}

test('[TICK1] answerTicket: looks, says that it rings, rejects', async () => {
  const { caller, callUuid, ticket } = await ringing()
  const answer = answerTicket(ticket(), service)
  const callerId = caller.all[0]?.data.user_id
  expect(await answer.look()).toEqual({
    ringing: true,
    callUuid,
    caller: { userId: callerId, role: 'customer', displayName: callerId },
    callType: 'video',
    contextType: 'order',
    contextId: 'order-1',
    expiresAt: expect.any(Date),
  })
  expect(await answer.alerting()).toEqual({ ringing: true })
  expect((await caller.next('call.alerting')).data.call_uuid).toBe(callUuid)
  const rejected = { ringing: false, status: 'rejected', endReason: 'declined' } as const
  expect(await answer.reject()).toEqual(rejected)
  expect((await caller.next('call.rejected')).data.call_uuid).toBe(callUuid)
  // Again, and whatever else: what became of it.
  expect(await answer.reject()).toEqual(rejected)
  expect(await answer.look()).toEqual(rejected)
  expect(await answer.alerting()).toEqual(rejected)
})

test('[TICK1] answerTicket: the ring is over, and with it the ticket', async () => {
  const { caller, callUuid, ticket } = await ringing()
  expect(await answerTicket(ticket(1), service).look()).toEqual({ ringing: false, status: null, endReason: null })
  caller.send('call.cancel', { call_uuid: callUuid })
  await caller.settle()
  expect(await answerTicket(ticket(), service).reject()).toEqual({
    ringing: false,
    status: 'cancelled',
    endReason: 'caller_cancelled',
  })
})

test('a service that cannot be asked, or is none, is a RingwireError', async () => {
  const nowhere = answerTicket('x', { url: 'http://127.0.0.1:1' })
  await expect(nowhere.look()).rejects.toMatchObject({ name: 'RingwireError', code: 'REQUEST_FAILED', retryable: true })
  const other = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('<html>', { status: 502 }) })
  try {
    const url = `http://127.0.0.1:${other.port}`
    await expect(answerTicket('x', { url }).look()).rejects.toMatchObject({ code: 'REQUEST_FAILED', httpStatus: 502 })
  } finally {
    await other.stop(true)
  }
})

test('[PUSH1] forgetDevice: a token without a device_id has none to forget', async () => {
  const wish = { user_id: someone('ben'), role: 'agent' }
  await forgetDevice({ url: service.url, token: await service.token({ ...wish, device_id: 'browser' }) })
  const token = await service.token(wish)
  await expect(forgetDevice({ url: service.url, token })).rejects.toMatchObject({ code: 'DEVICE_ID_REQUIRED' })
})

/** A browser's push manager: a real one needs its vendor's push service. */
function pushManager(publicKey: Uint8Array | undefined) {
  const subscribed: Uint8Array[] = []
  const subscriptionOf = (key: Uint8Array) => ({
    options: { applicationServerKey: key.buffer },
    toJSON: () => ({
      endpoint: 'https://push.example.net/1',
      keys: {
        p256dh: Buffer.concat([Buffer.from([4]), Buffer.alloc(64, 1)]).toString('base64url'),
        auth: 'A'.repeat(22),
      },
    }),
    async unsubscribe() {
      known = null
      return true
    },
  })
  let known = publicKey === undefined ? null : subscriptionOf(publicKey)
  const manager = {
    getSubscription: async () => known,
    async subscribe({ applicationServerKey }: { applicationServerKey: Uint8Array }) {
      if (known !== null) throw new Error('InvalidStateError')
      subscribed.push(applicationServerKey)
      known = subscriptionOf(applicationServerKey)
      return known
    },
  }
  return { subscribed, registration: { pushManager: manager } as unknown as ServiceWorkerRegistration }
}

test('[PUSH1] registerDevice: subscribes once, and anew where the key of the service is another one', async () => {
  const vapid = Uint8Array.from({ length: 65 }, (_, i) => i)
  const token = await service.token({ user_id: someone('ben'), role: 'agent', device_id: 'browser' })
  const options = { url: service.url, token, vapidPublicKey: Buffer.from(vapid).toString('base64url') }
  for (const [before, times] of [
    [undefined, 1],
    [vapid, 0],
    [vapid.toReversed(), 1],
  ] as const) {
    const { subscribed, registration } = pushManager(before)
    // This service has no key for Web Push, and says so.
    expect(await registerDevice({ ...options, registration })).toBe(false)
    expect(subscribed).toEqual(Array.from({ length: times }, () => vapid))
  }
})
