import { describe, expect, test } from 'bun:test'
import { Client } from '@ringwire/testkit/client'
import { invite, someone } from '@ringwire/testkit/flows'
import { FrameLog } from '@ringwire/testkit/frame-log'
import { soon } from '@ringwire/testkit/patience'
import type { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { type StartService, withService } from './start.ts'

/** The close of a socket at another node travels by Redis. In ms. */
const toldWithinMs = 5_000

/** How often a participant may connect, and how many sockets it may have [WS7]. */
export function registerSocketLimitScenarios(name: string, start: StartService): void {
  describe(`${name}: limits`, () => {
    test.concurrent('[WS7] over its connections a participant is told so and closed with 4429, resumes included', () =>
      withService(start, { RINGWIRE_CONNECT_RATE: '3/60' }, tooManyConnects))

    test.concurrent('[WS7] the 21st socket of a participant: the oldest that holds no place goes with 4409, for good', () =>
      withService(start, {}, twentySockets))

    test.concurrent('[WS7] where every socket holds a place, the new one is refused', () =>
      withService(start, { RINGWIRE_MAX_SOCKETS: '3' }, everySocketHolds))

    test.concurrent('[WS7] a dead socket makes room once, not twice', () =>
      withService(start, { RINGWIRE_MAX_SOCKETS: '3' }, deadSocketMakesRoom))
  })
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
      expect(await Promise.race([refused.closed, refused.next('auth.ok')])).toMatchObject({ code: 4429 })
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
  await insistentConnects(url, token)
  // Everybody else who comes gets in, and those who are there stay.
  const other = new Client({ url, token: await service.token({ user_id: someone('other'), role: 'agent' }) })
  await other.next('auth.ok')
}

/** After twenty refusals in words a short one has to do, and no socket is opened for it. */
async function insistentConnects(url: string, token: string): Promise<void> {
  for (let i = 4; i < 20; i++) expect(await new Client({ url, token }).closed).toMatchObject({ code: 4429 })
  const headers = {
    Upgrade: 'websocket',
    Connection: 'Upgrade',
    'Sec-WebSocket-Key': 'AAAAAAAAAAAAAAAAAAAAAA==',
    'Sec-WebSocket-Version': '13',
    Authorization: `Bearer ${token}`,
  }
  const asked = performance.now()
  const refused = await fetch(new URL('/v1/ws', url.replace(/^ws/, 'http')), { headers })
  expect(refused.status).toBe(429)
  expect(performance.now() - asked).toBeGreaterThan(990)
  expect(await refused.json()).toMatchObject({ error: { code: 'RATE_LIMITED' } })
  expect(Number(refused.headers.get('retry-after'))).toBeWithin(1, 61)
  expect(refused.headers.get('connection')).toBe('close')
}

async function twentySockets(service: Service): Promise<void> {
  const agentId = someone('agent')
  const token = await service.token({ user_id: agentId, role: 'agent' })
  const sockets: Client[] = []
  const open = async () => {
    const client = service.open(token)
    await client.next('auth.ok')
    sockets.push(client)
  }
  for (let i = 0; i < 20; i++) await open()
  const callUuid = await invite(sockets[0]!, someone('nobody'), { callee_role: 'customer' })
  await sockets[0]!.settle()
  for (const oldest of [sockets[1]!, sockets[2]!]) {
    expect(await openUntil(oldest.closed, open)).toMatchObject({ code: 4409 })
  }
  const others = [sockets[0]!, ...sockets.slice(-19)]
  for (const client of others) await client.settle()
  // Another role of the same user_id is another participant [ID1].
  await service.connect({ user_id: agentId, role: 'customer' })
  await others[1]!.settle()
  sockets[0]!.send('call.cancel', { call_uuid: callUuid }, 'cancel')
  await sockets[0]!.settle()
  expect(sockets[0]!.events()).toEqual(['auth.ok', 'call.invited'])
}

/**
 * Opens one more connection, and waits for what that comes to. A node that stood still may have been taken for dead, and its
 * sockets not been counted: the next connection puts that right [WS7].
 */
async function openUntil<T>(told: Promise<T>, open: () => Promise<void>): Promise<T> {
  for (let tries = 0; tries < 3; tries++) {
    await open()
    const answer = await Promise.race([told.then((it) => ({ it })), Bun.sleep(soon(toldWithinMs))])
    if (answer !== undefined) return answer.it
  }
  throw new Error('three more connections, and nobody had to go')
}

async function everySocketHolds(service: Service): Promise<void> {
  const agentId = someone('agent')
  const token = await service.token({ user_id: agentId, role: 'agent' })
  const holders: Client[] = []
  for (let i = 0; i < 3; i++) {
    const client = service.open(token)
    await client.next('auth.ok')
    await invite(client, someone('nobody'), { callee_role: 'customer' })
    await client.settle()
    holders.push(client)
  }
  const refusal = Promise.withResolvers<Client>()
  const refused = await openUntil(refusal.promise, async () => {
    const client = service.open(token)
    await Promise.race([client.closed.then(() => refusal.resolve(client)), client.next('auth.ok')])
  })
  expect(await refused.closed).toMatchObject({ code: 4429 })
  expect(refused.all.map(({ event }) => event)).toEqual(['call.error'])
  const told = { code: 'RATE_LIMITED', limit: 'connections', retry_after_ms: 5000 }
  expect(refused.all[0]?.error).toMatchObject(told)
  for (const holder of holders) await holder.settle()
}

async function deadSocketMakesRoom(service: Service): Promise<void> {
  const proxy = await new TcpProxy(service.nextUrl()).start()
  const said = new FrameLog(proxy)
  const token = await service.token({ user_id: someone('agent'), role: 'agent' })
  const sockets: Client[] = []
  const open = async (url = service.nextUrl()) => {
    const client = new Client({ url, token })
    await client.next('auth.ok')
    sockets.push(client)
  }
  await open(proxy.url)
  const link = proxy.last
  await open()
  await open()
  link.stall()
  await openUntil(
    said.until((it) => it.closeCode === 4409),
    open,
  )
  // The dead one cannot answer the close; it must not count as the oldest a second time.
  expect(await openUntil(sockets[1]!.closed, open)).toMatchObject({ code: 4409 })
  for (const client of sockets.slice(-3)) await client.settle()
  proxy.stop()
}
