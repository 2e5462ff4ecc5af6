import { afterAll, expect, test } from 'bun:test'
import { candidate } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { Redis } from 'ioredis'
import { connectedCall } from '../support/extended-flows.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'
import { hangUp, numbersTo, pairOn, stopAll } from './people.ts'
import { becomesReady, insist, worldFor } from './world.ts'

/** The nodes' way to Redis, as the name of a managed one is, and the replica's way to its master. */
let nodesWay: Promise<TcpProxy> | undefined
let replicaWay: TcpProxy | undefined
let replica: RedisServer | undefined

afterAll(async () => {
  await Promise.all([nodesWay?.then((gate) => gate.stop()), replicaWay?.stop(), replica?.stop()])
})

const world = worldFor({
  async redisUrlOf(redis) {
    nodesWay ??= new TcpProxy(redis.url).start()
    return `redis://${(await nodesWay).host}`
  },
})

test('[RES2] [RES4] Redis is replaced by a replica that lags: calls go on, nobody is told twice, and nobody hears of it', async () => {
  const { one, two, redis } = world()
  replicaWay = await new TcpProxy(redis.url).start()
  replica = await startRedis(['--replicaof', '127.0.0.1', String(replicaWay.port)])
  const admin = new Redis(replica.url)
  await until('the replica follows', async () => (await admin.info('replication')).includes('master_link_status:up'))
  const [pair, away] = await Promise.all([pairOn(one, two), pairOn(one, two)])
  const call = await connectedCall(pair)
  const other = await connectedCall(away)
  for (const client of [pair.caller, pair.callee]) await client.request('webrtc.ice_candidate', candidate(call, 0))
  for (const client of [away.caller, away.callee]) await client.request('webrtc.ice_candidate', candidate(other, 0))
  const head = await admin.dbsize()
  expect(head).toBeGreaterThan(0)

  // The replica does not get messages that come now.
  replicaWay.stall()
  for (let n = 1; n <= 20; n++) await pair.caller.request('webrtc.ice_candidate', candidate(call, n))
  await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':20'))
  const seqBefore = pair.callee.seq
  const pointBefore = away.callee.point
  await away.callee.die()
  await admin.call('REPLICAOF', 'NO', 'ONE')
  ;(await nodesWay)?.leadTo(replica.url)
  await becomesReady(one, two)
  for (let n = 21; n <= 25; n++) await insist(pair.caller, 'webrtc.ice_candidate', candidate(call, n))
  await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':25'))
  expect(numbersTo(pair.callee, call)).toEqual(Array.from({ length: 26 }, (_, n) => n))

  expect(pair.callee.seq).toBeGreaterThan(seqBefore)
  for (const client of [pair.caller, pair.callee]) expect(client.events()).not.toContain('session.reset')
  // Its log is in the memory of its node, whatever the replica has of it.
  const hello = await away.callee.connect(pointBefore)
  expect(hello.data).toMatchObject({ recovered: true, active_calls: [{ call_uuid: other, holds_place: true }] })
  await hangUp(one, pair, call)
  await hangUp(two, away, other)
  admin.disconnect()
  stopAll(pair, away)
}, 240_000)
