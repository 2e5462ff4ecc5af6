import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import type { ClientEventName } from '@ringwire/protocol/client-events'
import type { EndpointName } from '@ringwire/protocol/endpoints'
import { openReceiver, type Receiver } from '@ringwire/testkit/receiver'
import { productKey } from '@ringwire/testkit/service'
import { createRingTickets } from '../../src/auth/ring-ticket.ts'
import { temporaryDataDir } from '../../src/stores/sqlite/open.fixture.ts'
import { openSqlite } from '../../src/stores/sqlite/open.ts'
import { createSystemClock } from '../../src/time/clock.ts'
import { connectExtended, type ExtendedPair, ringingCall } from '../support/extended-flows.ts'
import { InProcessService } from '../support/in-process.ts'
import { inTurns, type LoopTurns, type Turn, watchTurns } from '../support/loop-turns.ts'
import { busy, crowd, few, fillSqlite, product, uuidOf } from '../support/million.ts'
import { answer, offer } from '../support/sessions.ts'
import { meterSqlite } from '../support/sqlite-work.ts'
import { type Ask, asksOf, targetOf } from './large-asks.ts'
import { useStores } from './store-walk.ts'

/*
 * SQLite answers on the thread of the event loop. Whatever the store holds, sockets have their turn after a few milliseconds.
 * The test counts what SQLite does between two turns of the loop, not the time that it takes.
 */

interface Most {
  readonly steps: number
  readonly rows: number
}
/** 100,000 instructions take 1 to 2 ms, and so does a page of 500 rows that are understood. */
const mostOfOne: Most = { steps: 100_000, rows: 600 }
/** In one turn of the loop of a service several jobs may take a step. */
const mostOfAll: Most = { steps: 250_000, rows: 1_500 }
/** Lists of keys and settings, which operators write. Commands read them whole, and a start reads the keys. */
const ofOperators = ['products.listKeys', 'products.listSettings']

const filled = temporaryDataDir()
const walked = temporaryDataDir()
const meter = meterSqlite()
beforeAll(async () => {
  await (await openSqlite({ dataDir: filled.path, synchronous: 'NORMAL', exclusive: true })).close()
  fillSqlite(filled.database, crowd, Date.now(), { isCrowded: true })
  cpSync(filled.path, walked.path, { recursive: true, force: true })
}, 120_000)
afterAll(() => {
  filled.remove()
  walked.remove()
})

const longTurns = (turns: readonly Turn[], most: Most) =>
  turns.filter(({ during, steps, rows }) => (steps > most.steps || rows > most.rows) && !ofOperators.includes(during))

test('no operation of a store reads more in one turn of the event loop, however large the store is', async () => {
  const turns = watchTurns(meter)
  turns.name('open')
  const stores = await openSqlite({ dataDir: walked.path, synchronous: 'NORMAL', exclusive: true })
  try {
    await useStores(inTurns(stores, turns), few)
    turns.name('products.revocations of all')
    expect((await stores.products.revocations(0)).length).toBeGreaterThan(mostOfAll.rows)
  } finally {
    turns.stop()
    await stores.close()
  }
  const worst = turns.worst()
  expect(worst.length).toBeGreaterThan(40)
  expect(longTurns(worst, mostOfOne)).toEqual([])
}, 120_000)

const jwtKey = Buffer.alloc(32, 7)
const tickets = createRingTickets({ secrets: [{ kid: 'test', key: jwtKey }], now: Date.now })
/** Of a ring that is over. */
const ticket = tickets.sign({ product, callUuid: uuidOf(4), ringExpiresAt: Date.now() }, busy)

async function ask(service: InProcessService, name: EndpointName, one: Ask): Promise<void> {
  const { method, path } = targetOf(name, one)
  const headers = new Headers({ 'Content-Type': 'application/json' })
  if (one.as === 'product') {
    headers.set('X-SVC-Product-Key-ID', productKey.id)
    headers.set('X-SVC-Product-Secret', productKey.secret)
  } else if (one.as === 'ticket') headers.set('Authorization', `Bearer ${ticket}`)
  else if (one.as === 'person') {
    const token = await service.token({ user_id: busy.userId, role: busy.role, device_id: 'phone' })
    headers.set('Authorization', `Bearer ${token}`)
  }
  const response = await fetch(service.url + path, {
    ...{ method, headers },
    ...(one.body !== undefined && { body: JSON.stringify(one.body) }),
  })
  let read = 0
  for await (const bytes of response.body ?? []) {
    read += bytes.length
    if (read > (one.reads ?? Number.POSITIVE_INFINITY)) break
  }
  expect({ name, path, status: response.status }).toEqual({ name, path, status: one.status })
}

/** What clients send, in the order of a call. Each of them takes effect. */
function sent(pair: ExtendedPair, token: string): Readonly<Record<ClientEventName, () => Promise<unknown>>> {
  const { caller, callee } = pair
  let call = { call_uuid: '' }
  const media = { audio: true, video: false, screen: false }
  const candidate = { candidate: 'candidate:1', sdpMid: '0', sdpMLineIndex: 0 }
  return {
    'presence.watch': () =>
      caller.request('presence.watch', { participants: [{ role: 'agent', user_id: 'callee-1' }] }),
    'auth.refresh': () => caller.request('auth.refresh', { token }),
    async 'call.reject'() {
      return callee.request('call.reject', { call_uuid: await ringingCall(pair) })
    },
    async 'call.cancel'() {
      return caller.request('call.cancel', { call_uuid: await ringingCall(pair) })
    },
    async 'call.invite'() {
      call = { call_uuid: await ringingCall(pair) }
    },
    'call.alerting': () => callee.request('call.alerting', call),
    'call.accept': () => callee.request('call.accept', call),
    'webrtc.offer': () => caller.request('webrtc.offer', offer(call.call_uuid)),
    'webrtc.answer': () => callee.request('webrtc.answer', answer(call.call_uuid)),
    'webrtc.ice_candidate': () => caller.request('webrtc.ice_candidate', { ...call, candidate }),
    'call.connected': () => callee.request('call.connected', call),
    'call.media': () => caller.request('call.media', { ...call, ...media }),
    'call.take': () => caller.request('call.take', call),
    'call.list': () => caller.request('call.list', {}),
    'call.stats': () => caller.request('call.stats', { ...call, stats: { rtt_ms: 1 } }),
    'call.transfer': () => caller.request('call.transfer', { ...call, to_role: 'agent', to_user_id: 'agent-2' }),
    'call.end': () => caller.request('call.end', call),
  }
}

async function connectBusy(service: InProcessService): Promise<ExtendedPair> {
  const calleeId = `agent-${crypto.randomUUID()}`
  const caller = await connectExtended(
    service,
    { user_id: busy.userId, role: busy.role, device_id: 'phone' },
    { can: 'take' },
  )
  const callee = await connectExtended(service, { user_id: calleeId, role: 'agent' }, { can: 'transfer' })
  return { caller, callee, callerId: busy.userId, calleeId }
}

async function serve(service: InProcessService, receiver: Receiver, turns: LoopTurns): Promise<void> {
  turns.name('start')
  await service.start()
  turns.name('connect')
  const pair = await connectBusy(service)
  const token = await service.token({ user_id: busy.userId, role: busy.role, device_id: 'phone' })
  for (const [event, send] of Object.entries(sent(pair, token))) {
    turns.name(event)
    expect({ event, reply: await send() }).not.toMatchObject({ reply: { event: 'error' } })
  }
  turns.name('disconnect')
  await Promise.all([pair.caller.leave(), pair.callee.leave()])
  for (const [name, asks] of Object.entries(asksOf(receiver.url))) {
    for (const one of asks) {
      turns.name(name)
      await ask(service, name as EndpointName, one)
    }
    // Some thousands of events of one person wait at the endpoint, which is enabled now.
    if (name === 'serverWebhookChange') await receiver.until(20)
  }
  turns.name('stop')
  await service.stop()
}

test('no endpoint, message or job of a service reads or writes more in one turn of the event loop', async () => {
  const receiver = await openReceiver()
  const service = new InProcessService(createSystemClock(), {
    RINGWIRE_DATA_DIR: filled.path,
    RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1',
    RINGWIRE_JWT_SECRETS: `test:${jwtKey.toString('base64url')}`,
    RINGWIRE_ICE_SERVERS: 'stun:127.0.0.1:3478',
  })
  const turns = watchTurns(meter)
  try {
    await serve(service, receiver, turns)
  } finally {
    turns.stop()
    await service.dispose()
    await receiver.close()
  }
  const worst = turns.worst()
  expect(longTurns(worst, mostOfAll)).toEqual([])
  // A write would wait for the writer thread and its disk. A start writes the keys of its configuration.
  expect(turns.writing().filter(({ during }) => during !== 'start')).toEqual([])
}, 120_000)
