import { expect, test } from 'bun:test'
import { Client } from '@ringwire/testkit/client'
import { candidate, someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { Redis } from 'ioredis'
import { connectExtended, connectedCall } from '../support/extended-flows.ts'
import { inviteOf } from '../support/sessions.ts'
import { hangUp, numbersTo, pairOn, stopAll } from './people.ts'
import { becomesReady, insist, worldFor } from './world.ts'

/** Between node one and each of its stores. */
const links: { redis?: TcpProxy; postgres?: TcpProxy } = {}

async function through(url: string, store: keyof typeof links): Promise<string> {
  const link = await new TcpProxy(url).start()
  links[store] = link
  const proxied = new URL(url)
  proxied.port = String(link.port)
  return proxied.href
}

const world = worldFor({
  databaseUrlOf: (url, node) => (node === 'one' ? through(url, 'postgres') : url),
  redisUrlOf: ({ url }, node) => (node === 'one' ? through(url, 'redis') : url),
  async atEnd() {
    await Promise.all(Object.values(links).map((link) => link.stop()))
  },
})

/** Both nodes have to serve for this time before one finds at once that the other is dead, in seconds. */
const settledS = 8
const cutMs = 3_000
const dead = 'its process is dead'

/** Both nodes have held their signs for a while, in both stores. */
async function signsAreSettled(): Promise<void> {
  const { postgres, databaseUrl, redis } = world()
  const client = new Redis(redis.url)
  const areLocksOld = async () => {
    const rows = await postgres.query(
      `SELECT FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' AND mode = 'ShareLock'
       AND clock_timestamp() - backend_start > interval '${settledS} s'`,
      databaseUrl,
    )
    return rows.length === 2
  }
  const areSubscribersOld = async () => {
    const list = String(await client.call('CLIENT', 'LIST', 'TYPE', 'pubsub'))
    return [...list.matchAll(/ age=(\d+) /g)].filter(([, age]) => Number(age) > settledS).length === 2
  }
  await until('both nodes have held their signs', async () => (await areLocksOld()) && (await areSubscribersOld()))
  client.disconnect()
}

/** Node one says nothing in a store for as long as it is cut from it. */
const silenceIn = {
  async redis() {
    const client = new Redis(world().redis.url)
    try {
      const list = await client.zrange('rw:alive', '0', '-1', 'WITHSCORES')
      const saidAt = list[list.findIndex((each) => each.startsWith('one~')) + 1]
      const [s, us] = (await client.time()) as unknown as [string, string]
      return Number(s) * 1_000 + Number(us) / 1_000 - Number(saidAt)
    } finally {
      client.disconnect()
    }
  },
  async postgres() {
    const { postgres, databaseUrl } = world()
    const [row] = await postgres.query(
      `SELECT min(extract(epoch FROM clock_timestamp() - seen_at) * 1000)::float8 AS ms FROM nodes WHERE name LIKE 'one~%'`,
      databaseUrl,
    )
    return row.ms as number
  },
}

for (const store of ['redis', 'postgres'] as const) {
  test(`[PLACE3] [END3] a node that is cut from ${store} alone for 3 s is not taken for dead: nobody is closed, and nothing is lost`, async () => {
    const { one, two } = world()
    await signsAreSettled()
    const pairs = await Promise.all([pairOn(one, two), pairOn(two, one), pairOn(one, one)])
    const calls = await Promise.all(pairs.map(connectedCall))
    const sent = [0, 0, 0]
    const relayAll = () =>
      Promise.all(
        pairs.map(async ({ caller }, i) => {
          await insist(caller, 'webrtc.ice_candidate', candidate(calls[i]!, sent[i]!))
          sent[i]!++
        }),
      )
    await relayAll()
    links[store]!.refuse()
    // Relays to the node are questions that it may leave unanswered: each is a reason to look whether it lives.
    const relaying = relayAll()
    await until('it was cut for a while', async () => (await silenceIn[store]()) > cutMs)
    links[store]!.mend()
    await relaying
    await becomesReady(one, two)
    await relayAll()
    for (const [i, pair] of pairs.entries()) {
      await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':2'))
      expect(numbersTo(pair.callee, calls[i]!)).toEqual([0, 1, 2])
      for (const client of [pair.caller, pair.callee])
        expect(client.entries.filter(({ kind }) => kind === 'closed')).toEqual([])
      await hangUp(one, pair, calls[i]!)
    }
    expect(two.log).not.toContain(dead)
    stopAll(...pairs)
  }, 240_000)
}

test('[PLACE4] [RES1] kill -9 of a node: both stores let go of it, and its clients hear their peers on the other node', async () => {
  const { one, two } = world()
  await signsAreSettled()
  const pair = await pairOn(one, two)
  const call = await connectedCall(pair)
  const [callerId, calleeId] = [someone('caller'), someone('callee')]
  const peer = await connectExtended(two, { user_id: callerId, role: 'customer', device_id: 'of-caller' })
  const token = await one.token({ user_id: calleeId, role: 'agent', device_id: 'of-callee' })
  const base = new Client({ url: one.url, token })
  await base.next('auth.ok')
  const other = crypto.randomUUID()
  await peer.request('call.invite', inviteOf(calleeId, { call_uuid: other }))
  await base.next('call.ringing')
  base.send('call.accept', { call_uuid: other })
  await peer.next('call.accepted')

  await one.kill()
  const back = new Client({ url: two.url, token })
  pair.caller.url = two.url
  await Promise.all([
    back.next('webrtc.ice_candidate'),
    insist(peer, 'webrtc.ice_candidate', candidate(other, 0)),
    pair.caller.connect(),
    insist(pair.callee, 'webrtc.ice_candidate', candidate(call, 0)),
  ])
  await pair.caller.next('webrtc.ice_candidate')
  expect(pair.caller.hello?.data).toMatchObject({ recovered: true })
  expect(two.log.split('\n').filter((line) => line.includes(dead)).length).toBe(1)
  back.send('call.end', { call_uuid: other })
  await peer.next('call.ended')
  await hangUp(two, pair, call)
  stopAll(pair)
  peer.stop()
  await back.close()
  await one.start()
  await becomesReady(one)
}, 240_000)
