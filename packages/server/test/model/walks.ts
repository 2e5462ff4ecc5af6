import fc from 'fast-check'
import { isLive } from '../../src/call/call.ts'
import { apply } from './apply.ts'
import { describe } from './explore.ts'
import { type Machine, strict, violated } from './machine.ts'
import {
  isUnnoted,
  leftSomething,
  newWorld,
  rung,
  type Setup,
  silent,
  type TrackedCall,
  type Verb,
  type World,
  type WorldEvent,
} from './world.ts'

/** Random walks: the same worlds and rules as in part B, larger, and much further on. */

/**
 * A step as it is drawn: it names things by numbers, taken modulo what there is when its turn comes. So a walk stays a
 * walk when steps are left out of it, and shrinks well.
 */
export interface Move {
  /** `speak`: a request of one of the two about a live call of theirs; `meddle`: of anybody about any call. */
  readonly kind: (typeof kinds)[number][0]
  readonly client: number
  readonly other: number
  readonly pick: number
  readonly flag: boolean
}

/** How often each is drawn. Calls end soon enough: what keeps them going comes more often. */
const kinds = [
  ['speak', 40],
  ['meddle', 8],
  ['invite', 5],
  ['repeat', 3],
  ['leave', 4],
  ['come', 8],
  ['time', 2],
  ['service', 1],
] as const

const spoken: readonly Verb[] = [
  ...(['accept', 'accept', 'connected', 'connected', 'relay', 'relay', 'relay', 'busy'] as const),
  ...(['reject', 'cancel', 'end', 'take', 'take'] as const),
]

const number = fc.nat({ max: 1 << 10 })
export const moves = fc.record<Move>({
  kind: fc.oneof(...kinds.map(([kind, weight]) => ({ arbitrary: fc.constant(kind), weight }))),
  client: number,
  other: number,
  pick: number,
  flag: fc.boolean(),
})

const at = <T>(items: readonly T[], index: number): T | undefined => items[index % items.length]

/** The clients that are off, live or dead, and of one of these people where people are given. */
function clientsThat(world: World, lines: readonly string[], people?: readonly number[]): readonly number[] {
  return world.clients.flatMap(({ line, person }, index) =>
    lines.includes(line) && (people === undefined || people.includes(person)) ? [index] : [],
  )
}

/** What a move stands for in this world; nothing, where there is no such session or call. */
export function eventOf(world: World, setup: Setup, move: Move): WorldEvent | undefined {
  switch (move.kind) {
    case 'speak':
    case 'meddle':
      return requestOf(world, move)
    case 'invite':
    case 'repeat':
      return inviteOf(world, setup, move)
    case 'leave': {
      const behind = at(clientsBehind(world), move.client)
      if (behind !== undefined && move.pick % 2 === 0) return { what: 'late', client: behind }
      const client = at(clientsThat(world, ['live']), move.client)
      const how = move.pick % 3 === 0 ? 'drain' : move.flag ? 'close' : 'die'
      return client === undefined ? undefined : { what: how, client }
    }
    case 'come': {
      const unnoted = at(clientsUnnoted(world), move.client)
      if (unnoted !== undefined && move.flag) return { what: 'note', client: unnoted }
      const client = at(clientsThat(world, ['off', 'dead']), move.client)
      return client === undefined ? undefined : comeOf(world, setup, client, move)
    }
    case 'time':
      return { what: move.pick % 2 === 0 ? 'wait' : move.flag ? 'timer' : 'sweep' }
    case 'service':
      if (move.pick % 8 === 0) return { what: 'restart' }
      if (move.pick % 8 === 7 && world.calls.length > 0) return { what: 'stop', call: move.other % world.calls.length }
      if (move.pick % 8 < 4) return { what: 'restart', serving: setup.nodes[move.pick % 2]! }
      return { what: 'shift', ms: move.other - 512 }
  }
}

const clientsBehind = (world: World) =>
  world.clients.flatMap(({ behind }, index) => (behind === undefined ? [] : [index]))

const clientsUnnoted = (world: World) => clientsThat(world, ['live']).filter((client) => isUnnoted(world, client))

/** A new session, the old one, or a new one that names the old one, on either node. */
function comeOf(world: World, setup: Setup, client: number, move: Move): WorldEvent {
  const { line, left } = world.clients[client]!
  if (move.flag && line === 'dead') return { what: 'observe', client }
  const node = setup.nodes[move.other % 2]!
  const how = leftSomething(world, client) ? move.pick % 4 : 0
  const resumes = how % 2 === 1 && (line === 'dead' || left?.resumable)
  if (resumes) return { what: 'resume', client, node, ...(how === 3 && ({ unnoted: true } as const)) }
  return how === 0 ? { what: 'connect', client, node } : { what: 'connect', client, node, names: true }
}

function requestOf(world: World, move: Move): WorldEvent | undefined {
  const meddles = move.kind === 'meddle'
  const calls = [...world.calls.keys()].filter((index) => meddles || isLive(world.calls[index]!.call))
  const call = at(calls, move.other)
  if (call === undefined) return undefined
  const { caller, callee } = world.calls[call]!
  const client = at(clientsThat(world, ['live'], meddles ? undefined : [caller, callee]), move.client)
  const what = at(spoken, move.pick)
  if (client === undefined || what === undefined) return undefined
  return move.flag ? { what, client, call, reason: 'in_a_meeting' } : { what, client, call }
}

function inviteOf(world: World, setup: Setup, move: Move): WorldEvent | undefined {
  const client = at(clientsThat(world, ['live']), move.client)
  if (client === undefined) return undefined
  const others = [...setup.people.keys()].filter((person) => person !== world.clients[client]?.person)
  const to = at(others, move.other)
  const uuid = move.kind === 'repeat' && world.calls.length > 0 ? move.pick % world.calls.length : 'new'
  if (to === undefined) return undefined
  const kind = move.pick % 5 === 0 ? ({ isVideo: true } as const) : {}
  const busy = move.flag ? 'reject' : 'allow'
  return { what: 'invite', client, to, uuid, rateExceeded: move.pick % 8 === 0, busy, ...kind }
}

export interface Walked {
  readonly events: number
  readonly changes: number
  readonly calls: number
}

/** Walks, then lets all timers run. Throws with the events that led to a fault. */
export function walk(rules: Machine, setup: Setup, path: readonly Move[]): Walked {
  const machine = strict(rules)
  let world = newWorld(setup)
  const trace: WorldEvent[] = []
  const go = (event: WorldEvent) => {
    trace.push(event)
    const before = world
    world = forgetOld(apply(machine, setup, world, event))
    return world !== before
  }
  let changes = 0
  try {
    for (const client of world.clients.keys()) go({ what: 'connect', client })
    for (const move of path) {
      const event = eventOf(world, setup, move)
      if (event !== undefined && go(event)) changes++
    }
    for (const [client, { line, behind }] of world.clients.entries()) {
      if (behind !== undefined) go({ what: 'late', client })
      if (line === 'dead') go({ what: 'observe', client })
    }
    while (world.calls.some(({ call }) => isLive(call))) go({ what: 'timer' })
    for (const tracked of world.calls) checkForgotten(tracked)
  } catch (error) {
    const last = trace.slice(-40).map(describe).join('\n  ')
    throw new Error(`${error instanceof Error ? error.message : error}\nafter\n  ${last}`, { cause: error })
  }
  return { events: trace.length, changes, calls: world.callsMade }
}

const remembered = 12

/** Calls that are long over are dropped from the world, so that a long walk stays fast. */
function forgetOld(world: World): World {
  if (world.calls.length <= remembered) return world
  const index = world.calls.findIndex(({ call }) => !isLive(call))
  if (index === -1 || index > world.calls.length - 6) return world
  checkForgotten(world.calls[index]!)
  return { ...world, calls: world.calls.toSpliced(index, 1) }
}

function checkForgotten({ told }: TrackedCall) {
  for (const bits of told) {
    if (bits & rung && !(bits & silent)) violated('PLACE1', 'a session is left ringing for ever')
  }
}
