import { afterAll, afterEach, beforeAll, expect, spyOn, test } from 'bun:test'
import { createECDH, createHmac } from 'node:crypto'
import { join } from 'node:path'
import { block, checkTypes, writeApplication } from '@ringwire/testkit/documents'
import { invite, someone } from '@ringwire/testkit/flows'
import { makeTemporaryDirectory } from '@ringwire/testkit/process'
import { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import {
  answerTicket,
  forgetDevice,
  type NoRing,
  type PushToken,
  type Rung,
  registerDevice,
  registerPhone,
  type TicketOptions,
} from '../src/push.ts'
import type { Call, CallClient } from '../src/types.ts'
import { online, type PersonOptions, person, ringing as rings } from './support/people.ts'

const key = Buffer.alloc(32, 7)
let service: Service
beforeAll(async () => {
  service = await new Service({ RINGWIRE_JWT_SECRETS: `k:${key.toString('base64url')}` }).start()
})
afterAll(() => service.dispose())

const clients: CallClient[] = []
const networks: TcpProxy[] = []
afterEach(async () => {
  for (const client of clients.splice(0)) client.close()
  await Promise.all(networks.splice(0).map((network) => network.stop()))
})

async function newNetwork(): Promise<TcpProxy> {
  const network = await new TcpProxy(service.url).start()
  networks.push(network)
  return network
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** As the service signs it, made by hand. */
function sign(claims: object): string {
  const text = `${encode({ alg: 'HS256', typ: 'JWT', kid: 'k' })}.${encode(claims)}`
  return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`
}

async function ringing(calleeId = someone('callee'), more: object = {}) {
  const caller = await service.connect({ user_id: someone('caller'), role: 'customer' }, { path: '/v1/ws?ext=1' })
  const callUuid = await invite(caller, calleeId, { call_type: 'video', ...more })
  const seconds = Math.floor(Date.now() / 1000)
  const who = { sub: calleeId, product: 'shop', role: 'agent', call_uuid: callUuid }
  const ticket = (exp = seconds + 45) =>
    sign({ iss: 'ringwire', aud: 'ringwire-ring', purpose: 'ring', ...who, iat: seconds, exp })
  return { caller, calleeId, callUuid, ticket }
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

for (const [said, answer] of [
  ['nothing', new Promise<never>(() => {})],
  ['half an answer', new Response(new ReadableStream({ start: (body) => body.enqueue('{') }))],
] as const) {
  test(`a service that takes a question and says ${said} cannot be asked, and the question is taken back`, async () => {
    const takenBack = Promise.withResolvers<void>()
    const slow = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      idleTimeout: 0,
      fetch({ signal }) {
        signal.addEventListener('abort', () => takenBack.resolve())
        return answer
      },
    })
    try {
      // Long enough for the question to arrive.
      const ticket = answerTicket('x', { url: `http://127.0.0.1:${slow.port}`, requestTimeoutMs: 1_000 })
      await expect(ticket.reject()).rejects.toMatchObject({
        ...{ code: 'REQUEST_FAILED', message: 'The service could not be reached.', retryable: true },
        cause: { message: 'There was no answer in 1000 ms.' },
      })
      await takenBack.promise
    } finally {
      await slow.stop(true)
    }
  })
}

function agent(userId: string, options: PersonOptions = {}) {
  const it = person(service, userId, 'agent', options)
  clients.push(it.client)
  return it
}

/** What `connect` came to; none of its listeners may be left then. */
async function connect(ticket: string, client: CallClient, at: TicketOptions = service): Promise<Rung | NoRing> {
  const listeners = new Set<object>()
  const counted: CallClient = {
    ...client,
    get state() {
      return client.state
    },
    on(event, listener) {
      const end = client.on(event, listener)
      listeners.add(end)
      return () => {
        listeners.delete(end)
        end()
      }
    },
  }
  try {
    return await answerTicket(ticket, at).connect(counted)
  } finally {
    expect(listeners.size).toBe(0)
  }
}

/** A client whose connection hangs in its network, after the ticket has said that the call rings. */
async function connecting(ticket: string, calleeId: string) {
  const [network, restNetwork] = await Promise.all([newNetwork(), newNetwork()])
  const { client } = agent(calleeId, { url: network.wsUrl })
  const release = network.holdNext()
  const answered = new Promise<void>((resolve) => {
    restNetwork.onLink = (link) => link.observe('server', () => resolve())
  })
  const result = connect(ticket, client, restNetwork)
  result.catch(() => {})
  await answered
  const refuse = () => {
    network.refuse()
    restNetwork.refuse()
  }
  return { client, result, release, refuse }
}

function callOf(ring: Rung | NoRing): Call {
  if (!ring.ringing) throw new Error(`it does not ring: ${JSON.stringify(ring)}`)
  return ring.call
}

test('[TICK1] connect: the client connects, the call rings there and is accepted', async () => {
  // The name is more than ASCII.
  const { caller, calleeId, callUuid, ticket } = await ringing(someone('Zoë 📞'))
  const call = callOf(await connect(ticket(), agent(calleeId).client))
  expect(call).toMatchObject({ callUuid, direction: 'incoming', callType: 'video', state: { name: 'ringing' } })
  await call.accept()
  expect((await caller.next('call.accepted')).data.call_uuid).toBe(callUuid)
})

test('[TICK1] connect: a client that is connected already has the call', async () => {
  const callee = agent(someone('callee'))
  await online(callee)
  const { callUuid, ticket } = await ringing(callee.userId)
  const call = await rings(callee, callUuid)
  expect(callOf(await connect(ticket(), callee.client))).toBe(call)
  await call.accept()
  expect(await connect(ticket(), callee.client)).toEqual({ ringing: false, status: 'accepted', endReason: null })
})

test('[TICK1] connect: a socket that died while the device slept is replaced', async () => {
  const network = await newNetwork()
  // By itself the client would not notice before the ring is over.
  const quiet = { heartbeatMs: 600_000, heartbeatTimeoutMs: 1_000 }
  const callee = agent(someone('callee'), { url: network.wsUrl, ...quiet })
  await online(callee)
  network.silence()
  const { callUuid, ticket } = await ringing(callee.userId)
  expect(callOf(await connect(ticket(), callee.client)).callUuid).toBe(callUuid)
})

test('[TICK1] connect: a call that is over says so', async () => {
  const { caller, calleeId, callUuid, ticket } = await ringing()
  const { client } = agent(calleeId)
  expect(await connect(ticket(1), client)).toEqual({ ringing: false, status: null, endReason: null })
  caller.send('call.cancel', { call_uuid: callUuid })
  await caller.settle()
  const cancelled = { ringing: false, status: 'cancelled', endReason: 'caller_cancelled' } as const
  expect(await connect(ticket(), client)).toEqual(cancelled)
})

const gaveUp = { ringing: false, status: 'cancelled', endReason: 'caller_cancelled' } as const

test('[TICK1] connect: the caller gives up before the client gets through', async () => {
  const { caller, calleeId, callUuid, ticket } = await ringing()
  const { client, result, release } = await connecting(ticket(), calleeId)
  caller.send('call.cancel', { call_uuid: callUuid })
  await caller.settle()
  using fetched = spyOn(globalThis, 'fetch')
  const asks = () => fetched.mock.calls.filter(([url]) => String(url).endsWith('/v1/call/ring')).length
  // Timers keep their order on a machine that is busy, too: that of 1 s has been then, that of 5 s has not.
  const asked = new Promise<number>((resolve) => {
    client.on('state', ({ name }) => {
      if (name === 'online') setTimeout(() => resolve(asks()), 2_000)
    })
  })
  release()
  expect(await asked).toBe(1)
  expect(await result).toEqual(gaveUp)
  expect(client.state.name).toBe('online')
})

test('[TICK1] connect: the caller gives up, and the client never gets through', async () => {
  const { caller, calleeId, callUuid, ticket } = await ringing()
  const { client, result } = await connecting(ticket(), calleeId)
  caller.send('call.cancel', { call_uuid: callUuid })
  expect(await result).toEqual(gaveUp)
  expect(client.state.name).not.toBe('online')
})

test('[TICK1] connect: answered on another device meanwhile', async () => {
  const { calleeId, callUuid, ticket } = await ringing()
  const { result, release } = await connecting(ticket(), calleeId)
  const other = await service.connect({ user_id: calleeId, role: 'agent', device_id: 'tablet' })
  other.send('call.accept', { call_uuid: callUuid })
  await other.settle()
  release()
  expect(await result).toEqual({ ringing: false, status: 'accepted', endReason: null })
})

test('[TICK1] connect: where the clock of the device is ahead it asks no more often', async () => {
  const callee = agent(someone('callee'))
  await online(callee)
  const { caller, callUuid, ticket } = await ringing(callee.userId)
  const restNetwork = await newNetwork()
  const answers: number[] = []
  restNetwork.onLink = (link) =>
    link.observe('server', (bytes) => {
      if (!bytes.includes('HTTP/1.1 ')) return
      // The first look, and the question of a client that is online. The next one is the one that counts, and the last.
      if (answers.push(performance.now()) === 2) caller.send('call.cancel', { call_uuid: callUuid })
    })
  const now = Date.now
  using _ = spyOn(Date, 'now').mockImplementation(() => now() + 3_600_000)
  // The call does not come there.
  const client: CallClient = Object.create(callee.client, { find: { value: () => undefined } })
  expect(await answerTicket(ticket(), restNetwork).connect(client)).toEqual(gaveUp)
  expect(answers).toHaveLength(3)
  // 5 s, but for what a timer may be early.
  expect(answers[2]! - answers[1]!).toBeGreaterThan(4_900)
})

test('[TICK1] connect: the ring ends while nothing gets through', async () => {
  const { calleeId, ticket } = await ringing(undefined, { ring_timeout_ms: 5_000 })
  const { result } = await connecting(ticket(), calleeId)
  expect(await result).toMatchObject({ ringing: false, status: 'missed' })
})

test('[TICK1] connect: the ticket of somebody else rings at no client', async () => {
  const { calleeId, callUuid, ticket } = await ringing()
  const wrong = { name: 'RingwireError', code: 'CALL_NOT_PARTICIPANT', callUuid, retryable: false }
  const other = agent(someone('other'))
  await expect(connect(ticket(), other.client)).rejects.toMatchObject(wrong)
  await online(other)
  await expect(connect(ticket(), other.client)).rejects.toMatchObject(wrong)
  // Another role is another participant.
  const customer = person(service, calleeId, 'customer')
  clients.push(customer.client)
  await expect(connect(ticket(), customer.client)).rejects.toMatchObject(wrong)
})

test('[TICK1] connect: the service is away, at once and later', async () => {
  const { calleeId, ticket } = await ringing()
  const away = { name: 'RingwireError', code: 'REQUEST_FAILED', retryable: true }
  const nowhere = { url: 'http://127.0.0.1:1' }
  await expect(connect(ticket(), agent(calleeId).client, nowhere)).rejects.toMatchObject(away)
  const { result, refuse } = await connecting(ticket(), calleeId)
  refuse()
  await expect(result).rejects.toMatchObject(away)
})

/** What an application throws where its backend gives no token; the client tries again when the look is long over. */
const noToken = (more: object = {}) =>
  Object.assign(new Error('no token'), { status: 401, retryAfterMs: 3_000, ...more })

test('[TICK1] connect: a phone that wakes has no network yet: the first look and the first token may fail', async () => {
  const { calleeId, callUuid, ticket } = await ringing()
  let asked = 0
  const getToken = async () => {
    if (++asked === 1) throw noToken()
    return service.issue({ user_id: calleeId, role: 'agent' })
  }
  const restNetwork = await newNetwork()
  restNetwork.onLink = (link) => {
    if (restNetwork.links.length === 1) link.reset()
  }
  expect(callOf(await connect(ticket(), agent(calleeId, { getToken }).client, restNetwork)).callUuid).toBe(callUuid)
})

test('[TICK1] connect: there is no token twice in a row, or the service refuses two', async () => {
  const { calleeId, ticket } = await ringing()
  const getToken = async () => {
    throw noToken()
  }
  const without = agent(calleeId, { getToken })
  await expect(connect(ticket(), without.client)).rejects.toMatchObject({ code: 'TOKEN_FAILED', httpStatus: 401 })
  expect(without.states.filter(({ name }) => name === 'waiting').length).toBeGreaterThan(1)

  // The application knows that there is none: nothing is waited for.
  const signedOut = async () => {
    throw noToken({ retryable: false })
  }
  const final = { code: 'TOKEN_FAILED', retryable: false }
  await expect(connect(ticket(), agent(calleeId, { getToken: signedOut }).client)).rejects.toMatchObject(final)

  const forged = async () => {
    const token = await service.issue({ user_id: calleeId, role: 'agent' })
    return { ...token, token: `${token.token.slice(0, -4)}AAAA` }
  }
  const refused = agent(calleeId, { getToken: forged })
  await expect(connect(ticket(), refused.client)).rejects.toMatchObject({ code: 'AUTH_TOKEN_INVALID' })

  // One that was held may be refused; the next one is right.
  let asked = 0
  const stale = agent(calleeId, {
    getToken: () => (++asked === 1 ? forged() : service.issue({ user_id: calleeId, role: 'agent' })),
  })
  expect(callOf(await connect(ticket(), stale.client)).state.name).toBe('ringing')
})

test('[TICK1] connect: the client is closed meanwhile', async () => {
  const { calleeId, ticket } = await ringing()
  const { client, result } = await connecting(ticket(), calleeId)
  client.close()
  await expect(result).rejects.toMatchObject({ name: 'RingwireError', code: 'CONNECTION_CLOSED' })
})

test('[TICK1] the examples of docs/push.md have the types of the packages, and its app answers', async () => {
  const { caller, calleeId, callUuid, ticket } = await ringing()
  const directory = await makeTemporaryDirectory()
  const backend = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: async () => Response.json(await service.issue({ user_id: calleeId, role: 'agent' })),
  })
  try {
    const app = block('docs/push.md', 'ts', '## Answering')
      .replaceAll("'https://calls.example.com'", JSON.stringify(service.url))
      .replaceAll("'/call-token'", JSON.stringify(`http://127.0.0.1:${backend.port}/`))
    writeApplication(directory.path, {
      'app.ts': app,
      'register.ts': block('docs/push.md', 'ts', '## Browsers'),
      'decline.ts': block('docs/push.md', 'ts', 'A worker that is bundled'),
    })
    expect(await checkTypes(directory.path)).toBe('')
    const { client, answer } = await import(join(directory.path, 'app.ts'))
    clients.push(client)
    expect((await answer(ticket())).callUuid).toBe(callUuid)
    expect((await caller.next('call.accepted')).data.call_uuid).toBe(callUuid)
    expect(await answer(ticket())).toBeUndefined()
  } finally {
    await backend.stop(true)
    await directory.remove()
  }
})

test('[PUSH1] registerPhone: a token of FCM and one of APNs; what is wrong with it is a RingwireError', async () => {
  const token = await service.token({ user_id: someone('ben'), role: 'agent', device_id: 'phone' })
  const register = (pushToken: PushToken) => registerPhone({ url: service.url, token, pushToken })
  // This service has no credentials for either, and says so.
  expect(await register({ platform: 'fcm', token: 'fcm-token' })).toBe(false)
  const apns = { platform: 'apns', voip: true, environment: 'sandbox' } as const
  expect(await register({ ...apns, token: 'ab'.repeat(32) })).toBe(false)
  await expect(register({ ...apns, token: 'not hexadecimal' })).rejects.toMatchObject({ code: 'INVALID_REQUEST_BODY' })
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
        p256dh: createECDH('prime256v1').generateKeys().toString('base64url'),
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
