import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Client, type Received } from '@ringwire/testkit/client'
import { acceptedCall, candidate, connectPair, someone } from '@ringwire/testkit/flows'
import { encodeFrame, opcodes } from '@ringwire/testkit/frames'
import { soon, until } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { residentBytes } from '../../support/process.ts'
import { type StartService, withService } from './start.ts'

const mebibyte = 1024 * 1024

/** What a participant and each of its sockets may send, and leave unread [WS7]. */
export function registerMessageLimitScenarios(name: string, start: StartService): void {
  describe(`${name}: limits`, () => {
    test.concurrent('[WS7] a slow reader is closed with 4008, its service stays small, its successor gets what it missed', () =>
      withService(start, { RINGWIRE_WS_RATE: 'off' }, slowReader))

    test.concurrent(
      '[WS7] a client that pings and reads no answers is closed with 4008',
      () =>
        withService(
          start,
          { RINGWIRE_WS_RATE: 'off', RINGWIRE_PING_INTERVAL_MS: '1000', RINGWIRE_PONG_TIMEOUT_MS: '60000' },
          pingsOnly,
        ),
      240_000,
    )

    test.concurrent('[WS7] the rate can be switched off', () =>
      withService(start, { RINGWIRE_WS_RATE: 'off' }, async (service) => {
        const client = await service.connect({ user_id: someone('guest'), role: 'agent' })
        // Until it is in, requests wait, and only a limited number of them [ORD1].
        await client.settle()
        for (let i = 0; i < 2000; i++) client.send('test.unknown', {}, `r${i}`)
        client.raw(Buffer.concat(Array.from({ length: 3000 }, () => encodeFrame(opcodes.ping, 'still here'))))
        await client.settle()
        const codes = client.all.slice(1).map(({ error }) => error.code)
        expect(new Set(codes)).toEqual(new Set(['UNKNOWN_EVENT']))
        await tooMuchAtOnce(service)
      }))

    registerDefaults(start)
  })
}

/** With the limits that people have: one service for all. */
function registerDefaults(start: StartService): void {
  let service: Service
  beforeAll(async () => {
    service = await start({})
  })
  afterAll(() => service.dispose())

  test.concurrent('[WS7] over the rate: RATE_LIMITED with retry_after_ms and request_id; after that time it is heard again', () =>
    overTheRate(service))

  test.concurrent(
    '[WS7] over the rate for 10 s: 4429, not before; what is far over it is not answered by name',
    () => floodOn(service),
    240_000,
  )

  test.concurrent('[WS7] far over the rate a call can still be hung up', () => hangUpInAFlood(service))

  for (const [what, frame] of Object.entries(floods)) {
    test.concurrent(`[WS7] a flood of ${what}: 4429 at once, and another call goes on`, () =>
      floodAtOnce(service, frame))
  }

  test.concurrent('[WS7] twenty sockets of one token are read no more than five at once, and a call on one of them can be hung up', () =>
    manySockets(service))
}

async function slowReader(service: Service): Promise<void> {
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  const pad = 'x'.repeat(40 * 1024)
  const offer = (n: number) => ({ call_uuid: callUuid, sdp: { type: 'offer', sdp: `${n} ${pad}` } })
  let sent = 0
  // No more at a time than may wait for its turn [ORD1].
  const sendFour = async () => {
    for (let i = 0; i < 4; i++, sent++) pair.caller.send('webrtc.offer', offer(sent), `offer-${sent}`)
    await pair.caller.settle()
  }

  // What the same traffic costs where it is read is not what a slow reader costs.
  while (sent < 1000) await sendFour()
  await pair.callee.next('webrtc.offer', (it) => numberOf(it) === sent - 1)
  const before = service.pids.map(residentBytes)

  pair.callee.pause()
  let refused: Received | undefined
  // Far over what the kernel holds for a socket and the log for a session.
  while (refused === undefined && sent < 2000) {
    await sendFour()
    refused = pair.caller.all.find((it) => it.error?.code === 'RELAY_BUFFER_FULL')
  }
  expect(refused?.error).toMatchObject({ code: 'RELAY_BUFFER_FULL', retryable: true })
  // 80 MiB more.
  for (let i = 0; i < 512; i++) await sendFour()
  // Memory that was let go is given back when the runtime has collected it; memory that is held never is.
  const grownBy = () => Math.max(...service.pids.map((pid, i) => residentBytes(pid) - before[i]!))
  await until('the service is small again', () => grownBy() < 48 * mebibyte)

  pair.callee.resume()
  const { code } = await pair.callee.closed
  // Whether the close frame still comes through depends on how much the kernel held.
  expect([4008, 1006]).toContain(code)

  // The log keeps the newest of what was not proven, within its bound; the successor gets it without a gap.
  const firstRefused = Number(refused!.request_id!.slice('offer-'.length))
  const successor = await service.connect({ user_id: pair.calleeId, role: 'agent' })
  await successor.settle()
  const numbers = successor.all.filter(({ event }) => event === 'webrtc.offer').map((it) => numberOf(it))
  expect(numbers.length).toBeGreaterThan(5)
  expect(numbers).toEqual(numbers.map((_, i) => firstRefused - numbers.length + i))

  pair.caller.send('webrtc.offer', offer(9999))
  expect(numberOf(await successor.next('webrtc.offer', (it) => numberOf(it) === 9999))).toBe(9999)
}

async function pingsOnly(service: Service): Promise<void> {
  const deaf = await service.connect({ user_id: someone('deaf'), role: 'agent' })
  const other = await service.connect({ user_id: someone('other'), role: 'agent' })
  deaf.pause()
  // 40 MiB of answers: far over what the kernel holds for a socket.
  const pings = Buffer.concat(Array.from({ length: 4_096 }, () => encodeFrame(opcodes.ping, Buffer.alloc(123))))
  for (let i = 0; i < 80; i++) {
    deaf.raw(pings)
    await other.settle()
  }
  // The service looks after its sockets before it pings them.
  for (let i = 0; i < 2; i++) await other.nextPing()
  deaf.resume()
  const { code } = await deaf.closed
  expect([4008, 1006]).toContain(code)
}

function numberOf(message: Received): number {
  return Number.parseInt(message.data.sdp.sdp, 10)
}

async function overTheRate(service: Service): Promise<void> {
  const client = await service.connect({ user_id: someone('guest'), role: 'agent' })
  // Nearly as many as are answered by name: of those that are refused some may pass, where reading them takes seconds.
  const asked = 390
  for (let i = 0; i < asked; i++) client.send('test.unknown', {}, `r${i}`)
  for (let i = 0; i < asked; i++) await client.next('call.error')
  const answers = client.all.slice(1)
  expect(answers.map((it) => it.request_id)).toEqual(answers.map((_, i) => `r${i}`))
  const limited = answers.filter((it) => it.error.code === 'RATE_LIMITED')
  expect(limited.length).toBeGreaterThan(30)
  expect(answers.slice(0, 200).every((it) => it.error.code === 'UNKNOWN_EVENT')).toBe(true)
  for (const { error, data } of limited) {
    expect(error).toEqual({
      code: 'RATE_LIMITED',
      message: expect.any(String),
      retryable: true,
      retry_after_ms: expect.any(Number),
      limit: 'messages',
    })
    expect(error.retry_after_ms).toBeWithin(1, 51)
    expect(data.error).toEqual(error)
  }
  // What has no request_id is refused without one; what is no envelope is not judged.
  client.text('{')
  expect(await client.next('call.error')).not.toHaveProperty('request_id')
  await Bun.sleep(limited.at(-1)!.error.retry_after_ms + 50)
  client.send('test.unknown', {}, 'again')
  expect(await client.error('again')).toMatchObject({ code: 'UNKNOWN_EVENT' })
}

async function floodOn(service: Service): Promise<void> {
  const flooder = await service.connect({ user_id: someone('flooder'), role: 'agent' })
  const polite = await service.connect({ user_id: someone('polite'), role: 'agent' })
  let closed: { code: number; reason: string } | undefined
  flooder.closed.then((it) => {
    closed = it
  })
  const limited = () => flooder.all.filter((it) => it.error?.code === 'RATE_LIMITED')
  const since = performance.now()
  // 500 at once, and 200 a second after that: nobody has to fill the machine for it.
  for (let count = 500; closed === undefined; count = 10) {
    for (let i = 0; i < count; i++) flooder.send('test.unknown', {}, 'flood')
    await Promise.race([Bun.sleep(50), flooder.closed])
  }
  expect(closed.code).toBe(4429)
  const lasted = performance.now() - since
  expect(lasted).toBeWithin(10_000, soon(20_000))
  const named = limited().filter((it) => it.request_id === 'flood')
  const others = limited().filter((it) => it.request_id === undefined)
  expect(named.length).toBeWithin(200, 210 + 20 * (lasted / 1000))
  // Unread messages are reported once a second.
  expect(others.length).toBeWithin(2, 3 + lasted / 1000)
  expect(others[0]?.error).toEqual(named[0]?.error && { ...named[0].error, retry_after_ms: expect.any(Number) })
  await polite.settle()
  expect(polite.events()).toEqual(['auth.ok'])
}

async function hangUpInAFlood(service: Service): Promise<void> {
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  const flood = () => {
    for (let i = 0; i < 600; i++) pair.caller.send('test.unknown', {}, 'flood')
  }
  flood()
  pair.caller.send('call.connected', { call_uuid: callUuid })
  pair.caller.send('call.end', { call_uuid: callUuid })
  flood()
  expect((await pair.callee.next('call.ended')).data.reason).toBe('hangup')
  // What only says that it hangs up is no way around the limit.
  flood()
  for (let i = 0; i < 30; i++) pair.caller.send('test.unknown', { not: 'call.end' }, 'named')
  await pair.caller.next('call.error', (it) => it.error.code === 'RATE_LIMITED' && it.request_id === 'named')
  expect(pair.callee.events()).toEqual(['auth.ok', 'call.ringing', 'call.ended'])
}

const floods = {
  pongs: encodeFrame(opcodes.pong, Buffer.alloc(100)),
  pings: encodeFrame(opcodes.ping, Buffer.alloc(100)),
  messages: encodeFrame(opcodes.text, JSON.stringify({ event: 'test.unknown', request_id: 'flood' })),
  'large messages': encodeFrame(opcodes.text, JSON.stringify({ event: 'test.unknown', pad: 'x'.repeat(60_000) })),
}

async function floodAtOnce(service: Service, frame: Buffer): Promise<void> {
  const flooder = await service.connect({ user_id: someone('flooder'), role: 'agent' })
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  let isClosed = false
  const closed = flooder.closed.finally(() => {
    isClosed = true
  })
  const some = Buffer.concat(Array.from({ length: Math.max(4, Math.floor(100_000 / frame.length)) }, () => frame))
  let sent = 0
  while (!isClosed && sent < 200) {
    flooder.raw(some)
    pair.caller.send('webrtc.ice_candidate', candidate(callUuid, sent))
    const { data } = await pair.callee.next('webrtc.ice_candidate')
    expect(data.candidate.candidate).toBe(`candidate:${sent++}`)
  }
  expect(await closed).toMatchObject({ code: 4429 })
}

/** Each of them within the limits of a socket. */
async function manySockets(service: Service): Promise<void> {
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  const token = await service.token({ user_id: pair.callerId, role: 'customer' })
  const others: Client[] = []
  // Each node counts for itself.
  const { url } = service
  for (let i = 0; i < 19; i++) {
    const client = new Client({ url, token })
    await client.next('auth.ok')
    others.push(client)
  }
  const arrays = Array.from({ length: 21_000 }, () => [])
  const since = performance.now()
  for (const client of others) {
    for (let i = 0; i < 4; i++) client.send('test.unknown', { arrays }, 'large')
    client.send('call.end', { call_uuid: crypto.randomUUID() }, 'last')
  }
  await Promise.all(others.map((client) => client.error('last')))
  const answers = others.flatMap((client) => client.all.slice(1))
  // 1000 KiB at once, and 200 KiB a second, of 63 each.
  const read = answers.filter(({ request_id }) => request_id === 'large').length
  expect(read).toBeWithin(16, 17 + 4 * ((performance.now() - since) / 1_000))
  const unread = answers.filter(({ request_id }) => request_id === undefined)
  expect(unread.length).toBeGreaterThan(5)
  for (const { error } of unread) expect(error).toMatchObject({ code: 'RATE_LIMITED', limit: 'messages' })
  pair.callee.send('test.unknown', {}, 'beside')
  expect(await pair.callee.error('beside')).toMatchObject({ code: 'UNKNOWN_EVENT' })
  pair.caller.send('call.end', { call_uuid: callUuid })
  expect((await pair.callee.next('call.ended')).data.reason).toBe('hangup')
}

async function tooMuchAtOnce(service: Service): Promise<void> {
  const client = await service.connect({ user_id: someone('guest'), role: 'agent' })
  const data = { callee_user_id: 'nobody', callee_role: 'customer' }
  const frames = Array.from({ length: 600 }, () => JSON.stringify({ event: 'call.invite', data }))
  // All in one write: the first is still being committed when the last arrives.
  client.raw(Buffer.concat(frames.map((it) => encodeFrame(opcodes.text, it))))
  expect(await client.closed).toMatchObject({ code: 4429 })
}
