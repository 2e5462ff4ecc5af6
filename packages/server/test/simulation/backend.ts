import { type ClusterOptions, createCluster } from '../../src/cluster/cluster.ts'
import { createDeaths } from '../../src/cluster/deaths.ts'
import { createFallen } from '../../src/cluster/fallen.ts'
import { createMembers, type MembersOptions } from '../../src/cluster/members.ts'
import type { Nodes } from '../../src/ports/nodes.ts'
import type { Random } from '../fuzz/random.ts'
import type { Database } from './database.ts'
import { type RedisWorld, redisPorts } from './redis.ts'
import { Host, type Scheduler } from './scheduler.ts'
import { createEphemerals, type EphemeralsOptions } from './signs.ts'
import { databasePorts } from './stores.ts'
import { createWay, Link, type Part, type Way } from './way.ts'

export interface BackendOptions
  extends Pick<MembersOptions, 'sockets' | 'keptMs' | 'onDeath' | 'onError'>,
    Pick<ClusterOptions, 'windowMs' | 'resumeWindowMs' | 'onCall' | 'onTold' | 'newEpoch'> {
  /** Names this run of the node: no other has had the name. */
  readonly name: string
  readonly scheduler: Scheduler
  readonly random: Random
  readonly redis: RedisWorld
  readonly database: Database
}

const lookMs = 500

/** What one run of a node has of its stores, and of the other nodes: as `openShared` in `backend.ts` puts it together. */
export function createBackend(options: BackendOptions) {
  const { name, scheduler, random, redis, database, onError } = options
  const host = new Host(scheduler, random.fork())
  const { timers } = host
  const redisLink = new Link(2)
  const databaseLink = new Link(4)
  const ways: Way[] = []
  const connect = (link: Link, store: Part) => {
    const way = createWay(scheduler, host, random.fork(), link, store)
    ways.push(way)
    return way
  }
  const stores = databasePorts(database, () => connect(databaseLink, database), timers)
  const deaths = createDeaths(timers)
  const members = createMembers({
    ...options,
    deaths,
    heartbeats: stores.heartbeats,
    self: name,
    timers,
    isGone: (node) => cluster.isGone(node),
    saysItLives: (node) => cluster.saysItLives(node),
    isReady: () => cluster.isReady(),
  })
  const isDead = (node: string) => members.isDead(node)
  const redisWay = connect(redisLink, redis)
  const cluster = createCluster({
    ...options,
    ...redisPorts(redis, name, host, redisWay, connect(redisLink, redis)),
    node: name,
    deaths,
    isDead,
    owners: () => members.owners(),
    onWaiting: (node) => fallen.suspect(node),
    timers,
  })
  const signsOf = (store: RedisWorld | Database, ways: Pick<EphemeralsOptions, 'way' | 'looking'>) =>
    createEphemerals({
      ...{ scheduler, host, random: random.fork(), signs: store.signs, origin: () => store.origin },
      ...ways,
    })
  const lockWay = connect(databaseLink, database)
  const signs = [
    signsOf(database, { way: lockWay, looking: lockWay }),
    signsOf(redis, { way: connect(redisLink, redis), looking: redisWay }),
  ]
  const fallen = createFallen({
    node: name,
    stores: signs,
    others: () => new Set([...cluster.knownNodes(), ...members.others()]),
    onFallen(node) {
      cluster.fell(node)
      members.fell(node)
    },
    onDoubted: cluster.doubt,
    onError,
    timers,
  })
  const { self, others, loads } = members
  const nodes: Nodes = {
    ...{ self, isDead, others, loads, tell: cluster.tell, told: cluster.told },
    async isStillDead(node) {
      if (isDead(node)) await Promise.race([cluster.lookForNodes().catch(onError), timers.sleep(lookMs)])
      return isDead(node)
    },
  }

  async function start(): Promise<void> {
    await cluster.start()
    await members.start()
    fallen.start()
    await cluster.sessions.sweep(members.clock.now() - members.jumps.sum())
  }

  async function close(): Promise<void> {
    fallen.stop()
    await cluster.close()
    await members.stop()
    await Promise.all(signs.map((each) => each.close()))
  }

  return { host, redisLink, databaseLink, ways, stores, members, cluster, nodes, start, close }
}

export type SimulatedBackend = ReturnType<typeof createBackend>

/** The connections of a node to a store break. */
export function cutWays({ ways }: Pick<SimulatedBackend, 'ways'>, link: Link): void {
  for (const way of ways) if (way.link === link) way.cut()
}

/** A node is cut from a store, until its link goes on. */
export function endLink(backend: Pick<SimulatedBackend, 'ways'>, link: Link): void {
  link.end()
  cutWays(backend, link)
}
