import type { TokenRequest, TokenResponse } from '@ringwire/protocol/rest'
import { tokenHeader } from '@ringwire/testkit/client'
import { RawWebSocket } from '@ringwire/testkit/raw-websocket'
import { createSystemTimers } from '../../src/time/timers.ts'
import { Random } from '../fuzz/random.ts'
import { liveCallCount, pendingHookCount, readCalls, readEvents, readHistory, withMembers } from './collect.ts'
import { createFaults } from './faults.ts'
import { capabilities, Habits } from './habits.ts'
import type { RunOptions } from './options.ts'
import { Person, role } from './person.ts'
import { type LineEvents, Phone } from './phone.ts'
import { type GroupInTurns, type Recording, type StoreKind, type Trace, userNames } from './recording.ts'
import { createWorld, productKey, resumeWindowMs, type World } from './world.ts'

/** Tells what people do beside calling and answering from what else is drawn from a seed. */
const habitsSalt = 0x2c1b3c6d
/** The groups, by how they ring. Each has `groupSize` members, the first of them another one. */
const strategies = { first: 'all', second: 'all', third: 'in_turn', fourth: 'longest_idle' } as const
const groupNames = Object.keys(strategies) as (keyof typeof strategies)[]
const groupSize = 4
/** The shortest that a group may ring, and that one of its members may, in ms. */
const groupRingMs = 5_000
const memberRingMs = 5_000
/** The time for some turns, in ms. */
const turnsRingMs = 12_000
/** One of this many people has two phones, and goes on with a call of one of them on the other [TAKE1]. */
const twoPhonesOf = 5
const tickMs = 200
/** How often some phone's network goes away, for each phone, in ms: on average. */
const networkLossMs = 20_000
/** A run that has to show something goes on until it does, but for no longer than this many times its length. */
const mostTimes = 4
/** How often it is looked whether it has, in ms. */
const enoughLookMs = 1_000
/** A bound for failures: after the last fault everybody is through with everything long before. */
const endPatienceMs = 40_000
/**
 * A webhook waits 30 s for the claim of a node that died, and as long for an attempt after two that failed; a third one, which
 * no endpoint fails, makes it wait for 2 min.
 */
const hookPatienceMs = 200_000
/** A fault with nobody to blame is put right in this time: a node looks after its logs every 5 s. */
const lastNewsMs = 6_000

interface Participant {
  /** Of the person and the phone. */
  readonly name: string
  readonly person: Person
  readonly phone: Phone
  readonly token: string
  /** Its person has another one, too. */
  readonly isApart: boolean
}

/**
 * Runs the service with people and faults, and answers all that was seen. `say` gets a line of progress; `interrupted`
 * ends it without an answer, and rejects.
 */
export async function runChaos(
  options: RunOptions & Showing,
  say: (text: string) => void,
  interrupted?: AbortSignal,
): Promise<Recording> {
  const startedAt = Date.now()
  const began = performance.now()
  const at = () => Math.round((performance.now() - began) * 10) / 10
  const world = await createWorld(options, at)
  try {
    const { promise, reject } = Promise.withResolvers<never>()
    interrupted?.addEventListener('abort', () => reject(new Error('interrupted')))
    interrupted?.throwIfAborted()
    return await Promise.race([promise, runIn(world, options, { startedAt, at, say })])
  } finally {
    await world.dispose()
  }
}

/** What a run has to show; nothing where that is left out. */
export interface Showing {
  /** People on a busy machine say little: whether those of all phones have said enough. */
  readonly isEnough?: (traces: readonly Trace[]) => boolean
}

interface Course {
  readonly startedAt: number
  readonly at: () => number
  readonly say: (text: string) => void
}

async function runIn(world: World, options: RunOptions & Showing, { startedAt, at, say }: Course): Promise<Recording> {
  const { seed, nodes, store, redis, users, durationS, decides } = options
  const random = new Random(seed)
  const names = userNames(users)
  await makeGroups(world, names)
  const habits = new Random(seed ^ habitsSalt)
  const participants = await invitePeople(world, names, { random: random.fork(), habits }, at)
  const phones = participants.map(({ phone }) => phone)
  const faults = createFaults({ world, options, phones, random: random.fork(), at, onFault: say })
  const networks = random.fork()
  let calm = false
  const ticker = setInterval(() => {
    for (const { phone } of participants) {
      phone.tick()
      if (!calm && networks.int(networkLossMs / tickMs) === 0) phone.lose()
    }
  }, tickMs)
  for (const { phone, person } of participants) {
    phone.connect()
    person.start()
  }
  faults.start()
  await Promise.all([Bun.sleep(durationS * 1000), faults.enough])
  const isEnough = () => options.isEnough?.(phones.map(({ trace }) => trace)) ?? true
  while (!isEnough() && at() < mostTimes * durationS * 1000) await Bun.sleep(enoughLookMs)
  await faults.stop()
  calm = true
  say(`${(at() / 1000).toFixed(1)} s no more faults`)
  const stuck = await finish(world, store, participants)
  clearInterval(ticker)
  const crashes = world.nodes.flatMap((node) => node.crashes)
  const bugs = world.nodes.flatMap((node) => node.bugs)
  const settings = {
    seed,
    nodes,
    store,
    redis,
    users,
    durationS,
    startedAt,
    resumeWindowMs,
    ...(decides && { decides }),
  }
  const apart = [...new Set(participants.filter(({ isApart }) => isApart).map(({ person }) => person.userId))]
  const inTurns = groupsInTurns(names)
  const header = { ...settings, stuck, faults: faults.records, crashes, bugs, apart, inTurns }
  return { header, ...(await collect(world, participants, membersIn(names))) }
}

/** Each phone of each person. Tokens outlive the run: what is tried here is not the end of a token. */
async function invitePeople(
  world: World,
  names: readonly string[],
  { random, habits }: { readonly random: Random; readonly habits: Random },
  at: () => number,
): Promise<Participant[]> {
  const timers = createSystemTimers()
  const handsets = names.flatMap((userId, index) => {
    const isApart = index % twoPhonesOf === twoPhonesOf - 1
    return (isApart ? ['phone', 'tablet'] : ['phone']).map((device) => ({
      userId,
      name: `${device}-of-${userId}`,
      isApart,
    }))
  })
  return Promise.all(
    handsets.map(async ({ userId, name, isApart }) => {
      const token = await issueToken(random.pick(world.nodes).url, userId, name)
      const own = random.fork()
      const ways = random.fork()
      const phone: Phone = new Phone({
        userId,
        random: random.fork(),
        timers,
        at,
        can: capabilities,
        dial: (query, events) => dial(ways.pick(world.nodes), token, query, events),
        onPush: (frame) => person.onPush(frame),
        onFresh: (frame) => person.onFresh(frame),
      })
      const others = names.filter((other) => other !== userId)
      const person: Person = new Person(phone, {
        ...{ userId, others, random: own, timers, hasOthers: isApart },
        newUuid: () => crypto.randomUUID(),
        habits: new Habits({ random: habits.fork(), role, groups: groupNames, takes: isApart, isDesk: true }),
      })
      return { name, person, phone, token, isApart }
    }),
  )
}

async function makeGroups({ nodes }: World, names: readonly string[]): Promise<void> {
  for (const name of groupNames) {
    const strategy = strategies[name]
    await askService(nodes[0]?.url ?? '', `/v1/server/groups/${role}/${name}`, 'PUT', {
      ...{ members: membersOf(name, names), strategy, member_ring_ms: memberRingMs },
      ring_ms: strategy === 'all' ? groupRingMs : turnsRingMs,
    })
  }
}

function membersOf(name: keyof typeof strategies, names: readonly string[]): readonly string[] {
  const first = (groupNames.indexOf(name) * 2) % Math.max(1, names.length - 1)
  return names.slice(first, first + groupSize)
}

function membersIn(names: readonly string[]): ReadonlyMap<string, readonly string[]> {
  return new Map(groupNames.map((name) => [name, membersOf(name, names)]))
}

function groupsInTurns(names: readonly string[]): GroupInTurns[] {
  return groupNames.flatMap((name) => {
    const strategy = strategies[name]
    return strategy === 'all' ? [] : [{ name, strategy, memberRingMs, members: membersOf(name, names) }]
  })
}

function dial({ index, url }: { index: number; url: string }, token: string, query: string, events: LineEvents) {
  const line = new RawWebSocket({
    url,
    target: `/v1/ws?${query}`,
    headers: [tokenHeader(token)],
    onText: events.onText,
    onClosed: ({ code }) => events.onClosed(code),
  })
  line.answer.then(({ status }) => status === 101 || line.reset())
  return { node: index, line }
}

async function issueToken(nodeUrl: string, userId: string, device_id: string): Promise<string> {
  const body: TokenRequest = {
    user_id: userId,
    role,
    display_name: userId,
    device_id,
    allowed_peer_role: role,
    context_type: 'chaos',
    context_id: '1',
  }
  const response = await askService(nodeUrl, '/v1/call/session-token', 'POST', body)
  return ((await response.json()) as TokenResponse).token
}

/** As the backend of the product. */
async function askService(nodeUrl: string, path: string, method: string, body: object): Promise<Response> {
  const response = await fetch(`${nodeUrl}${path}`, {
    method,
    headers: {
      'Content-Type': 'application/json',
      'X-SVC-Product-Key-ID': productKey.id,
      'X-SVC-Product-Secret': productKey.secret,
    },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return response
}

/**
 * Nobody begins anything; all calls end; then everybody hears what there is to hear, comes back once more, and hears
 * the rest: what a log holds and nobody was woken for shows there. Answers who or what does not come to an end.
 */
async function finish(
  { query, redis, endpoints }: World,
  store: StoreKind,
  participants: readonly Participant[],
): Promise<string[]> {
  const phones = participants.map(({ name, phone }) => [name, phone] as const)
  const stuck = await eachInTime(
    'still has calls',
    participants.map(({ name, person }) => [name, () => person.stop()]),
  )
  const noneLive = async () => {
    while ((await liveCallCount(query)) > 0) await Bun.sleep(tickMs)
  }
  stuck.push(...(await eachInTime('holds live calls', [['the database', noneLive]])))
  if (redis !== undefined) await Bun.sleep(lastNewsMs)
  stuck.push(
    ...(await eachInTime(
      'gets no answer',
      phones.map(([name, phone]) => [name, () => phone.settle()]),
    )),
  )
  const lastVisit = async (phone: Phone) => {
    phone.lose()
    await phone.online()
    await phone.settle()
  }
  stuck.push(
    ...(await eachInTime(
      'does not come back',
      phones.map(([name, phone]) => [name, () => lastVisit(phone)]),
    )),
  )
  if (endpoints.length > 0) {
    const nonePending = async () => {
      while ((await pendingHookCount(query, store)) > 0) await Bun.sleep(tickMs)
    }
    stuck.push(...(await eachInTime('are on their way', [['webhooks', nonePending]], hookPatienceMs)))
  }
  return stuck
}

/** Does all of it at once; answers whose part was not done in time. */
async function eachInTime(
  what: string,
  parts: (readonly [string, () => Promise<void>])[],
  patienceMs = endPatienceMs,
): Promise<string[]> {
  const open = new Set(parts.map(([name]) => name))
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, patienceMs)
  await Promise.race([late, Promise.all(parts.map(([name, part]) => part().then(() => open.delete(name))))])
  clearTimeout(timer)
  return [...open].map((name) => `${name} ${what}`)
}

async function collect(
  { nodes, query, endpoints }: World,
  participants: readonly Participant[],
  groups: ReadonlyMap<string, readonly string[]>,
) {
  const nodeUrl = nodes[0]?.url ?? ''
  const readers = new Map(participants.map(({ person, token }) => [person.userId, token]))
  const histories = await Promise.all([...readers].map(([userId, token]) => readHistory(nodeUrl, userId, token)))
  for (const { phone } of participants) phone.leave()
  const tracesOf = (apart: boolean) =>
    participants.flatMap(({ phone, isApart }) => (isApart === apart ? phone.trace : []))
  const [traces, tracesApart] = [tracesOf(false), tracesOf(true)]
  const events = await readEvents(query)
  return {
    ...{ histories, traces, tracesApart },
    calls: withMembers(await readCalls(query), events, [...traces, ...tracesApart], groups),
    events,
    hooks: endpoints.map(({ hooks }) => hooks),
  }
}
