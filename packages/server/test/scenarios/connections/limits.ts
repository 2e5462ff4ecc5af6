import { describe, expect, test } from 'bun:test'
import { Client, type Received } from '@ringwire/testkit/client'
import { acceptedCall, connectPair, invite, someone } from '@ringwire/testkit/flows'
import { FrameLog } from '@ringwire/testkit/frame-log'
import { encodeFrame, opcodes } from '@ringwire/testkit/frames'
import type { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { residentBytes } from '../../support/process.ts'
import { type StartService, withService } from './start.ts'

const mebibyte = 1024 * 1024

/** What one client can cost [WS7]. */
export function registerLimitScenarios(name: string, start: StartService): void {
  describe(`${name}: limits`, () => {
    test.concurrent('[WS7] a slow reader is closed with 4008, its service stays small, its successor gets what it missed', () =>
      withService(start, { RINGWIRE_WS_RATE: 'off' }, slowReader))

    test.concurrent(
      '[WS7] a client that pings and reads no answers is closed with 4008',
      () => withService(start, { RINGWIRE_PING_INTERVAL_MS: '1000', RINGWIRE_PONG_TIMEOUT_MS: '60000' }, pingsOnly),
      30_000,
    )

    test.concurrent('[WS7] over the rate: RATE_LIMITED with retry_after_ms and request_id; after that time it is heard again', () =>
      withService(start, {}, overTheRate))

    test.concurrent('[WS7] over the rate for 10 s: 4429, not before', () => withService(start, {}, floodOn), 30_000)

    test.concurrent('[WS7] the rate can be switched off', () =>
      withService(start, { RINGWIRE_WS_RATE: 'off' }, async (service) => {
        const client = await service.connect({ user_id: someone('guest'), role: 'agent' })
        // Until it is in, requests wait, and not so many of them [ORD1].
        await client.settle()
        for (let i = 0; i < 2000; i++) client.send('test.unknown', {}, `r${i}`)
        await client.settle()
        const codes = client.all.slice(1).map(({ error }) => error.code)
        expect(new Set(codes)).toEqual(new Set(['UNKNOWN_EVENT']))
      }))

    test.concurrent('[ORD1] requests that wait for an earlier one have a bound: 4429', () =>
      withService(start, { RINGWIRE_WS_RATE: 'off' }, tooMuchAtOnce))

    test.concurrent('[WS7] the 21st socket of a participant: the oldest that holds no place goes with 4409, for good', () =>
      withService(start, {}, twentySockets))

    test.concurrent('[WS7] over its connections a minute a participant is told so and closed with 4429, resumes included', () =>
      withService(start, { RINGWIRE_CONNECT_RATE: '3/60' }, tooManyConnects))

    test.concurrent('[WS7] where every socket holds a place, the new one is refused', () =>
      withService(start, { RINGWIRE_MAX_SOCKETS: '3' }, everySocketHolds))

    test.concurrent('[WS7] a dead socket makes room once, not twice', () =>
      withService(start, { RINGWIRE_MAX_SOCKETS: '3' }, deadSocketMakesRoom))
  })
}

async function slowReader(service: Service): Promise<void> {
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  const pad = 'x'.repeat(40 * 1024)
  const offer = (n: number) => ({ call_uuid: callUuid, sdp: { type: 'offer', sdp: `${n} ${pad}` } })
  pair.callee.pause()

  const before = residentBytes(service.pid)
  let sent = 0
  let refused: Received | undefined
  // 80 MiB and more, if nobody said stop: far over what the kernel holds for a socket and the log for a session.
  while (refused === undefined && sent < 2000) {
    pair.caller.send('webrtc.offer', offer(sent), `offer-${sent}`)
    sent++
    if (sent % 16 === 0) await pair.caller.settle()
    refused = pair.caller.all.find((it) => it.error?.code === 'RELAY_BUFFER_FULL')
  }
  expect(refused?.error).toMatchObject({ code: 'RELAY_BUFFER_FULL', retryable: true })
  for (let i = 0; i < 512; i++) {
    pair.caller.send('webrtc.offer', offer(sent + i))
    if (i % 16 === 0) await pair.caller.settle()
  }
  await pair.caller.settle()
  expect(residentBytes(service.pid) - before).toBeLessThan(64 * mebibyte)

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
  for (let i = 0; i < 260; i++) client.send('test.unknown', {}, `r${i}`)
  for (let i = 0; i < 260; i++) await client.next('call.error')
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
  let since: number | undefined
  while (closed === undefined) {
    for (let i = 0; i < 20; i++) flooder.send('test.unknown', {}, 'flood')
    await Promise.race([flooder.next('call.error'), flooder.closed])
    since ??= flooder.all.some((it) => it.error?.code === 'RATE_LIMITED') ? performance.now() : undefined
    // The flood goes on at some hundreds a second; nobody has to fill the machine for it.
    await Promise.race([Bun.sleep(50), flooder.closed])
  }
  expect(closed.code).toBe(4429)
  const lasted = performance.now() - since!
  expect(lasted).toBeWithin(9_500, 18_000)
  await polite.settle()
  expect(polite.events()).toEqual(['auth.ok'])
}

async function tooMuchAtOnce(service: Service): Promise<void> {
  const client = await service.connect({ user_id: someone('guest'), role: 'agent' })
  const data = { callee_user_id: 'nobody', callee_role: 'customer' }
  const frames = Array.from({ length: 600 }, () => JSON.stringify({ event: 'call.invite', data }))
  // All in one write: the first is still being committed when the last arrives.
  client.raw(Buffer.concat(frames.map((it) => encodeFrame(opcodes.text, it))))
  expect(await client.closed).toMatchObject({ code: 4429 })
}

async function twentySockets(service: Service): Promise<void> {
  const agentId = someone('agent')
  const token = await service.token({ user_id: agentId, role: 'agent' })
  const sockets: Client[] = []
  const open = async () => {
    const client = new Client({ url: service.url, token })
    await client.next('auth.ok')
    sockets.push(client)
    return client
  }
  for (let i = 0; i < 20; i++) await open()
  const callUuid = await invite(sockets[0]!, someone('nobody'), { callee_role: 'customer' })
  await sockets[0]!.settle()
  await open()
  expect(await sockets[1]!.closed).toMatchObject({ code: 4409 })
  await open()
  expect(await sockets[2]!.closed).toMatchObject({ code: 4409 })
  for (const client of [sockets[0]!, ...sockets.slice(3)]) await client.settle()
  // Another role of the same user_id is another participant [ID1].
  await service.connect({ user_id: agentId, role: 'customer' })
  await sockets[3]!.settle()
  sockets[0]!.send('call.cancel', { call_uuid: callUuid }, 'cancel')
  await sockets[0]!.settle()
  expect(sockets[0]!.events()).toEqual(['auth.ok', 'call.invited'])
}

async function tooManyConnects(service: Service): Promise<void> {
  // Each process counts for itself.
  const { url } = service
  const userId = someone('agent')
  const token = await service.token({ user_id: userId, role: 'agent' })
  const first = new Client({ url, token, path: '/v1/ws?ext=1' })
  const { session_id, epoch } = (await first.next('auth.ok')).data
  const resume = `/v1/ws?ext=1&resume=${session_id}&epoch=${epoch}&seq=0&n=0`
  for (let i = 0; i < 2; i++) {
    const again = new Client({ url, token, path: resume })
    expect((await again.next('auth.ok')).data.recovered).toBe(true)
  }
  for (const path of [resume, '/v1/ws']) {
    for (const by of ['subprotocol', 'header'] as const) {
      const refused = new Client({ url, token, path, by })
      expect(await refused.closed).toMatchObject({ code: 4429 })
      expect(refused.all.map(({ error }) => error)).toEqual([
        {
          code: 'RATE_LIMITED',
          message: expect.any(String),
          limit: 'connections',
          retryable: true,
          retry_after_ms: expect.any(Number),
        },
      ])
      expect(refused.all[0]!.error.retry_after_ms).toBeWithin(1, 60_001)
    }
  }
  // Whoever else comes, comes in, and who is there stays.
  const other = new Client({ url, token: await service.token({ user_id: someone('other'), role: 'agent' }) })
  await other.next('auth.ok')
}

async function everySocketHolds(service: Service): Promise<void> {
  const agentId = someone('agent')
  const token = await service.token({ user_id: agentId, role: 'agent' })
  const holders: Client[] = []
  for (let i = 0; i < 3; i++) {
    const client = new Client({ url: service.url, token })
    await client.next('auth.ok')
    await invite(client, someone('nobody'), { callee_role: 'customer' })
    await client.settle()
    holders.push(client)
  }
  const refused = new Client({ url: service.url, token })
  expect(await refused.closed).toMatchObject({ code: 4429 })
  expect(refused.all.map(({ event }) => event)).toEqual(['call.error'])
  expect(refused.all[0]?.error).toMatchObject({ code: 'RATE_LIMITED', limit: 'connections' })
  for (const holder of holders) await holder.settle()
}

async function deadSocketMakesRoom(service: Service): Promise<void> {
  const proxy = await new TcpProxy(service.url).start()
  const said = new FrameLog(proxy)
  const token = await service.token({ user_id: someone('agent'), role: 'agent' })
  const open = async (url: string) => {
    const client = new Client({ url, token })
    await client.next('auth.ok')
    return client
  }
  await open(proxy.url)
  const link = proxy.last
  const second = await open(service.url)
  const third = await open(service.url)
  link.stall()
  await open(service.url)
  await said.until((it) => it.closeCode === 4409)
  // The dead one cannot answer the close; it must not count as the oldest a second time.
  await open(service.url)
  expect(await second.closed).toMatchObject({ code: 4409 })
  await third.settle()
  proxy.stop()
}
