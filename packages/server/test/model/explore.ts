import { isLive } from '../../src/call/call.ts'
import { apply } from './apply.ts'
import { canonical, clientOrders } from './canonical.ts'
import { type Machine, strict, violated } from './machine.ts'
import {
  type Client,
  isUnnoted,
  leftSomething,
  newWorld,
  rung,
  type Setup,
  silent,
  verbs,
  type World,
  type WorldEvent,
} from './world.ts'

/** Part B: every order in which things can happen in a small world, breadth-first, each state once. */

export interface Exploration {
  readonly depth: number
  readonly states: number
  readonly transitions: number
  readonly byDepth: readonly number[]
  /** States driven to the end of all timers. */
  readonly settled: number
}

/** Everything that can happen now. */
export function* eventsOf(world: World, setup: Setup, maxCalls: number): Generator<WorldEvent> {
  for (const [client, { line, person, left, behind }] of world.clients.entries()) {
    if (line !== 'live') yield { what: 'connect', client }
    if (line !== 'live' && leftSomething(world, client)) {
      yield { what: 'connect', client, names: true }
      if (line === 'dead' || left?.resumable) yield* resumes(setup, client, world.clients[client]!)
    }
    if (line === 'dead') yield { what: 'observe', client }
    if (behind !== undefined) yield { what: 'late', client }
    if (line !== 'live') continue
    if (isUnnoted(world, client)) yield { what: 'note', client }
    yield { what: 'close', client }
    yield { what: 'die', client }
    if (leftSomething(world, client)) yield { what: 'drain', client }
    for (const call of world.calls.keys()) for (const what of verbs) yield { what, client, call }
    for (const to of setup.people.keys()) {
      if (to === person) continue
      if (world.calls.length < maxCalls) yield { what: 'invite', client, to, uuid: 'new' }
      for (const [uuid, { caller }] of world.calls.entries()) {
        if (caller === person || world.calls.length < maxCalls) yield { what: 'invite', client, to, uuid }
      }
    }
  }
  yield { what: 'timer' }
  yield { what: 'sweep' }
  yield { what: 'wait' }
  yield { what: 'restart' }
  for (const serving of setup.nodes) yield { what: 'restart', serving }
  for (const call of world.calls.keys()) yield { what: 'stop', call }
  yield { what: 'shift', ms: -12_345_678 }
}

/** On either node; what the calls do not know of that matters where they still name the other one. */
function* resumes(setup: Setup, client: number, { line, node: was }: Client): Generator<WorldEvent> {
  for (const node of setup.nodes) {
    yield { what: 'resume', client, node }
    if (line === 'dead' && node !== was) yield { what: 'resume', client, node, unnoted: true }
  }
}

export function describe(event: WorldEvent): string {
  return JSON.stringify(event).replaceAll('"', '')
}

/** All sessions at the start are live: what is reached from there includes that they go and come. */
export function openWorld(setup: Setup, machine: Machine): World {
  let world = newWorld(setup)
  for (const client of world.clients.keys()) world = apply(machine, setup, world, { what: 'connect', client })
  return world
}

interface Reached {
  readonly world: World
  readonly key: string
  readonly from: Reached | undefined
  readonly by: WorldEvent | undefined
}

export function explore(rules: Machine, setup: Setup, depth: number, maxCalls: number): Exploration {
  const machine = strict(rules)
  const first = openWorld(setup, machine)
  const orders = clientOrders(first)
  const root: Reached = { world: first, key: canonical(first, orders), from: undefined, by: undefined }
  const seen = new Set([root.key])
  const byDepth = [1]
  let transitions = 0
  let layer: Reached[] = [root]
  for (let level = 0; level < depth; level++) {
    const next: Reached[] = []
    for (const from of layer) {
      for (const by of eventsOf(from.world, setup, maxCalls)) {
        transitions++
        const world = stepOn(machine, setup, from, by)
        if (world === from.world) continue
        const key = canonical(world, orders)
        if (by.what === 'shift' && key !== from.key)
          fail(from, by, new Error('[END3] a jump of the clock changed a remaining time'))
        if (seen.has(key)) continue
        seen.add(key)
        next.push({ world, key, from, by })
      }
    }
    byDepth.push(next.length)
    layer = next
  }
  for (const reached of layer) settle(machine, setup, reached)
  return { depth, states: seen.size, transitions, byDepth, settled: layer.length }
}

function stepOn(machine: Machine, setup: Setup, from: Reached, by: WorldEvent): World {
  try {
    return apply(machine, setup, from.world, by)
  } catch (error) {
    return fail(from, by, error)
  }
}

/** Says how the fault was reached. */
function fail(from: Reached, by: WorldEvent, error: unknown): never {
  const path = [describe(by)]
  for (let at: Reached | undefined = from; at?.by !== undefined; at = at.from) path.unshift(describe(at.by))
  throw new Error(`${error instanceof Error ? error.message : error}\nafter ${path.join('\n      ')}`, { cause: error })
}

/** Lets all timers run: in the end every call is over, and everybody who was rung knows. */
function settle(machine: Machine, setup: Setup, reached: Reached) {
  let at = reached
  const go = (by: WorldEvent) => {
    at = { world: stepOn(machine, setup, at, by), key: '', from: at, by }
  }
  for (const [client, { line, behind }] of reached.world.clients.entries()) {
    if (behind !== undefined) go({ what: 'late', client })
    if (line === 'dead') go({ what: 'observe', client })
  }
  while (at.world.calls.some(({ call }) => isLive(call))) {
    const before = at.world
    go({ what: 'timer' })
    if (at.world === before) violated('RING1', 'a live call has no timer')
  }
  for (const { told } of at.world.calls) {
    for (const bits of told)
      if (bits & rung && !(bits & silent)) violated('PLACE1', 'a session is left ringing for ever')
  }
}
