import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { acceptedCall, candidate, connectPair } from '@ringwire/testkit/flows'
import { program } from '@ringwire/testkit/program'
import { Service } from '@ringwire/testkit/service'
import {
  about,
  answeredCall,
  candidatesOf,
  connectExtendedPair,
  connectedCall,
  type ExtendedPair,
  ringingCall,
} from '../support/extended-flows.ts'
import { Postgres } from '../support/postgres.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { answer, offer, recordOf } from '../support/sessions.ts'

let server: Postgres
let redis: RedisServer
let service: Service
let elsewhere: string
beforeAll(async () => {
  server = await Postgres.start()
  redis = await startRedis()
})
beforeEach(async () => {
  service = await new Service({ RINGWIRE_WS_RATE: 'off' }).start()
  elsewhere = mkdtempSync(join(tmpdir(), 'ringwire-elsewhere-'))
})
afterEach(async () => {
  await service.dispose()
  rmSync(elsewhere, { recursive: true, force: true })
})
afterAll(async () => {
  await server.dispose()
  await redis.stop()
})

async function ringwire(args: readonly string[], env: Record<string, string>): Promise<string> {
  const child = Bun.spawn([...program, ...args], {
    env: { PATH: process.env.PATH ?? '', RINGWIRE_DATA_DIR: service.dataDir, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(err)
  return out.trim()
}

const asCaller = ({ callerId }: { callerId: string }) => ({ user_id: callerId, role: 'customer' })
const asCallee = ({ calleeId }: { calleeId: string }) => ({ user_id: calleeId, role: 'agent' })
const people = ({ caller, callee }: ExtendedPair) => [caller, callee]

/** Both come back with the tokens that they have, and hear of their call. */
async function comeBack(pair: ExtendedPair, callUuid: string, status: string): Promise<void> {
  for (const client of people(pair)) {
    const { data } = await client.connect()
    expect(data).toMatchObject({ recovered: false })
    expect(data.active_calls).toMatchObject([{ call_uuid: callUuid, status }])
  }
}

/** Each side still has its place, and only one. */
async function talk({ caller, callee }: ExtendedPair, callUuid: string): Promise<void> {
  await caller.request('webrtc.offer', offer(callUuid))
  await callee.next('webrtc.offer', about(callUuid))
  await callee.request('webrtc.answer', answer(callUuid))
  await caller.next('webrtc.answer', about(callUuid))
  for (const n of [1, 2, 3]) await caller.request('webrtc.ice_candidate', candidate(callUuid, n))
  await callee.settle()
  expect(candidatesOf(callee, callUuid)).toEqual([1, 2, 3])
}

async function hangUp(pair: ExtendedPair, callUuid: string): Promise<void> {
  expect((await pair.caller.request('call.end', { call_uuid: callUuid })).data.status).toBe('ended')
  const { data } = await pair.callee.next('call.ended', about(callUuid))
  expect(data).toMatchObject({ reason: 'hangup', by: { user_id: pair.callerId } })
}

const targets = {
  PostgreSQL: () => ({}),
  'PostgreSQL and Redis': () => ({ REDIS_URL: redis.url }),
}
for (const [target, settings] of Object.entries(targets)) {
  test(`[RES3] live calls move to ${target}: their people notice a restart, and the calls end as usual`, () =>
    moveLiveCalls(settings()))
}

async function moveLiveCalls(settings: Record<string, string>): Promise<void> {
  const [rings, answered, connected] = await Promise.all([1, 2, 3].map(() => connectExtendedPair(service)))
  if (rings === undefined || answered === undefined || connected === undefined) throw new Error('three pairs')
  const ringsUuid = await ringingCall(rings, { metadata: { a: 1 } })
  const answeredUuid = await answeredCall(answered)
  const connectedUuid = await connectedCall(connected)
  const past = await connectPair(service)
  const pastUuid = await acceptedCall(past)
  past.caller.send('call.end', { call_uuid: pastUuid })
  await past.callee.next('call.ended')
  const base = await connectPair(service)
  const baseUuid = await acceptedCall(base)
  const before = {
    past: await recordOf(service, asCaller(past), pastUuid),
    connected: await recordOf(service, asCaller(connected), connectedUuid),
  }

  expect(await service.terminate()).toBe(0)
  await Promise.all([rings, answered, connected].flatMap(people).map((client) => client.closed))
  const DATABASE_URL = await server.database()
  const { calls, live_calls } = JSON.parse(await ringwire(['migrate', '--json'], { DATABASE_URL }))
  expect([calls, live_calls]).toEqual([5, 4])
  const RINGWIRE_JWT_SECRETS = await ringwire(['migrate', '--print-jwt-secrets'], {})
  // Another machine: nothing of the data directory is there.
  await service.start({ DATABASE_URL, RINGWIRE_JWT_SECRETS, RINGWIRE_DATA_DIR: elsewhere, ...settings })

  await comeBack(rings, ringsUuid, 'ringing')
  const ringing = await rings.callee.next('call.ringing', about(ringsUuid))
  expect(ringing.data).toMatchObject({ caller_user_id: rings.callerId, metadata: { a: 1 } })
  await rings.callee.request('call.accept', { call_uuid: ringsUuid })
  await rings.caller.next('call.accepted', about(ringsUuid))
  await comeBack(answered, answeredUuid, 'accepted')
  await comeBack(connected, connectedUuid, 'connected')
  for (const [pair, callUuid] of [
    [rings, ringsUuid],
    [answered, answeredUuid],
    [connected, connectedUuid],
  ] as const) {
    await talk(pair, callUuid)
    await hangUp(pair, callUuid)
  }
  const [caller, callee] = await Promise.all([service.connect(asCaller(base)), service.connect(asCallee(base))])
  callee.send('call.end', { call_uuid: baseUuid })
  expect((await caller.next('call.ended')).data.call_uuid).toBe(baseUuid)

  const { ended_at, duration_ms, ...asBefore } = await recordOf(service, asCaller(connected), connectedUuid)
  expect(asBefore).toEqual({ ...withoutEnd(before.connected), status: 'ended', end_reason: 'hangup' })
  expect(Date.parse(ended_at) - Date.parse(asBefore.accepted_at)).toBe(duration_ms)
  expect(await recordOf(service, asCaller(past), pastUuid)).toEqual(before.past)
  for (const [pair, callUuid] of [
    [rings, ringsUuid],
    [answered, answeredUuid],
    [base, baseUuid],
  ] as const) {
    for (const wish of [asCaller(pair), asCallee(pair)]) {
      expect(await recordOf(service, wish, callUuid)).toMatchObject({ status: 'ended', end_reason: 'hangup' })
    }
  }
  expect(service.log.split('\n').filter((line) => line.includes('"level":"error"'))).toEqual([])
}

// biome-ignore lint/suspicious/noExplicitAny: tests compare what came.
function withoutEnd({ ended_at: _, duration_ms: __, ...record }: any) {
  return record
}
