import { type Call, isAnswered, isLive, type LiveCall, type Place } from '../../src/call/call.ts'
import type { Actor, CallCommand } from '../../src/call/command.ts'
import { checkAnswer } from './answers.ts'
import { applyInvite } from './apply-invite.ts'
import { cause, commit } from './commit.ts'
import { type Machine, violated } from './machine.ts'
import type { Cause } from './rules.ts'
import {
  changeOf,
  clientOf,
  closeSession,
  type Draft,
  draftOf,
  final,
  homeOf,
  isThere,
  nextDue,
  openSession,
  restartUnder,
  resumeSession,
  rung,
  type Setup,
  seatIn,
  sessionsOf,
  sideIn,
  silent,
  tell,
  type Verb,
  type World,
  type WorldEvent,
} from './world.ts'

/** How long a client is awaited that was asked to come back, with a jitter of 100 ms [PEER1]. */
const awaitedMs = 1_100
/** As PLACE2 (c) has it. */
const ownDeviceMs = 5_000

type Event<What> = Extract<WorldEvent, { readonly what: What }>

/** What an event makes of a world; the same world where nothing changes. Every rule is checked on the way. */
export function apply(machine: Machine, setup: Setup, world: World, event: WorldEvent): World {
  const draft = draftOf(world)
  const changed = happen(machine, setup, draft, event)
  if (!changed) return world
  checkWorld(draft)
  return draft
}

function happen(machine: Machine, setup: Setup, draft: Draft, event: WorldEvent): boolean {
  switch (event.what) {
    case 'connect':
      connect(machine, setup, draft, event)
      return true
    case 'resume':
      resume(machine, setup, draft, event)
      return true
    case 'note':
      return arriveAtOwn(machine, setup, draft, event.client)
    case 'die': {
      const client = draft.clients[event.client]!
      draft.clients[event.client] = { ...client, line: 'dead' }
      return true
    }
    case 'close':
    case 'observe':
      lose(machine, setup, draft, event.client, { closed: event.what === 'close' })
      return true
    case 'drain':
      lose(machine, setup, draft, event.client, { closed: false, awaitedMs })
      return true
    case 'late':
      return loseBehind(machine, setup, draft, event.client)
    case 'timer':
    case 'sweep':
      return passTime(machine, setup, draft, event.what)
    case 'wait':
      return wait(setup, draft)
    case 'restart':
      for (const index of draft.clients.keys()) restartUnder(draft, index, event.serving)
      everyCall(machine, setup, draft, { type: 'restart', nodes: event.serving === undefined ? [] : [event.serving] })
      return true
    case 'shift':
      draft.now += event.ms
      everyCall(machine, setup, draft, { type: 'shift', ms: event.ms })
      return true
    case 'stop':
      return stop(machine, setup, draft, event.call)
    case 'invite':
      return applyInvite(machine, setup, draft, event)
    default:
      return request(machine, setup, draft, event.what, event.client, event.call, event.reason ?? null)
  }
}

/**
 * A new session: first the service looks what it may take, then it rings for what rings [PLACE2, PLACE4, WS4]. What the
 * session that it names had is its own [RES2].
 */
function connect(machine: Machine, setup: Setup, draft: Draft, event: Event<'connect'>) {
  const { client: index, names = false, node = homeOf(setup, event.client) } = event
  loseBehind(machine, setup, draft, index)
  if (draft.clients[index]?.line === 'dead') lose(machine, setup, draft, index, { closed: false })
  const resumes = names ? draft.clients[index]?.left?.actor.sessionId : undefined
  const actor = openSession(draft, setup, index, node)
  const { person } = draft.clients[index]!
  for (const [at, { call }] of draft.calls.entries()) {
    if (!isLive(call) || sideIn(draft.calls[at]!, person) === undefined) continue
    arrive(machine, setup, draft, at, actor, resumes)
    if (call.status === 'ringing' && draft.calls[at]?.callee === person) tell(draft, at, index, rung)
  }
}

/** The same session again: it only asks for its own places, and calls that began to ring meanwhile ring [RES1]. */
function resume(machine: Machine, setup: Setup, draft: Draft, { client, node, unnoted }: Event<'resume'>) {
  resumeSession(draft, client, node)
  if (unnoted !== true) arriveAtOwn(machine, setup, draft, client)
  for (const [at, { call, callee }] of draft.calls.entries()) {
    if (call.status === 'ringing' && callee === draft.clients[client]?.person) tell(draft, at, client, rung)
  }
}

/** A session takes its own places along to where it is; true where that was news. */
function arriveAtOwn(machine: Machine, setup: Setup, draft: Draft, index: number): boolean {
  const { actor, person } = draft.clients[index]!
  if (actor === undefined) return violated('world', 'a session that is not there arrived')
  const before = [...draft.calls]
  for (const [at, tracked] of before.entries()) {
    const side = sideIn(tracked, person)
    if (!isLive(tracked.call) || side === undefined) continue
    if (seatIn(tracked.call, side)?.sessionId === actor.sessionId) arrive(machine, setup, draft, at, actor, undefined)
  }
  return before.some((tracked, at) => draft.calls[at] !== tracked)
}

function arrive(machine: Machine, setup: Setup, draft: Draft, at: number, actor: Actor, resumes: string | undefined) {
  const { call } = draft.calls[at]!
  const command: CallCommand = { type: 'arrive', actor, ...(resumes !== undefined && { resumes }) }
  const decision = machine.decide(call, command, draft.now, setup.durations)
  if (!decision.ok) violated('PLACE2', `an arrival was refused: ${decision.code}`)
  const client = clientOf(draft, actor.sessionId)
  const side = sideIn(draft.calls[at]!, draft.clients[client]!.person)
  const place = side === undefined ? null : seatIn(call, side)
  const isOwn = place?.sessionId === actor.sessionId
  const takes =
    place?.state === 'held' ? isOwn && place.node !== actor.node : isOwn || place?.deviceId === actor.deviceId
  if (decision.steps.length !== (takes ? 1 : 0)) violated('PLACE2', 'who connected did not take what its device left')
  commit(setup, draft, decision.steps, { ...cause(draft, 'arrive', client), names: resumes })
}

/** A close was observed: the lost clocks of what the session held begin [END3]. */
function lose(machine: Machine, setup: Setup, draft: Draft, index: number, how: How) {
  const { sessionId = '', node = '' } = draft.clients[index]?.actor ?? {}
  closeSession(draft, index, true)
  loseOn(machine, setup, draft, sessionId, node, how)
}

/** The node that a session left for another one sees at last that the socket there is gone; true where there was one. */
function loseBehind(machine: Machine, setup: Setup, draft: Draft, index: number): boolean {
  const client = draft.clients[index]!
  const sessionId = (client.actor ?? client.left?.actor)?.sessionId
  if (client.behind === undefined || sessionId === undefined) return false
  draft.clients[index] = { ...client, behind: undefined }
  loseOn(machine, setup, draft, sessionId, client.behind, { closed: false })
  return true
}

type How = Pick<NonNullable<Cause['lost']>, 'closed' | 'awaitedMs'>

function loseOn(machine: Machine, setup: Setup, draft: Draft, sessionId: string, node: string, how: How) {
  for (const { call } of [...draft.calls]) {
    if (!isLive(call)) continue
    const decision = machine.decide(call, { type: 'lose', sessionId, node, ...how }, draft.now, setup.durations)
    const isHeld = (place: Place) => place.state === 'held' && place.sessionId === sessionId && place.node === node
    const held = placesOf(call).some(isHeld)
    if (decision.steps.length !== (held ? 1 : 0)) violated('END3', 'a loss is not noted, or a loss of nothing is')
    commit(setup, draft, decision.steps, { ...cause(draft, 'lose', undefined), lost: { sessionId, node, ...how } })
  }
}

/** The timer of the call that is due first, in time; or a sweep over all, half a minute late. */
function passTime(machine: Machine, setup: Setup, draft: Draft, how: 'timer' | 'sweep'): boolean {
  const due = nextDue(draft, setup.durations)
  if (due === undefined) return false
  const decideTime = (call: Call, now: number) => machine.decide(call, { type: 'time' }, now, setup.durations)
  if (due.at > draft.now) {
    const early = decideTime(draft.calls[due.index]!.call, due.at - 1)
    if (early.steps.length > 0) violated('RING1', 'a timer fired before its time')
  }
  draft.now = Math.max(draft.now, how === 'timer' ? due.at : due.at + 30_000)
  for (const [index, { call }] of draft.calls.entries()) {
    if (!isLive(call) || (how === 'timer' && index !== due.index)) continue
    commit(setup, draft, decideTime(call, draft.now).steps, cause(draft, 'time', undefined))
  }
  const { call } = draft.calls[due.index]!
  if (isLive(call) && changeOf(call, setup.durations).at <= draft.now) violated('RING1', `${due.reason} did not come`)
  return true
}

/** Nothing if no place waits only for its holder's device. */
function wait(setup: Setup, draft: Draft): boolean {
  const live = draft.calls.flatMap(({ call }) => (isLive(call) ? placesOf(call) : []))
  const isAwaited = (place: Place) => place.state === 'vacant' && draft.now - place.since < ownDeviceMs
  const due = nextDue(draft, setup.durations)
  if (!live.some(isAwaited) || due === undefined || due.at <= draft.now + ownDeviceMs) return false
  draft.now += ownDeviceMs
  return true
}

function placesOf(call: LiveCall): readonly Place[] {
  return isAnswered(call) ? [call.callerPlace, call.calleePlace] : [call.callerPlace]
}

/** What the service does to all live calls at once; true where that changed one. */
function everyCall(
  machine: Machine,
  setup: Setup,
  draft: Draft,
  command: Extract<CallCommand, { type: 'restart' | 'shift' }>,
): boolean {
  let changed = false
  for (const { call } of [...draft.calls]) {
    if (!isLive(call)) continue
    const { steps } = machine.decide(call, command, draft.now, setup.durations)
    const serving = command.type === 'restart' ? command.nodes[0] : undefined
    const isServed = (place: Place) => place.state === 'held' && place.node === serving
    const expected = command.type !== 'shift' && placesOf(call).every(isServed) ? 0 : 1
    if (steps.length !== expected) violated('END3', `${command.type}: ${steps.length} steps of a live call`)
    commit(setup, draft, steps, { ...cause(draft, command.type, undefined), serving })
    for (const place of command.type === 'shift' ? [] : steps.flatMap((step) => placesOf(step.call as LiveCall))) {
      if (place.state === 'vacant' && place.since !== draft.now) violated('END3', 'a lost clock did not begin again')
      if (place.state === 'held' && !isServed(place))
        violated('END3', 'a place is held by who is on no node that serves')
    }
    changed ||= steps.length > 0
  }
  return changed
}

/** The application backend ends a call: a live one always does, one that is over stays as it was [SRV2]. */
function stop(machine: Machine, setup: Setup, draft: Draft, index: number): boolean {
  const { call } = draft.calls[index]!
  const { steps } = machine.decide(call, { type: 'stop', note: null }, draft.now, setup.durations)
  if (steps.length !== (isLive(call) ? 1 : 0))
    violated('SRV2', `${steps.length} steps of a call that is ${call.status}`)
  commit(setup, draft, steps, cause(draft, 'stop', undefined))
  return steps.length > 0
}

/** A client's request about a call. */
function request(
  machine: Machine,
  setup: Setup,
  draft: Draft,
  verb: Verb,
  client: number,
  index: number,
  reason: string | null,
): boolean {
  const tracked = draft.calls[index]!
  const { actor, person } = draft.clients[client]!
  if (actor === undefined) return violated('world', 'a session that is not there spoke')
  const rungSessions = sessionsOf(draft, tracked.callee)
  const command = commandOf(verb, actor, reason, rungSessions)
  const decision = machine.decide(tracked.call, command, draft.now, setup.durations)
  checkAnswer(tracked, sideIn(tracked, person), actor, verb, reason, decision, draft.now, rungSessions)
  if (decision.steps.length === 0) return false
  const before = tracked.call
  const silences = verb === 'accept' || verb === 'reject' || verb === 'busy' || verb === 'end'
  if (before.status === 'ringing' && tracked.callee === person && silences) tell(draft, index, client, silent)
  commit(setup, draft, decision.steps, { ...cause(draft, 'request', client), verb })
  if (!isLive(draft.calls[index]!.call)) tell(draft, index, client, final)
  return true
}

function commandOf(verb: Verb, actor: Actor, reason: string | null, rungSessions: readonly string[]): CallCommand {
  switch (verb) {
    case 'busy':
      return { type: 'reject', actor, reason: 'busy', rung: rungSessions }
    case 'reject':
      return { type: 'reject', actor, reason, rung: rungSessions }
    case 'cancel':
    case 'end':
      return { type: verb, actor, reason }
    default:
      return { type: verb, actor }
  }
}

/** What holds between the calls of a world. */
function checkWorld(draft: Draft) {
  for (const [index, { call, caller, callee }] of draft.calls.entries()) {
    if (!isLive(call)) continue
    for (const place of placesOf(call)) {
      if (place.state === 'held' && !draft.clients.some((client) => isThere(client, place)))
        violated('END3', 'a place is held by nobody, or by somebody who is not where it says')
    }
    if (call.status !== 'ringing') continue
    for (const other of draft.calls.slice(0, index)) {
      if (other.call.status !== 'ringing') continue
      if (other.caller === caller && other.callee === callee) violated('INV7', 'two calls ring between the same two')
      if (other.caller !== callee || other.callee !== caller) continue
      if (other.call.callerPlace.state === 'held' && call.callerPlace.state === 'held')
        violated('INV6', 'crossing calls ring')
    }
  }
}
