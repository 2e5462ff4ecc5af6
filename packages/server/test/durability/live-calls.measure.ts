import { Service } from '@ringwire/testkit/service'
import { Postgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'

/**
 * Two nodes, and so many live calls of a node that is gone: for how long does an event loop stand still, at rest and while the
 * places are lost? `npx bun packages/server/test/durability/live-calls.measure.ts [CALLS]`
 */
const many = Number(process.argv[2] ?? 50_000)

const postgres = await Postgres.start()
const redis = await startRedis([])
const url = await postgres.database()
const env = { DATABASE_URL: url, REDIS_URL: redis.url, RINGWIRE_JWT_SECRETS: `test:${'A'.repeat(43)}` }
const one = await new Service({ ...env, RINGWIRE_NODE_ID: 'one' }).start()
const two = await new Service({ ...env, RINGWIRE_NODE_ID: 'two' }).start()

/** Asks again and again; answers the longest waits. An event loop that stands still answers nobody. */
async function longestWaits(services: readonly Service[], isOver: () => Promise<boolean>): Promise<string> {
  const longest = services.map(() => 0)
  let going = true
  const probes = services.map(async (service, index) => {
    while (going) {
      const since = performance.now()
      await fetch(`${service.url}/healthz`)
      longest[index] = Math.max(longest[index] ?? 0, performance.now() - since)
      await Bun.sleep(5)
    }
  })
  while (!(await isOver())) await Bun.sleep(250)
  going = false
  await Promise.all(probes)
  return longest.map((ms) => `${ms.toFixed(0)} ms`).join(', ')
}

const insert = (node: string) =>
  `
  INSERT INTO calls (
    product, call_uuid, caller_role, caller_user_id, callee_role, callee_user_id, context_type, context_id, call_type,
    started_at, ring_timeout_ms, version, status, ring_expires_at, caller_place, callee_place, accepted_at
  )
  SELECT 'shop', gen_random_uuid(), 'customer', 'caller-' || n, 'agent', 'callee-' || n, 't', 'c', 'audio', at, 45000, 1,
    'accepted', at + 45000, place('a' || n), place('b' || n), at
  FROM generate_series(1, ${many}) AS n,
    LATERAL (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at) AS now`.replaceAll(
    /place\('(.)' \|\| n\)/g,
    (_, side) =>
      `json_build_object('state', 'held', 'sessionId', '${side}' || n, 'deviceId', NULL, 'node', '${node}', 'settled', true)::text`,
  )
async function left(): Promise<number> {
  const [{ n }] = await postgres.query(`SELECT count(*)::int AS n FROM calls WHERE caller_place LIKE '%held%'`, url)
  return n
}

// Nobody left a trace of this node: it is dead as soon as both have looked for long enough.
await postgres.query(insert('gone~0000000000abcdefgh'), url)
const since = performance.now()
const waits = await longestWaits([one, two], async () => (await left()) === 0)
const tookS = (performance.now() - since) / 1_000
console.log(`${many} calls of a node that is gone: lost within ${tookS.toFixed(1)} s, longest waits ${waits}`)
const restUntil = performance.now() + 10_000
console.log(`at rest: longest waits ${await longestWaits([one, two], async () => performance.now() > restUntil)}`)
await Promise.all([one.dispose(), two.dispose()])
await Promise.all([postgres.dispose(), redis.stop()])
