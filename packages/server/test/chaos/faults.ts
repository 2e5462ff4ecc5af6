import type { Random } from '../fuzz/random.ts'
import type { FaultRecord } from './recording.ts'
import { signalPostgres, type World } from './world.ts'

/** Something that can go wrong, and come right again. */
interface Fault {
  readonly kind: string
  readonly target: string
  /** How long it lasts before it is put right, in ms; 0: at once. */
  readonly holdMs: number
  begin(): Promise<void> | void
  end(): Promise<void> | void
}

export interface FaultOptions {
  readonly world: World
  readonly random: Random
  readonly at: () => number
  /** Told of each fault when it begins. */
  readonly onFault: (text: string) => void
}

export interface Faults {
  readonly records: readonly FaultRecord[]
  start(): void
  /** Begins no more; resolves when everything is whole. */
  stop(): Promise<void>
}

/** Time with nothing wrong between two faults, in ms: from this to twice this. */
const quietMs = 1_500
/** How often two different things go wrong at once. */
const doubleChance = 0.2

/** One fault every few seconds, now and then two; which, where and how long the seed says. */
export function createFaults({ world, random, at, onFault }: FaultOptions): Faults {
  const records: FaultRecord[] = []
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>()
  let stopping = false
  let loop: Promise<void> = Promise.resolve()

  async function happen({ kind, target, holdMs, begin, end }: Fault): Promise<void> {
    const from = at()
    onFault(`${(from / 1000).toFixed(1)} s ${kind} ${target}${holdMs > 0 ? ` for ${holdMs} ms` : ''}`)
    await begin()
    if (holdMs > 0) await Promise.race([Bun.sleep(holdMs), stopped])
    await end()
    records.push({ kind, target, from, until: at() })
  }

  async function keepFailing(): Promise<void> {
    while (!stopping) {
      await Promise.race([Bun.sleep(quietMs + random.int(quietMs)), stopped])
      if (stopping) return
      const all = faultsOf(world, random)
      const first = random.pick(all)
      const others = all.filter(({ target }) => target !== first.target)
      const chosen = random.chance(doubleChance) && others.length > 0 ? [first, random.pick(others)] : [first]
      await Promise.all(chosen.map(happen))
    }
  }

  return {
    records,
    start() {
      loop = keepFailing()
    },
    async stop() {
      stopping = true
      stop()
      await loop
    },
  }
}

/** Everything that can go wrong now, each with a duration of its own. */
function faultsOf({ nodes, postgres, redis }: World, random: Random): Fault[] {
  const hold = (longest: number) => 300 + random.int(longest - 300)
  const faults: Fault[] = []
  for (const node of nodes) {
    const target = `node-${node.index}`
    faults.push(
      { kind: 'node killed', target, holdMs: random.int(2_000), begin: () => node.kill(), end: () => node.start() },
      { kind: 'node terminated', target, holdMs: 0, begin: () => node.terminate(), end: () => node.start() },
      {
        kind: 'node stopped',
        target,
        holdMs: hold(6_000),
        begin: () => node.signal('SIGSTOP'),
        end: () => node.signal('SIGCONT'),
      },
    )
    const link = redis?.links[node.index]
    if (link === undefined) continue
    const how = random.pick(['silent', 'refusing'] as const)
    const begin = () => link.cut(how)
    faults.push({ kind: `node cut from Redis (${how})`, target, holdMs: hold(7_000), begin, end: () => link.mend() })
  }
  for (let i = 0; i < nodes.length; i++) {
    const target = 'PostgreSQL'
    const kill = () => postgres.kill()
    const freeze = () => signalPostgres(postgres, 'SIGSTOP')
    faults.push(
      { kind: 'PostgreSQL killed', target, holdMs: random.int(3_000), begin: kill, end: () => postgres.up() },
      {
        kind: 'PostgreSQL stopped',
        target,
        holdMs: hold(7_000),
        begin: freeze,
        end: () => signalPostgres(postgres, 'SIGCONT'),
      },
    )
    if (redis === undefined) continue
    const { server } = redis
    const signal = (name: NodeJS.Signals) => () => void process.kill(server.pid, name)
    faults.push(
      {
        kind: 'Redis killed',
        target: 'Redis',
        holdMs: random.int(2_000),
        begin: () => server.kill(),
        end: () => server.restart(),
      },
      {
        kind: 'Redis stopped',
        target: 'Redis',
        holdMs: hold(6_000),
        begin: signal('SIGSTOP'),
        end: signal('SIGCONT'),
      },
    )
  }
  return faults
}
