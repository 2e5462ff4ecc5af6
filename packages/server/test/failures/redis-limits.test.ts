import { expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { productKey, type Service } from '@ringwire/testkit/service'
import { Redis } from 'ioredis'
import { isAskedToComeLater } from './people.ts'
import { becomesReady, becomesUnready, inTime, limitMs, saysFull, worldFor } from './world.ts'

const limit = 10
/** Each step asks from an address of its own, as a proxy names it. */
const world = worldFor({ env: { RINGWIRE_TOKEN_RATE_IP: `${limit}/3600`, RINGWIRE_TRUST_PROXY: '1' } })

/** Asks for `count` tokens, in turn at these nodes; answers the statuses. None waits for what is counted. */
async function statusesOf(count: number, address: string, ...nodes: readonly Service[]): Promise<number[]> {
  const statuses: number[] = []
  for (let i = 0; i < count; i++) {
    const { status, headers } = await inTime(askForToken(nodes[i % nodes.length]!, address), limitMs)
    expect(headers.has('retry-after')).toBe(status === 429)
    statuses.push(status)
  }
  return statuses
}

function askForToken({ url }: Service, address: string): Promise<Response> {
  return fetch(`${url}/v1/call/session-token`, {
    method: 'POST',
    // The service closes a connection that was idle for 10 s, perhaps just when it is used again.
    keepalive: false,
    headers: {
      'Content-Type': 'application/json',
      'X-SVC-Product-Key-ID': productKey.id,
      'X-SVC-Product-Secret': productKey.secret,
      'X-Forwarded-For': address,
    },
    body: JSON.stringify({
      ...{ context_type: 'order', context_id: 'order-1', user_id: someone('guest'), role: 'customer' },
      ...{ display_name: 'Guest', allowed_peer_role: 'agent' },
    }),
  })
}

/** As many as the limit allows, and then `refused` refusals. */
const allowedThenRefused = (refused: number) => [...Array(limit).fill(200), ...Array(refused).fill(429)]

const saysOfLimits = ({ log }: Service, what: string) => log.split(`Redis is ${what}: limits are counted`).length - 1

let host = 0
const newAddress = () => `192.0.2.${++host}`

/** Both count for one address. If Redis answers late, as on a busy machine, they do not for a while: then another one. */
async function countTogether(nodes: readonly Service[]): Promise<number[]> {
  const timesAway = () => nodes.reduce((sum, node) => sum + saysOfLimits(node, 'away'), 0)
  for (;;) {
    const before = timesAway()
    const statuses = await statusesOf(limit + 2, newAddress(), ...nodes)
    if (timesAway() === before) return statuses
    await areBack(nodes)
  }
}

async function areBack(nodes: readonly Service[]): Promise<void> {
  const isBack = (node: Service) => saysOfLimits(node, 'back') === saysOfLimits(node, 'away')
  await until('the limits are back', () => nodes.every(isBack))
}

test('[TOK5] Redis is killed: each node counts tokens for itself, 200 up to the limit and then 429; back, both count together', async () => {
  const { one, two, redis } = world()
  const nodes = [one, two]
  expect(await countTogether(nodes)).toEqual(allowedThenRefused(2))

  const before = nodes.map((node) => saysOfLimits(node, 'away'))
  await redis.kill()
  // At once, and before anybody has found out: nobody is refused for it, and nobody waits.
  const apart = (address: string) => Promise.all(nodes.map((node) => statusesOf(limit + 2, address, node)))
  expect(await apart(newAddress())).toEqual([allowedThenRefused(2), allowedThenRefused(2)])
  await becomesUnready('redis', one, two)
  expect(await apart(newAddress())).toEqual([allowedThenRefused(2), allowedThenRefused(2)])

  await redis.restart()
  await becomesReady(one, two)
  await areBack(nodes)
  // Once, however many requests found it away.
  expect(nodes.map((node) => saysOfLimits(node, 'away'))).toEqual(before.map((times) => times + 1))
  expect(await countTogether(nodes)).toEqual(allowedThenRefused(2))
}, 240_000)

test('[HEALTH1] [LOG2] Redis at maxmemory answers, and takes nothing: no node is ready until there is room, and the log says so', async () => {
  const { one, two, redis } = world()
  const admin = new Redis(redis.url)
  try {
    await becomesReady(one, two)
    const token = await one.token({ user_id: someone('guest') })
    await admin.config('SET', 'maxmemory', '1')
    await becomesUnready('redis', one, two)
    for (const node of [one, two]) await isAskedToComeLater(node, token)
    await saysFull(/OOM command not allowed/, one, two)
    await admin.config('SET', 'maxmemory', '0')
    await becomesReady(one, two)
  } finally {
    admin.disconnect()
  }
}, 240_000)
