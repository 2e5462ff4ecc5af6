import { afterAll, beforeAll, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import fc from 'fast-check'
import { type Call, ownReasons, type TokenReason } from '../src/types.ts'
import { online, type Person, person } from './support/people.ts'

/**
 * Two clients of the SDK, each behind a network of its own, do anything in any order, while networks are cut and the
 * service is killed. When all is quiet again, both agree with each other and with the history.
 */
const runs = Number(process.env.RINGWIRE_TEST_RUNS ?? 15)

/** The model is what must be true of what was said; what is true of the calls is the service's to say. */
interface Model {
  sent: number
}

interface Side {
  readonly it: Person
  readonly network: TcpProxy
  readonly tokens: readonly TokenReason[]
  readonly peer: () => Side
  /** Every call it ever had. */
  readonly calls: Set<Call>
  /** Candidates that came, by call, and those that the service said it has. */
  readonly heard: Map<Call, number[]>
  readonly delivered: Map<Call, number[]>
  readonly resynced: Set<Call>
  readonly answered: Set<Call>
  requests: Promise<unknown>[]
}

interface World {
  readonly service: Service
  readonly sides: readonly [Side, Side]
}

type Act = (world: World, side: Side, model: Model) => unknown

const acts: Record<string, Act> = {
  call: (_, side) => {
    const { userId, role } = side.peer().it
    const call = side.it.client.call({ userId, role })
    know(side, call)
    side.requests.push(call.invited)
  },
  accept: (_, side) => each(side, (call) => call.direction === 'incoming' && call.accept()),
  reject: (_, side) =>
    each(side, (call) => call.state.name === 'ringing' && call.direction === 'incoming' && call.reject()),
  end: (_, side) => each(side, (call) => call.end()),
  connected: (_, side) => each(side, (call) => call.state.name === 'accepted' && call.connected()),
  candidates: (_, side, model) =>
    each(side, (call) => {
      if (call.state.name === 'ringing') return false
      const asked = Array.from({ length: 4 }, () => sendCandidate(side, call, ++model.sent))
      return Promise.all(asked).then(() => {})
    }),
  cut: (_, { network }) => network.cut(),
  silence: (_, { network }) => network.silence(),
  refuse: (_, { network }) => network.refuse(),
  mend: (_, { network }) => network.mend(),
  wake: (_, { it }) => it.client.wake(),
  quiet: ({ sides }, side) => {
    for (const { network } of sides) network.mend()
    return Promise.allSettled(side.requests)
  },
}

async function sendCandidate(side: Side, call: Call, name: number): Promise<void> {
  await call.sendCandidate({ candidate: String(name), sdpMid: '0', sdpMLineIndex: 0 })
  side.delivered.set(call, [...(side.delivered.get(call) ?? []), name])
}

function each(side: Side, act: (call: Call) => Promise<void> | false): void {
  for (const call of side.it.client.calls) {
    const asked = act(call)
    if (asked !== false) side.requests.push(asked.catch(() => {}))
  }
}

class Step implements fc.AsyncCommand<Model, World> {
  readonly name: string
  readonly side: 0 | 1
  readonly pauseMs: number
  constructor(name: string, side: 0 | 1, pauseMs: number) {
    this.name = name
    this.side = side
    this.pauseMs = pauseMs
  }
  check = () => true
  async run(model: Model, world: World): Promise<void> {
    await acts[this.name]!(world, world.sides[this.side], model)
    // 0: the next one comes into the middle of it.
    if (this.pauseMs > 0) await Bun.sleep(this.pauseMs)
    check(world)
  }
  toString = () => `${this.side === 0 ? 'customer' : 'agent'}.${this.name}`
}

class Restart implements fc.AsyncCommand<Model, World> {
  check = () => true
  async run(_: Model, { service }: World): Promise<void> {
    await service.kill()
    await service.start()
  }
  toString = () => 'restart'
}

/** What is true at every moment. */
function check({ sides }: World): void {
  for (const { it, heard, calls } of sides) {
    const uuids = it.client.calls.map(({ callUuid }) => callUuid)
    expect(new Set(uuids).size).toBe(uuids.length)
    // Nobody hears twice that the same call comes in.
    const told = it.incoming.map(({ callUuid }) => callUuid)
    expect(new Set(told).size).toBe(told.length)
    expect(it.client.calls.every(({ state }) => state.name !== 'over')).toBe(true)
    expect([...calls].filter(({ state }) => state.name !== 'over')).toEqual([...it.client.calls])
    // Relays come in the sender's order and never twice, whatever happened to the sockets.
    for (const names of heard.values()) expect(names).toEqual([...new Set(names)].sort((a, b) => a - b))
  }
}

/** Everybody is back, every request is answered, and nothing is on its way. */
async function settle({ service, sides }: World): Promise<void> {
  for (const { network } of sides) network.mend()
  await Promise.all(sides.map(({ it }) => online(it)))
  for (let round = 0; round < 3; round++) {
    await Promise.allSettled(sides.flatMap(({ requests }) => requests))
    // A request that is answered comes after all that was decided before it [ORD1]; both, and once more for its notices.
    await Promise.all(
      sides.map(({ it }) => it.client.call({ userId: 'nobody', role: 'nobody' }).invited.catch(() => {})),
    )
  }
  const records = await recordsOf(service, sides[0])
  const live = records.filter(({ ended_at }) => ended_at === null)
  const known = sides.map(({ it }) => it.client.calls.map(({ callUuid, state }) => `${callUuid} ${state.name}`))
  const expected = live.map(({ call_uuid, status }) => `${call_uuid} ${status}`).sort()
  expect(known.map((calls) => calls.sort())).toEqual([expected, expected])
}

interface Row {
  call_uuid: string
  status: string
  end_reason: string | null
  ended_at: string | null
}

async function recordsOf(service: Service, { it }: Side): Promise<Row[]> {
  return (await service.history(await service.token({ user_id: it.userId, role: it.role }), '?limit=100')).data
}

/** Each side heard the end of a call that the history has; nobody asks twice for a token. */
async function compare({ service, sides }: World): Promise<void> {
  const records = new Map((await recordsOf(service, sides[0])).map((row) => [row.call_uuid, row]))
  for (const { it, tokens, calls, delivered, peer } of sides) {
    expect(tokens).toEqual(['first'])
    for (const call of calls) {
      const { state } = call
      const row = records.get(call.callUuid)
      if (state.name !== 'over') expect(row?.status).toBe(state.name)
      else if (row !== undefined) expect(row.ended_at).not.toBeNull()
      const wasTold = state.name === 'over' && state.status !== undefined && state.by?.userId !== it.userId
      // A client that asked about a call that was over only learned its status; the reason is in the notice.
      if (wasTold && state.reason === ownReasons.lost) expect(row?.status).toBe(state.status)
      else if (wasTold) expect([row?.status, row?.end_reason]).toEqual([state.status, state.reason])
      const other = [...peer().calls].find(({ callUuid }) => callUuid === call.callUuid)
      // An acknowledged relay is in the peer's log [EXT3]; media heard of a log that was lost.
      const isWhole = other !== undefined && state.name !== 'over' && !peer().resynced.has(other)
      if (isWhole) expect(peer().heard.get(other)).toEqual(delivered.get(call) ?? [])
    }
  }
}

/** What the runs were made of: a test that meets nothing shows nothing. */
function count({ it, calls, heard, answered }: Side, total: Record<string, number>): void {
  const sockets = it.states.flatMap((state) => (state.name === 'online' ? [state.recovered] : []))
  total.calls! += calls.size
  total.answered! += answered.size
  total.candidates! += [...heard.values()].reduce((sum, names) => sum + names.length, 0)
  total.resumes! += sockets.filter((recovered) => recovered).length
  total.newSessions! += sockets.filter((recovered) => !recovered).length - 1
}

function know(side: Side, call: Call): void {
  if (side.calls.has(call)) return
  side.calls.add(call)
  side.heard.set(call, [])
  call.on('state', ({ name }) => name === 'accepted' && side.answered.add(call))
  call.on('candidate', ({ candidate }) => side.heard.get(call)?.push(Number(candidate)))
  call.on('resynced', () => side.resynced.add(call))
}

async function createWorld(service: Service): Promise<World> {
  const quick = {
    connectTimeoutMs: 500,
    heartbeatMs: 300,
    heartbeatTimeoutMs: 250,
    reconnectBaseMs: 10,
    reconnectMaxMs: 60,
  }
  const build = async (role: Person['role'], peer: () => Side): Promise<Side> => {
    const network = await new TcpProxy(() => service.url).start()
    const userId = someone(role)
    // Requests to the backend are no part of this: a busy machine may take longer for them than a client waits here.
    const token = await service.issue({ user_id: userId, role })
    const tokens: TokenReason[] = []
    const getToken = (reason: TokenReason) => {
      tokens.push(reason)
      return Promise.resolve(token)
    }
    const it = person(service, userId, role, { url: network.wsUrl, getToken, requestTimeoutMs: 8_000, ...quick })
    const side: Side = {
      it,
      network,
      tokens,
      peer,
      calls: new Set(),
      heard: new Map(),
      delivered: new Map(),
      resynced: new Set(),
      answered: new Set(),
      requests: [],
    }
    it.client.on('incoming', (call) => know(side, call))
    it.client.on('restorable', () => {
      for (const call of it.restored) if (!side.calls.has(call)) know(side, call)
    })
    return side
  }
  const sides: [Side, Side] = [await build('customer', () => sides[1]), await build('agent', () => sides[0])]
  await Promise.all(sides.map(({ it }) => online(it)))
  return { service, sides }
}

const often = ['call', 'accept', 'accept', 'candidates', 'candidates', 'candidates', 'cut', 'quiet']
const steps = [...Object.keys(acts), ...often].map((name) =>
  fc.tuple(fc.constantFrom(0, 1), fc.nat(6)).map(([side, pauseMs]) => new Step(name, side as 0 | 1, pauseMs)),
)

let service: Service
beforeAll(async () => {
  service = await new Service({ RINGWIRE_WS_RATE: 'off', RINGWIRE_MAX_RINGING: '1000' }).start()
})
afterAll(() => service.dispose())

test(`[EXT4, RES1, RES3] ${runs} random conversations over bad networks end in agreement`, async () => {
  const given = process.env.RINGWIRE_TEST_SEED
  const total = { calls: 0, answered: 0, candidates: 0, resumes: 0, newSessions: 0 }
  const property = fc.asyncProperty(
    fc.commands([...steps, fc.constant(new Restart())], { maxCommands: 40, size: 'max' }),
    async (commands) => {
      const world = await createWorld(service)
      try {
        await fc.asyncModelRun(() => ({ model: { sent: 0 }, real: world }), commands)
        await settle(world)
        check(world)
        await compare(world)
        for (const side of world.sides) count(side, total)
      } finally {
        for (const { it, network } of world.sides) {
          it.client.close()
          await network.stop()
        }
      }
    },
  )
  const result = await fc.check(property, { numRuns: runs, ...(given === undefined ? {} : { seed: Number(given) }) })
  console.log(`${result.numRuns} conversations: ${JSON.stringify(total)}, seed ${result.seed}`)
  if (result.failed) {
    const fault = result.errorInstance instanceof Error ? result.errorInstance.message : result.errorInstance
    throw new Error(`RINGWIRE_TEST_SEED=${result.seed}, ${result.counterexample}: ${fault}`)
  }
}, 280_000)
