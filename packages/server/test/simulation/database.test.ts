import type { Call } from '../../src/call/call.ts'
import type { Step } from '../../src/call/effects.ts'
import { type CallStoreHarness, ended, ringing } from '../../src/ports/call-store.fixture.ts'
import type { CallSteps, LiveCallReads } from '../../src/ports/call-store.ts'
import { newNodeName } from '../../src/ports/node-name.ts'
import { registerCallStepsContract } from '../contracts/call-store.ts'
import { registerCallStoreNodesContract } from '../contracts/call-store-nodes.ts'
import { type NodesHarness, type Run, registerNodesContract, registerUptimeContract } from '../contracts/nodes.ts'
import { type OutboxHarness, registerOutboxContract } from '../contracts/outbox.ts'
import { Random } from '../fuzz/random.ts'
import { createBackend, endLink } from './backend.ts'
import { startedAt } from './cluster.ts'
import { Database } from './database.ts'
import { RedisWorld } from './redis.ts'
import { Host, Scheduler } from './scheduler.ts'
import { databasePorts } from './stores.ts'
import { createWay, Link } from './way.ts'

/** Nodes on a simulated database pass what nodes on PostgreSQL pass. */
const name = 'simulated PostgreSQL'

/** Time that runs as fast as it can, and what lives in it. */
function openWorld() {
  const random = new Random(1)
  const scheduler = new Scheduler(random.fork())
  let isOver = false
  // Time goes on though nothing happens.
  new Host(scheduler, random.fork()).timers.every(1_000, () => {})
  void scheduler.run(Number.POSITIVE_INFINITY, () => isOver)
  return {
    random,
    scheduler,
    async close() {
      isOver = true
    },
  }
}

/** Its clock stands still but for `pass`, however late a statement comes. */
class StillDatabase extends Database {
  private at = startedAt

  override get now(): number {
    return this.at
  }

  pass(ms: number): void {
    this.at += ms
  }
}

interface StoreHarness extends CallStoreHarness<CallSteps & LiveCallReads>, OutboxHarness {
  store(): CallSteps & LiveCallReads
  another(): CallSteps & LiveCallReads
}

async function openStores(): Promise<StoreHarness> {
  const { random, scheduler, close } = openWorld()
  const database = new StillDatabase(scheduler, startedAt)
  const link = new Link(4)
  function open() {
    const host = new Host(scheduler, random.fork())
    const connect = () => createWay(scheduler, host, random.fork(), link, database)
    return databasePorts(database, connect, host.timers)
  }
  let stores = open()
  const other = open()
  const forge = async (step: Step) => {
    if (database.commit([step]) === undefined) throw new Error('The forged step was not written.')
  }
  return {
    store: () => stores.calls,
    another: () => other.calls,
    outbox: () => stores.outbox,
    other: () => other.outbox,
    commits: () => stores.commits(),
    forge,
    async versions(callUuid) {
      const found = database.all.filter(([call]) => call.callUuid === callUuid)
      return found.flatMap(([, events]) => events.map((_, index) => index + 1))
    },
    rows: async () => database.left,
    pass: async (ms) => database.pass(ms),
    dropCall: async (call) => database.drop(call),
    async fill(count) {
      for (let n = 0; n < count; n++) await forge(ended({ ...ringing(), version: 0 }))
    },
    async reopen(between = async () => {}) {
      await between()
      stores = open()
    },
    close,
  }
}

async function openNodes(): Promise<NodesHarness> {
  const { random, scheduler, close } = openWorld()
  const redis = new RedisWorld(scheduler)
  const database = new Database(scheduler, startedAt)
  return {
    async open(id, sockets): Promise<Run> {
      const heard: Call[] = []
      const told: string[] = []
      const failures: unknown[] = []
      const backend = createBackend({
        ...{ name: newNodeName(id, Math.round(database.now)), scheduler, random, redis, database },
        ...{ keptMs: 86_400_000, windowMs: 120_000, resumeWindowMs: 30_000 },
        sockets: () => sockets ?? null,
        onDeath() {},
        onCall: (call) => void heard.push(call),
        onTold: (call, version) => void told.push(`${call} ${version}`),
        onError: (error) => void failures.push(error),
        newEpoch: () => String(random.int(2 ** 31)),
      })
      const { nodes, members, redisLink, databaseLink, host } = backend
      const links = [redisLink, databaseLink]
      const mend = () => links.forEach((link) => void link.goOn())
      await backend.start()
      return {
        ...{ nodes, heard, told, uptime: members.uptime, clock: members.clock, serve: members.serve },
        cut() {
          for (const link of links) endLink(backend, link)
        },
        mend,
        async close() {
          mend()
          await backend.close()
          host.kill()
        },
      }
    },
    close,
  }
}

registerCallStepsContract(name, openStores)
registerCallStoreNodesContract(name, async () => {
  const { store, another, versions, close } = await openStores()
  return { nodes: [store(), another()], versions, close }
})
registerOutboxContract(name, openStores)
registerNodesContract(`${name} and Redis`, 3, openNodes)
registerUptimeContract(`${name} and Redis`, openNodes)
