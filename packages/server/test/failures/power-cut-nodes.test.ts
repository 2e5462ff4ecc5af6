import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { Redis } from 'ioredis'
import { about, answeredCall, connectedCall } from '../support/extended-flows.ts'
import { flush } from './lost-keys.ts'
import { hangUp, pairOn, stopAll } from './people.ts'
import { toldOf, worldFor } from './world.ts'

/** Node one is slow to reach its database, where a test wants that. */
let way: TcpProxy
let delayMs = 0
const world = worldFor({
  async databaseUrlOf(url, node) {
    if (node === 'two') return url
    way = new TcpProxy(url)
    way.onLink = (link) => link.delay(delayMs)
    await way.start()
    const through = new URL(url)
    through.port = String(way.port)
    return through.href
  },
  atEnd: () => way.stop(),
})

/** What Redis says: which node makes up sessions, and how many there are. */
async function madeUp(): Promise<{ maker: string | null; rows: number }> {
  const client = new Redis(world().redis.url)
  const [[marker], rows] = await Promise.all([client.keys('*rw:w:0'), client.keys('*rw:{*}:o:*')])
  const maker = marker === undefined ? null : await client.hget(marker, 'maker')
  client.disconnect()
  return { maker, rows: rows.length }
}

test('[RES3] [WS4] after a power cut the node that makes up sessions is killed: the other one that starts takes that over', async () => {
  const { one, two, redis } = world()
  const [ending, ...talking] = await Promise.all(Array.from({ length: 20 }, () => pairOn(one, two)))
  const toEnd = await answeredCall(ending!)
  const talks = await Promise.all(talking.map(connectedCall))
  await ending!.callee.die()
  await ending!.caller.request('call.end', { call_uuid: toEnd })
  await Promise.all([one.kill(), two.kill()])
  await flush(redis)
  delayMs = 50
  const starting = one.start().catch(() => {})
  await until('the one has it to do', async () => (await madeUp()).maker?.startsWith('one') === true)
  const second = two.start()
  await until('some are made up', async () => (await madeUp()).rows > 0)
  await one.kill()
  // It was in the middle of that.
  expect((await madeUp()).maker).toStartWith('one')
  await Promise.all([second, starting])
  expect(await madeUp()).toMatchObject({ maker: null })

  const pairs = [ending!, ...talking]
  for (const { caller, callee } of pairs) for (const client of [caller, callee]) client.url = two.url
  await Promise.all(talking.map(({ caller }) => caller.connect()))
  await Promise.all([ending!, ...talking].map(({ callee }) => callee.connect()))
  await ending!.callee.next('call.ended', about(toEnd))
  await Promise.all(talking.map((pair, i) => hangUp(two, pair, talks[i] as string)))
  for (const { caller, callee } of talking) await Promise.all([caller.settle(), callee.settle()])
  expect(toldOf(ending!.callee, 'call.ended', toEnd)).toBe(1)
  expect(talking.map(({ caller }, i) => toldOf(caller, 'call.ended', talks[i] as string))).toEqual(talks.map(() => 1))
  stopAll(...pairs)
  delayMs = 0
  await one.start()
}, 240_000)

test('[RES4] Redis is emptied and a node starts while another one serves: sessions of that one are its own, and nobody hears of it', async () => {
  const { one, two, redis } = world()
  const [here, there] = await Promise.all([pairOn(one, one), pairOn(one, one)])
  const [talks, ended] = [await connectedCall(here), await connectedCall(there)]
  await hangUp(one, there, ended)
  await two.kill()
  await flush(redis)
  await two.start()
  expect(await madeUp()).toMatchObject({ maker: null })
  for (const client of [here.caller, here.callee, there.caller]) {
    client.url = two.url
    await client.die()
    expect((await client.connect()).data).toMatchObject({ recovered: true })
  }
  await hangUp(two, here, talks)
  await Promise.all([here.caller, there.caller].map((client) => client.settle()))
  expect(toldOf(there.caller, 'call.ended', ended)).toBe(1)
  expect(toldOf(here.caller, 'call.ended', talks)).toBe(1)
  stopAll(here, there)
}, 120_000)
