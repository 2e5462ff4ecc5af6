import { createCluster } from '../../src/cluster/cluster.ts'
import { createDeaths } from '../../src/cluster/deaths.ts'
import { registerCopiesContract } from '../contracts/copies.ts'
import { harnessAcross, type Nodes } from '../contracts/redis-harness.ts'
import { type OpenSessions, resumeWindowMs, windowMs } from '../contracts/session-parts.ts'
import { registerSessionsContract } from '../contracts/sessions.ts'
import { registerEmptiedRules } from '../contracts/sessions-emptied.ts'
import { Random } from '../fuzz/random.ts'
import { RedisWorld, redisPorts } from './redis.ts'
import { Host, Scheduler } from './scheduler.ts'
import { createWay, Link } from './way.ts'

/** Two nodes of a simulated world pass what two nodes on Redis pass. */
const name = 'simulated Redis, two nodes'
const openTwo: OpenSessions = async (windows) => harnessAcross(await startNodes(windows))
registerSessionsContract(name, openTwo)
registerEmptiedRules(name, () => openTwo({ windowMs, resumeWindowMs }))
registerCopiesContract('simulated Redis', async () => {
  const random = new Random(1)
  const scheduler = new Scheduler(random.fork())
  const world = new RedisWorld(scheduler)
  const host = new Host(scheduler, random.fork())
  const way = () => createWay(scheduler, host, random.fork(), new Link(2), world)
  let isOver = false
  void scheduler.run(Number.POSITIVE_INFINITY, () => isOver)
  return {
    of: (node) => redisPorts(world, node, host, way(), way()),
    async close() {
      isOver = true
    },
  }
})

async function startNodes(windows: Parameters<OpenSessions>[0]): Promise<Nodes> {
  const random = new Random(1)
  const scheduler = new Scheduler(random.fork())
  const world = new RedisWorld(scheduler)
  const failures: unknown[] = []
  const nodes = ['one', 'two'].map((node) => {
    const host = new Host(scheduler, random.fork())
    const link = new Link(2)
    const way = () => createWay(scheduler, host, random.fork(), link, world)
    return createCluster({
      ...windows,
      ...redisPorts(world, node, host, way(), way()),
      node,
      deaths: createDeaths(host.timers),
      timers: host.timers,
      newEpoch: () => String(random.int(2 ** 31)),
      onError: (error) => failures.push(error),
    })
  })
  let isOver = false
  void scheduler.run(Number.POSITIVE_INFINITY, () => isOver)
  await Promise.all(nodes.map((node) => node.start()))
  return {
    nodes,
    flush: async () => world.flush(),
    async close() {
      await Promise.all(nodes.map((node) => node.close()))
      isOver = true
      if (failures.length > 0) throw failures[0]
    },
  }
}
