import { Service } from '@ringwire/testkit/service'
import { Postgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'

/**
 * Many live calls of a node that is gone, and half as many that have just ended: for how long do event loops stand still
 * while others make up for it, at rest, if a node dies or starts next to them, and if a single node starts?
 * `npx bun packages/server/test/durability/live-calls.measure.ts [CALLS]`
 *
 * A stop counts by what the main thread ran in it: on a busy machine the rest is others'. With `PROFILE=DIRECTORY` each
 * service that ends in order leaves a profile there.
 */
const many = Number(process.argv[2] ?? 50_000)
const { PROFILE: profile } = process.env

const probe = new URL('../support/loop-probe.ts', import.meta.url).pathname
const profiling = profile === undefined ? '' : ` --cpu-prof --cpu-prof-dir=${profile}`
const postgres = await Postgres.start()
const redis = await startRedis([])
const url = await postgres.database()
const env = {
  BUN_OPTIONS: `--preload=${probe}${profiling}`,
  DATABASE_URL: url,
  REDIS_URL: redis.url,
  RINGWIRE_JWT_SECRETS: `test:${'A'.repeat(43)}`,
}
const services = new Map<string, Service>()
async function start(nodeId: string): Promise<void> {
  const service = new Service({ ...env, RINGWIRE_NODE_ID: nodeId })
  services.set(nodeId, service)
  const since = performance.now()
  // A single node takes all calls over before it listens.
  await service.start().catch(() => {})
  while (!service.out.includes('Ringwire listens')) await Bun.sleep(100)
  const seconds = ((performance.now() - since) / 1_000).toFixed(1)
  console.log(`${nodeId} starts: listens after ${seconds} s, longest stop until then ${longestStop(nodeId, service)}`)
}

/** How much of each log was looked at. */
const read = new Map<string, number>()
function longestStop(nodeId: string, { log }: Service): string {
  const stops = [...log.slice(read.get(nodeId) ?? 0).matchAll(/^loop stop (\d+) ms, ran (\d+) ms$/gm)]
  read.set(nodeId, log.length)
  const most = (column: 1 | 2) => Math.max(0, ...stops.map((stop) => Number(stop[column])))
  return `${most(2)} ms (${most(1)} ms with what others ran)`
}

/** Until it is over; prints for how long each service stood still at most since the last phase. */
async function phase(what: string, isOver: () => Promise<boolean>): Promise<void> {
  const since = performance.now()
  while (!(await isOver())) await Bun.sleep(250)
  const seconds = ((performance.now() - since) / 1_000).toFixed(1)
  const longest = [...services].map(([nodeId, service]) => `${nodeId} ${longestStop(nodeId, service)}`)
  console.log(`${what}: ${seconds} s, longest stops: ${longest.join(', ')}`)
}

/** The id of a session of a participant of `shop`: its tag comes from the name by which the participant is known. */
const idOf = (role: string, user: string) => `
  substr(translate(encode(sha256(convert_to(
    '4:${role.length}:' || length(${user}) || ':shop${role}' || ${user}, 'UTF8')), 'base64'), '+/', '-_'), 1, 3)
  || substr(md5(${user}), 1, 22)`
const placeOf = (role: string, user: string, node: string) => `
  json_build_object('state', 'held', 'sessionId', ${idOf(role, user)}, 'deviceId', NULL, 'node', '${node}', 'settled', true)::text`
/** Calls numbered from `first`, all answered; those that are over ended within the last 40 s. */
const insert = (first: number, count: number, node: string, isOver: boolean) => `
  WITH made AS (
    INSERT INTO calls (
      product, call_uuid, caller_role, caller_user_id, callee_role, callee_user_id, context_type, context_id, call_type,
      started_at, ring_timeout_ms, version, status, ring_expires_at, caller_place, callee_place, accepted_at, ended_at
    )
    SELECT 'shop', gen_random_uuid(), 'customer', caller, 'agent', callee, 't', 'c', 'audio', at - 60000, 45000, 1,
      '${isOver ? 'ended' : 'accepted'}', at, ${placeOf('customer', 'caller', node)}, ${placeOf('agent', 'callee', node)},
      at - 50000, ${isOver ? 'at' : 'NULL'}
    FROM generate_series(${first}, ${first + count - 1}) AS n,
      LATERAL (SELECT 'caller-' || n AS caller, 'callee-' || n AS callee,
        (extract(epoch FROM clock_timestamp()) * 1000)::bigint - n % 40000 AS at) AS of
    RETURNING id, status, coalesce(ended_at, accepted_at) AS at
  )
  INSERT INTO call_events (call_id, version, type, at) SELECT id, 1, status, at FROM made`

async function held(): Promise<number> {
  const [{ n }] = await postgres.query(
    `SELECT count(*)::int AS n FROM calls WHERE ended_at IS NULL AND caller_place LIKE '%held%'`,
    url,
  )
  return n
}
function after(ms: number) {
  const until = performance.now() + ms
  return async () => performance.now() > until
}

await start('one')
await start('two')
await phase('two nodes', after(6_000))
const gone = 'gone~0000000000abcdefgh'
await postgres.query(insert(1, many / 2, gone, true), url)
await postgres.query(insert(many, many, gone, false), url)
await postgres.query(`INSERT INTO nodes (name, beats, seen_at, ready_at) VALUES ('${gone}', 1, now(), now())`, url)
await phase(`${many} calls of a node that is gone are lost`, async () => (await held()) === 0)
await phase('at rest', after(10_000))
await start('three')
await phase('a node starts beside them', after(10_000))
await services.get('three')?.kill()
await phase('it dies', after(15_000))
await Promise.all(['one', 'two'].map((nodeId) => services.get(nodeId)?.terminate()))
services.clear()
// Longer than 3 s: an outage, after which all clocks start again.
await Bun.sleep(5_000)
await start('four')
await phase('one starts alone', after(15_000))
await services.get('four')?.terminate()
await Promise.all([postgres.dispose(), redis.stop()])
process.exit(0)
