import { participantHash, tagOfSessionId } from '../../src/ports/session-id.ts'
import { evictKey, flush } from '../failures/lost-keys.ts'
import type { Random } from '../fuzz/random.ts'
import type { Postgres } from '../support/postgres.ts'
import { type Endpoint, failures } from './endpoint.ts'
import { type FaultKind, faultKindsOf, lastingKindsOf, ofEndpoints } from './fault-kinds.ts'
import type { NodeProcess } from './node-process.ts'
import type { RunOptions } from './options.ts'
import { role } from './person.ts'
import type { Phone } from './phone.ts'
import type { FaultRecord } from './recording.ts'
import { productKey, type SharedRedis, signalPostgres, type World } from './world.ts'

/** Something that can go wrong, and come right again. */
interface Fault {
  readonly kind: FaultKind
  /** Of what there are several ways. */
  readonly how?: string
  readonly target: string
  readonly evicted?: FaultRecord['evicted']
  /** How long it lasts before it is put right, in ms; 0: at once. */
  readonly holdMs: number
  begin(): Promise<void> | void
  end(): Promise<void> | void
}

export interface FaultOptions {
  readonly world: World
  readonly options: RunOptions
  readonly phones: readonly Phone[]
  readonly random: Random
  readonly at: () => number
  /** Told of each fault when it begins. */
  readonly onFault: (text: string) => void
}

export interface Faults {
  readonly records: readonly FaultRecord[]
  /** Resolves when so many kinds are over that the run shows something; rejects where one cannot be made good. */
  readonly enough: Promise<void>
  start(): void
  /** Begins no more; resolves when everything is whole. */
  stop(): Promise<void>
}

/** Time with nothing wrong between two faults, in ms: from this to twice this. */
const quietMs = 1_500
/** On a busy machine nodes take long to start: a short run goes on until there were this many kinds. */
const fewestKinds = 3
/** How often two different things go wrong at once. */
const doubleChance = 0.2

/**
 * One fault every few seconds, now and then two; which, where and how long the seed says. Kinds are dealt as cards are: each
 * comes as often as any other; what is done to endpoints comes first once more, and a new kind before one that was there.
 */
export function createFaults({ world, options, phones, random, at, onFault }: FaultOptions): Faults {
  const records: FaultRecord[] = []
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>()
  const { promise: enough, resolve: suffice, reject: fail } = Promise.withResolvers<void>()
  const dealt = new Set<FaultKind>()
  let stopping = false
  let loop: Promise<void> = Promise.resolve()
  // A short run has the first ones, too.
  const cards: FaultKind[] = [...(world.endpoints.length > 0 ? ofEndpoints : []), ...lastingKindsOf(options)]

  async function happen({ kind, how, target, evicted, holdMs, begin, end }: Fault): Promise<void> {
    const from = at()
    const name = how === undefined ? kind : `${kind} (${how})`
    const key = evicted === undefined ? '' : ` ${evicted.key} of ${evicted.user}`
    onFault(`${(from / 1000).toFixed(1)} s ${name} ${target}${key}${holdMs > 0 ? ` for ${holdMs} ms` : ''}`)
    await begin()
    if (holdMs > 0) await Promise.race([Bun.sleep(holdMs), stopped])
    await end()
    records.push({ kind: name, target, from, until: at(), ...(evicted === undefined ? {} : { evicted }) })
    if (new Set(records.map(({ kind }) => kind)).size >= fewestKinds) suffice()
  }

  /** The next kind, somewhere that is not taken. */
  function deal(taken?: string): Fault {
    const all = faultsOf(world, phones, random).filter(({ target }) => !isOneOf(target, taken))
    const fits = (card: FaultKind) => all.some(({ kind }) => kind === card)
    if (!cards.some(fits)) cards.push(...faultKindsOf(options))
    const fitting = cards.filter(fits)
    const fresh = fitting.filter((card) => !dealt.has(card))
    const card = random.pick(fresh.length > 0 ? fresh : fitting)
    dealt.add(card)
    cards.splice(cards.indexOf(card), 1)
    return random.pick(all.filter(({ kind }) => kind === card))
  }

  async function keepFailing(): Promise<void> {
    while (!stopping) {
      await Promise.race([Bun.sleep(quietMs + random.int(quietMs)), stopped])
      if (stopping) return
      const first = deal()
      const chosen = random.chance(doubleChance) ? [first, deal(first.target)] : [first]
      await Promise.all(chosen.map(happen))
    }
  }

  return {
    records,
    enough,
    start() {
      loop = keepFailing()
      loop.catch(fail)
    },
    async stop() {
      stopping = true
      stop()
      await loop
    },
  }
}

/** A fault of all nodes must not meet a fault of one of them, nor the other way round. */
function isOneOf(target: string, taken: string | undefined): boolean {
  const isOfNodes = (name: string | undefined) => name?.startsWith('node') ?? false
  return target === taken || ([target, taken].includes(allNodes) && isOfNodes(target) && isOfNodes(taken))
}

const allNodes = 'nodes'
const aMinute = { kind: 'node stopped for a minute', holdMs: 60_000 } as const
/** Longer than anybody waits for anybody. In ms. */
const allStoppedMs = 150_000

/** Everything that can go wrong now, each with a duration of its own. */
function faultsOf(
  { nodes, links, postgres, redis, endpoints }: World,
  phones: readonly Phone[],
  random: Random,
): Fault[] {
  const hold = (longest: number) => 300 + random.int(longest - 300)
  const signalAll = (name: NodeJS.Signals) => () => {
    for (const node of nodes) node.signal(name)
  }
  const faults: Fault[] = [
    {
      kind: 'all nodes stopped',
      target: allNodes,
      holdMs: allStoppedMs,
      begin: signalAll('SIGSTOP'),
      end: signalAll('SIGCONT'),
    },
  ]
  for (const node of nodes) {
    const target = `node-${node.index}`
    faults.push(
      { kind: 'node killed', target, holdMs: random.int(2_000), begin: () => node.kill(), end: () => node.start() },
      { kind: 'node terminated', target, holdMs: 0, begin: () => node.terminate(), end: () => node.start() },
      ...[{ kind: 'node stopped', holdMs: hold(6_000) } as const, aMinute].map((how) => ({
        ...how,
        target,
        begin: () => node.signal('SIGSTOP'),
        end: () => node.signal('SIGCONT'),
      })),
    )
    const ways = links[node.index]
    if (ways === undefined) continue
    for (const [kind, link] of [
      ['node cut from PostgreSQL', ways.postgres],
      ['node cut from Redis', ways.redis],
    ] as const) {
      if (link === undefined) continue
      const how = random.pick(['silent', 'refusing'] as const)
      const begin = () => (how === 'silent' ? link.stall() : link.refuse('close'))
      // The longest are long enough for the others to see its heartbeats stand still.
      faults.push({ kind, how, target, holdMs: hold(9_000), begin, end: () => link.mend() })
    }
  }
  if (postgres !== undefined) faults.push(...faultsOfPostgres(postgres, hold, random))
  if (redis !== undefined) faults.push(...faultsOfRedis(redis, random.pick(phones), hold, random))
  if (endpoints.length > 0) faults.push(...faultsOfEndpoints(endpoints, random.pick(nodes), random))
  return faults
}

function faultsOfPostgres(postgres: Postgres, hold: (longest: number) => number, random: Random): Fault[] {
  return [
    {
      kind: 'PostgreSQL killed',
      target: 'PostgreSQL',
      holdMs: random.int(3_000),
      begin: () => postgres.kill(),
      end: () => postgres.up(),
    },
    {
      kind: 'PostgreSQL stopped',
      target: 'PostgreSQL',
      holdMs: hold(7_000),
      begin: () => signalPostgres(postgres, 'SIGSTOP'),
      end: () => signalPostgres(postgres, 'SIGCONT'),
    },
  ]
}

/** An event that an endpoint failed comes again when the endpoint is well: the first wait is 4 s or more [HOOK3]. In ms. */
const longestFailureMs = 3_500

function faultsOfEndpoints(endpoints: readonly Endpoint[], node: NodeProcess, random: Random): Fault[] {
  const faults = endpoints.map((endpoint, index): Fault => {
    const how = random.pick(Object.keys(failures) as (keyof typeof failures)[])
    let mend = () => {}
    return {
      kind: 'endpoint fails',
      how,
      target: `endpoint-${index}`,
      holdMs: 500 + random.int(longestFailureMs - 500),
      begin() {
        mend = endpoint.fail(how)
      },
      end: () => mend(),
    }
  })
  return [...faults, killBeforeDelivery(endpoints, node, random)]
}

/** If nobody calls just then, or the store is away, the node is killed with nothing under way. In ms. */
const committedWithinMs = 3_000

/** kill -9 when events are committed and no endpoint has answered. */
function killBeforeDelivery(endpoints: readonly Endpoint[], node: NodeProcess, random: Random): Fault {
  const moreMs = random.int(500)
  return {
    kind: 'node killed before delivery',
    target: `node-${node.index}`,
    holdMs: random.int(1_000),
    async begin() {
      const mends = endpoints.map((endpoint) => endpoint.fail('silent'))
      await Promise.race([Promise.all(endpoints.map((endpoint) => endpoint.failsOne())), Bun.sleep(committedWithinMs)])
      await Bun.sleep(moreMs)
      await node.kill()
      for (const mend of mends) mend()
    },
    end: () => node.start(),
  }
}

function faultsOfRedis(
  { servers, whole }: SharedRedis,
  phone: Phone,
  hold: (longest: number) => number,
  random: Random,
): Fault[] {
  const target = 'Redis'
  const server = servers.length === 1 ? servers[0]! : random.pick(servers)
  const goOn = () => {
    process.kill(server.pid, 'SIGCONT')
    return whole()
  }
  const key = random.pick(['log', 'session', 'index'] as const)
  const asItIs = () => {}
  return [
    {
      kind: 'Redis killed',
      target,
      holdMs: random.int(2_000),
      begin: () => server.kill(),
      end: () => server.restart().then(whole),
    },
    {
      kind: 'Redis stopped',
      target,
      holdMs: hold(6_000),
      begin: () => void process.kill(server.pid, 'SIGSTOP'),
      end: goOn,
    },
    { kind: 'Redis emptied', target, holdMs: 0, begin: () => flush(server), end: asItIs },
    {
      kind: 'keys evicted',
      target,
      evicted: { key, user: phone.userId },
      holdMs: 0,
      begin: () => evictKey(servers, keyOf(phone, key)),
      end: asItIs,
    },
  ]
}

/** The name of a key that Redis has of a phone's session, or of its participant. */
function keyOf({ sessionId, userId }: Phone, key: 'log' | 'session' | 'index'): string {
  const base = `rw:{${tagOfSessionId(sessionId)}}:`
  if (key === 'index') return `${base}i:${participantHash({ product: productKey.product, role, userId })}`
  return `${base}${key === 'log' ? 'e' : 'o'}:${sessionId}`
}
