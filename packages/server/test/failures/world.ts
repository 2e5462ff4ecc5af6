import { afterAll, beforeAll, expect } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import type { ExtendedMessage } from '@ringwire/testkit/extended-trace'
import { soon, until } from '@ringwire/testkit/patience'
import { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { finish } from '../scenarios/calls/composition.ts'
import { Postgres } from '../support/postgres.ts'
import { type RedisServer, startRedis } from '../support/redis.ts'

export type Env = Readonly<Record<string, string>>

/** Two nodes and their stores: real servers only for this file. */
export interface World {
  readonly postgres: Postgres
  /** The address of the nodes' database, and its name. */
  readonly databaseUrl: string
  readonly database: string
  readonly redis: RedisServer
  readonly one: Service
  readonly two: Service
}

type NodeId = 'one' | 'two'

export interface WorldOptions {
  readonly env?: Env
  /** More settings for only one of them. */
  readonly envOf?: (node: NodeId) => Env
  readonly redisArgs?: readonly string[]
  /** Makes the nodes' database, where it is to be another one than usual; answers its URL. */
  readonly makeDatabase?: (postgres: Postgres) => Promise<string>
  /** The address at which a node finds its database, if something is between them. */
  readonly databaseUrlOf?: (url: string, node: NodeId) => Promise<string> | string
  /** The same for Redis. */
  readonly redisUrlOf?: (redis: RedisServer, node: NodeId) => Promise<string> | string
  /** When all servers have ended. */
  readonly atEnd?: () => Promise<void> | void
}

/** The way there and back on a busy machine, in ms. */
const wayMs = 700
/** No request waits longer. */
const longestMs = 5_000 + wayMs
/** Nor just for the limits. */
export const limitMs = 250 + wayMs
/** How soon /readyz says what is so, in ms. */
const readyMs = 2_000 + 300

const jwtSecrets = `test:${'A'.repeat(43)}`

/** One world for the tests of a file. At its end no node may have logged an error: whatever failed was not its bug. */
export function worldFor(options: WorldOptions = {}): () => World {
  let world: World | undefined
  beforeAll(async () => {
    world = await startWorld(options)
  })
  afterAll(async () => {
    if (world === undefined) return
    const { one, two, postgres, redis } = world
    try {
      await Promise.all([finish(one), finish(two)])
    } finally {
      await Promise.all([postgres.dispose(), redis.stop()])
      await options.atEnd?.()
    }
  })
  return () => world as World
}

/** The same. Through the gate goes the way of node one to Redis: while it is stalled or cut, that node hands nothing on. */
export function worldWithGate(): { world: () => World; gate: () => TcpProxy } {
  let gate: TcpProxy | undefined
  const world = worldFor({
    async redisUrlOf(redis, node) {
      if (node === 'two') return redis.url
      gate = await new TcpProxy(redis.url).start()
      return `redis://${gate.host}`
    },
    atEnd: () => gate?.stop(),
  })
  return { world, gate: () => gate as TcpProxy }
}

async function startWorld(options: WorldOptions): Promise<World> {
  const { env = {}, envOf, redisArgs = [], makeDatabase, databaseUrlOf, redisUrlOf } = options
  const [postgres, redis] = await Promise.all([Postgres.start(), startRedis(redisArgs)])
  const databaseUrl = (await makeDatabase?.(postgres)) ?? (await postgres.database())
  const node = async (id: NodeId) =>
    new Service({
      DATABASE_URL: (await databaseUrlOf?.(databaseUrl, id)) ?? databaseUrl,
      REDIS_URL: (await redisUrlOf?.(redis, id)) ?? redis.url,
      RINGWIRE_JWT_SECRETS: jwtSecrets,
      RINGWIRE_NODE_ID: id,
      RINGWIRE_WS_RATE: 'off',
      // As people have them: what limits count is in Redis, too.
      RINGWIRE_TOKEN_RATE_IP: '',
      RINGWIRE_TOKEN_RATE_KEY: '',
      ...env,
      ...envOf?.(id),
    })
  const [one, two] = await Promise.all([node('one'), node('two')])
  try {
    await Promise.all([one.start(), two.start()])
  } catch (error) {
    await Promise.all([one.dispose(), two.dispose(), postgres.dispose(), redis.stop()])
    throw error
  }
  return { postgres, databaseUrl, database: new URL(databaseUrl).pathname.slice(1), redis, one, two }
}

// biome-ignore lint/suspicious/noExplicitAny: tests compare what came.
async function readiness(service: Service): Promise<any> {
  // The service closes a connection that was idle for 10 s, perhaps just when it is used again.
  const response = await fetch(`${service.url}/readyz`, { keepalive: false })
  return { status: response.status, ...((await response.json()) as object) }
}

/** /readyz of each node says so from now on within 2 s [HEALTH1]. */
export async function becomesReady(...services: readonly Service[]): Promise<void> {
  await Promise.all(services.map((service) => saysWithin(service, { status: 200, database: 'ok', redis: 'ok' })))
}

export async function becomesUnready(what: 'database' | 'redis', ...services: readonly Service[]): Promise<void> {
  await Promise.all(services.map((service) => saysWithin(service, { status: 503, ok: false, [what]: 'error' })))
}

/** The log of each says both, in turn [LOG2]. A store that has just come back may be lost once more. */
export async function saysLostAndBack(store: 'database' | 'redis', ...services: readonly Service[]): Promise<void> {
  for (const service of services) {
    const said = () =>
      service.log
        .split('\n')
        .filter((line) => line.includes(`"store":"${store}"`))
        .map((line) => JSON.parse(line).message)
    await until(`${store} is back`, () => said().slice(-2).join() === 'store lost,store back')
    expect(said().filter((each, i, all) => each === all[i - 1])).toEqual([])
  }
}

/** The log of each names what a store refuses for want of room, as its own words `why` have it, and no error [LOG2]. */
export async function saysFull(why: RegExp, ...services: readonly Service[]): Promise<void> {
  const isTold = ({ log }: Service) =>
    log
      .split('\n')
      .filter((line) => line.includes('"message":"a store is full"'))
      .some((line) => line.includes('"level":"warn"') && why.test(line))
  await until('the log says that a store is full', () => services.every(isTold))
}

async function saysWithin(service: Service, wanted: Record<string, unknown>): Promise<void> {
  const since = performance.now()
  for (;;) {
    const said = await readiness(service)
    const took = performance.now() - since
    if (Object.entries(wanted).every(([key, value]) => said[key] === value)) {
      expect(took).toBeLessThan(soon(readyMs))
      return
    }
    if (took > soon(4 * readyMs)) expect(said).toMatchObject(wanted)
    await Bun.sleep(50)
  }
}

/** Whatever is away: this request is answered in time. */
export async function inTime<T>(asked: Promise<T>, ms = longestMs): Promise<T> {
  const since = performance.now()
  const answer = await asked
  expect(performance.now() - since).toBeLessThan(soon(ms))
  return answer
}

/** Asks, and is answered in time. */
export async function ask(
  client: ExtendedClient,
  event: string,
  data: object,
): Promise<ExtendedMessage & { code: string | undefined }> {
  const reply = await inTime(client.request(event, data))
  return { ...reply, code: reply.error?.code }
}

/** A request that cannot be stored is refused, may be repeated, and is never acknowledged. */
export async function expectRefusal(client: ExtendedClient, event: string, data: object): Promise<void> {
  const { event: answer, error } = await ask(client, event, data)
  expect({ answer, ...error }).toMatchObject({ answer: 'call.error', code: 'SERVICE_UNAVAILABLE', retryable: true })
}

/** Asks again until it is no longer refused for what is away; answers how often that was. */
export async function insist(client: ExtendedClient, event: string, data: object): Promise<number> {
  for (let refusals = 0; ; refusals++) {
    const { code } = await ask(client, event, data)
    if (code === undefined) return refusals
    if (code !== 'SERVICE_UNAVAILABLE') throw new Error(`${event}: ${code}`)
    await Bun.sleep(50)
  }
}

/** What the database has of these calls. A place that went vacant and was taken again shows in the version. */
// biome-ignore lint/suspicious/noExplicitAny: rows are compared.
export function storedCalls({ postgres, databaseUrl }: World, ...calls: readonly string[]): Promise<any[]> {
  const uuids = calls.map((call) => `'${call}'`).join()
  return postgres.query(
    `SELECT call_uuid, status, version, caller_place, callee_place FROM calls
     WHERE call_uuid IN (${uuids}) ORDER BY call_uuid`,
    databaseUrl,
  )
}

/** How often a client got an event about a call. */
export function toldOf(client: ExtendedClient, event: string, callUuid: string): number {
  return client.all.filter((message) => message.event === event && message.data?.call_uuid === callUuid).length
}
