import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Client } from '@ringwire/testkit/client'
import { someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { type Databases, openDatabases } from '../support/postgres.ts'
import { openRedisDatabases, type RedisDatabases } from '../support/redis.ts'

const old = `k1:${'A'.repeat(43)}`
const fresh = `k2:${'B'.repeat(43)}`
/** The order of docs/operations.md: known everywhere before it signs anywhere, and gone after the last token. */
const added = `${old},${fresh}`
const promoted = `${fresh},${old}`
const ttlMs = 4_000

let databases: Databases
let redis: RedisDatabases
let nodes: Service[] = []
beforeAll(async () => {
  ;[databases, redis] = await Promise.all([openDatabases(), openRedisDatabases()])
  const [databaseUrl, redisUrl] = await Promise.all([databases.database(), redis.database()])
  const node = (name: string) =>
    new Service({
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      RINGWIRE_NODE_ID: name,
      RINGWIRE_JWT_SECRETS: old,
      RINGWIRE_TOKEN_TTL_S: String(ttlMs / 1000),
      RINGWIRE_DRAIN_MS: '200',
    })
  nodes = ['one', 'two', 'three'].map(node)
  await Promise.all(nodes.map((each) => each.start()))
}, 240_000)
afterAll(async () => {
  await Promise.all(nodes.map((node) => node.dispose()))
  await Promise.all([databases.dispose(), redis.stop()])
})

/** People who ask any node for a token and show it to any other, again and again, and stay a while; the codes of their closes. */
function comeAndGo(count: number) {
  const up = new Set(nodes)
  const codes = new Map<number | string, number>()
  const note = (code: number | string) => codes.set(code, (codes.get(code) ?? 0) + 1)
  const anyNode = () => [...up][Math.floor(Math.random() * up.size)] as Service
  let isOver = false

  async function one(): Promise<void> {
    const user_id = someone('ann')
    while (!isOver) {
      const issued = await anyNode()
        .issue({ user_id, role: 'agent' })
        .catch(() => undefined)
      if (issued === undefined) continue
      // The same token at several nodes, and well before its end.
      for (let visit = 0; visit < 3 && !isOver; visit++) {
        const client = new Client({ url: anyNode().url, token: issued.token })
        const stay = Bun.sleep(300).then(() => client.close())
        note((await client.closed).code)
        await stay
        if (client.events()[0] === 'auth.ok') note('in')
      }
    }
  }
  const work = Promise.all(Array.from({ length: count }, one))
  return {
    up,
    codes,
    async stop() {
      isOver = true
      await work
    },
  }
}

/** One node after another is stopped and comes back with these keys. */
async function roll(up: Set<Service>, keys: string): Promise<void> {
  for (const node of nodes) {
    up.delete(node)
    await node.terminate()
    await node.start({ RINGWIRE_JWT_SECRETS: keys })
    up.add(node)
  }
}

test('[TOK2] [TOK5] a new key is added, promoted and the old one removed, node by node, and nobody gets 4401', async () => {
  const people = comeAndGo(12)
  await roll(people.up, added)
  await roll(people.up, promoted)
  const lastOld = Bun.sleep(ttlMs)
  const { token } = await nodes[0]!.issue({ user_id: someone('late'), role: 'agent' })
  expect(JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()).kid).toBe('k2')
  await lastOld
  await roll(people.up, fresh)
  await people.stop()
  expect(people.codes.get('in')).toBeGreaterThan(50)
  expect(people.codes.get(4401)).toBeUndefined()
}, 240_000)
