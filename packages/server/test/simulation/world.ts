import { allowedActions } from '@ringwire/protocol/rest'
import type { SessionClaims } from '../../src/auth/tokens.ts'
import type { Timers } from '../../src/ports/clock.ts'
import { check, type Verdict } from '../chaos/check/check.ts'
import { Person, role } from '../chaos/person.ts'
import { Phone } from '../chaos/phone.ts'
import type { CallRow, EventRow, Recording } from '../chaos/recording.ts'
import { Random } from '../fuzz/random.ts'
import { Cluster, startedAt } from './cluster.ts'
import type { Database } from './database.ts'
import { createFaults } from './faults.ts'
import { uuidOf } from './names.ts'
import { connect } from './network.ts'
import { times } from './node.ts'
import { Host, Scheduler } from './scheduler.ts'

export interface WorldOptions {
  readonly seed: number
  readonly nodes: number
  readonly users: number
  /** How long things break, in simulated seconds. */
  readonly seconds: number
}

export interface Outcome {
  readonly recording: Recording
  readonly verdict: Verdict
  /** How many events there were. */
  readonly steps: number
}

const tickMs = 200
/** How often some phone's network goes away, for each phone, in ms: on average. */
const networkLossMs = 20_000
/** After the last fault everybody is through with everything long before, in simulated ms. */
const endPatienceMs = 60_000
/** A node looks after its logs every 5 s. */
const lastNewsMs = 6_000

/** Lives a world through, and answers all that was seen. The same seed gives the same world. */
export async function live(options: WorldOptions): Promise<Outcome> {
  const { seed, nodes: count, users, seconds } = options
  const random = new Random(seed)
  const scheduler = new Scheduler(random.fork())
  const cluster = new Cluster(scheduler, random.fork())
  const { timers } = new Host(scheduler, random.fork())
  const at = () => Math.round(scheduler.now * 10) / 10
  const stuck: string[] = []
  let isOver = false
  const faults = createFaults({ cluster, count, random: random.fork(), timers, at })
  const people = invite({ scheduler, cluster, count, users, random: random.fork(), timers, at })

  async function course(): Promise<void> {
    await Promise.all(Array.from({ length: count }, (_, i) => cluster.start(i)))
    const networks = random.fork()
    let isCalm = false
    timers.every(tickMs, () => {
      for (const { phone } of people) {
        phone.tick()
        if (!isCalm && networks.int(networkLossMs / tickMs) === 0) phone.lose()
      }
    })
    for (const { phone, person } of people) {
      phone.connect()
      person.start()
    }
    await faults.run(seconds * 1_000)
    isCalm = true
    stuck.push(...(await finish(people, cluster, timers)))
    isOver = true
  }

  let failure: unknown
  course().catch((error) => {
    failure = error
    isOver = true
  })
  await scheduler.run(seconds * 1_000 + 10 * endPatienceMs, () => isOver)
  if (failure !== undefined) throw failure
  if (!isOver) stuck.push('the world does not come to an end')
  const header = {
    seed,
    nodes: count,
    store: 'postgresql',
    redis: 'one',
    users,
    durationS: seconds,
    startedAt,
  } as const
  const recording: Recording = {
    header: {
      ...header,
      resumeWindowMs: times.resumeWindowMs,
      ...{ stuck, faults: faults.records, crashes: [], bugs: cluster.bugs },
    },
    traces: people.map(({ phone }) => phone.trace),
    ...rowsOf(cluster.database),
    histories: [],
    hooks: [],
  }
  return { recording, verdict: check(recording), steps: scheduler.steps }
}

interface Guests {
  readonly scheduler: Scheduler
  readonly cluster: Cluster
  readonly count: number
  readonly users: number
  readonly random: Random
  readonly timers: Timers
  readonly at: () => number
}

interface Guest {
  readonly phone: Phone
  readonly person: Person
}

function invite({ scheduler, cluster, count, users, random, timers, at }: Guests): Guest[] {
  const names = Array.from({ length: users }, (_, i) => `user-${i}`)
  return names.map((userId) => {
    const [ways, wires, own] = [random.fork(), random.fork(), random.fork()]
    const phone: Phone = new Phone({
      userId,
      random: random.fork(),
      timers,
      at,
      dial(query, events) {
        const node = ways.int(count)
        return { node, line: connect(scheduler, wires, cluster.runs[node], claimsOf(userId), query, events) }
      },
      onPush: (frame) => person.onPush(frame),
      onFresh: (frame) => person.onFresh(frame),
    })
    const others = names.filter((name) => name !== userId)
    const uuids = random.fork()
    const newUuid = () => uuidOf(uuids)
    const person: Person = new Person(phone, { userId, others, random: own, timers, newUuid })
    return { phone, person }
  })
}

function claimsOf(userId: string): SessionClaims {
  return {
    participant: { product: 'shop', role, userId },
    displayName: userId,
    contextType: 'simulation',
    contextId: '1',
    allowedPeerRoles: [role],
    allowedActions,
    deviceId: `phone-of-${userId}`,
    appVersion: null,
    issuedAt: startedAt,
    expiresAt: startedAt + 86_400_000,
    tokenId: userId,
    key: null,
  }
}

/** Nobody begins anything, all calls end, and everybody hears what there is to hear. Answers who or what does not end. */
async function finish(people: readonly Guest[], { database }: Cluster, timers: Timers): Promise<string[]> {
  const stuck: string[] = []
  async function each(what: string, parts: readonly (readonly [string, () => Promise<unknown>])[]): Promise<void> {
    const open = new Set(parts.map(([name]) => name))
    const all = Promise.all(parts.map(([name, part]) => part().then(() => open.delete(name))))
    await Promise.race([all, timers.sleep(endPatienceMs)])
    stuck.push(...[...open].map((name) => `${name} ${what}`))
  }
  const none = async () => {
    while (database.live().length > 0) await timers.sleep(tickMs)
  }
  await each(
    'still has calls',
    people.map(({ person }) => [person.userId, () => person.stop()]),
  )
  await each('holds live calls', [['the database', none]])
  await timers.sleep(lastNewsMs)
  await each(
    'gets no answer',
    people.map(({ phone }) => [phone.userId, () => phone.settle()]),
  )
  const lastVisit = async (phone: Phone) => {
    phone.lose()
    await phone.online()
    await phone.settle()
  }
  await each(
    'does not come back',
    people.map(({ phone }) => [phone.userId, () => lastVisit(phone)]),
  )
  return stuck
}

function rowsOf(database: Database): { calls: CallRow[]; events: EventRow[] } {
  const calls = database.all.map(([call]): CallRow => {
    const over = 'endedAt' in call ? call : undefined
    const answered = 'acceptedAt' in call ? call : undefined
    return {
      call_uuid: call.callUuid,
      caller: call.caller.userId,
      callee: call.callee.userId,
      version: call.version,
      status: call.status,
      started_at: call.startedAt,
      ring_expires_at: call.ringExpiresAt,
      accepted_at: answered?.acceptedAt ?? null,
      connected_at: answered?.connectedAt ?? null,
      ended_at: over?.endedAt ?? null,
      end_reason: over?.endReason ?? null,
    }
  })
  const events = database.all.flatMap(([call, all]) =>
    all.map(({ type, at, by }, i): EventRow => {
      return { call_uuid: call.callUuid, version: i + 1, type, at, by_user: by?.userId ?? null }
    }),
  )
  return { calls, events }
}
