import { isAnswered, isLive, type Place } from '../../src/call/call.ts'
import { type Client, loggedSession, type TrackedCall, type World } from './world.ts'

/**
 * A world as a short text that is equal exactly if worlds only differ in names: sessions are their client's, uuids are
 * gone, time is relative to now, and the people may change roles. What cannot matter any more is left out: versions, the
 * instants of calls that are over, sessions that are gone.
 */
export function canonical(world: World, orders: readonly (readonly number[])[]): string {
  let best: string | undefined
  for (const order of orders) {
    const text = textOf(world, order)
    if (best === undefined || text < best) best = text
  }
  return best ?? ''
}

/** Every order of the clients that keeps each person's together and in place: the symmetries of a world. */
export function clientOrders(world: World): readonly (readonly number[])[] {
  const people = [...new Set(world.clients.map((client) => client.person))]
  return permutations(people).map((order) =>
    order.flatMap((person) => world.clients.flatMap((client, index) => (client.person === person ? [index] : []))),
  )
}

function permutations(items: readonly number[]): readonly (readonly number[])[] {
  if (items.length < 2) return [items]
  return items.flatMap((item) => permutations(items.filter((each) => each !== item)).map((rest) => [item, ...rest]))
}

/** The place of the next session of a client that is off is another matter. */
const lines = { off: '-', live: 'L', dead: 'D' } as const
const letters = {
  ringing: 'r',
  accepted: 'a',
  connected: 'k',
  ended: 'E',
  rejected: 'R',
  cancelled: 'C',
  missed: 'M',
  busy: 'B',
} as const

function textOf(world: World, order: readonly number[]): string {
  let text = ''
  for (const index of order) text += clientText(world.clients[index]!)
  const calls = world.calls.map((tracked) => callText(world, tracked, order))
  calls.sort()
  for (const call of calls) text += `|${call}`
  return text
}

function clientText({ line, node, behind }: Client): string {
  return `${lines[line]}${line === 'off' ? '' : node}${behind === undefined ? '' : `<${behind}`}`
}

function callText(world: World, tracked: TrackedCall, order: readonly number[]): string {
  const { call, caller } = tracked
  const callerFirst = order.findIndex((index) => world.clients[index]?.person === caller)
  let text = `${letters[call.status]}${callerFirst}`
  if (!isLive(call)) return text
  text += placeText(world, call.callerPlace, order)
  if (isAnswered(call)) text += `${placeText(world, call.calleePlace, order)}@${call.acceptedAt - world.now}`
  else {
    text += `@${call.ringExpiresAt - world.now}s`
    for (const [at, index] of order.entries()) {
      const sessionId = loggedSession(world.clients[index]!)
      if (sessionId !== undefined && call.silenced.includes(sessionId)) text += at
    }
  }
  text += 't'
  for (const index of order) text += tracked.told[index]
  return text
}

function placeText(world: World, place: Place, order: readonly number[]): string {
  const client = order.findIndex((index) => sessionOf(world.clients[index]!) === place.sessionId)
  if (place.state === 'vacant')
    return `v${place.closed === true ? 'c' : ''}${place.awaitedMs === undefined ? '' : 'a'}${place.deviceId ?? ''}${leaverText(world, place, client, order)}${place.since - world.now}`
  return `${place.settled ? 'h' : 'u'}${client}${place.node}`
}

function sessionOf({ actor, left }: Client): string | undefined {
  return (actor ?? left?.actor)?.sessionId
}

/** A session that left a place counts as long as its client can come back as that session, or name it. */
function leaverText(world: World, place: Place, client: number, order: readonly number[]): string {
  if (client === -1) return ''
  if (loggedSession(world.clients[order[client]!]!) === undefined) return `n${client}`
  return `${place.settled ? 's' : 'u'}${client}`
}
