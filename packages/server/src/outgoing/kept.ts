import { Agent, type AgentOptions } from 'node:http'
import { Agent as TlsAgent } from 'node:https'
import type { Duplex } from 'node:stream'
import { createMeters, type Meters } from './meter.ts'

export interface KeptLimits {
  /** The time that a connection waits for the next request: less than servers wait, as a rule. In ms. */
  readonly idleMs: number
  /** After this time no connection is kept: names come to mean other addresses. In ms. */
  readonly ageMs: number
}

const usual: KeptLimits = { idleMs: 4_000, ageMs: 60_000 }
/** The most connections that wait for one host and port. */
const maxFreeSockets = 10

export interface Agents {
  readonly plain: Agent
  readonly tls: TlsAgent
  /** What comes over the connections of both. */
  readonly meters: Meters
}

/**
 * Connections that wait for the next request to the same scheme, host and port. Each goes on to where it was checked to go,
 * whatever the name means by then [HOOK4].
 */
export function createAgents(limits: Partial<KeptLimits> = {}): Agents {
  const { idleMs, ageMs } = { ...usual, ...limits }
  const options: AgentOptions = { keepAlive: true, timeout: idleMs, maxFreeSockets, scheduling: 'lifo' }
  const meters = createMeters()
  return {
    plain: bounded(new Agent(options), ageMs, meters),
    tls: bounded(new TlsAgent(options), ageMs, meters),
    meters,
  }
}

function bounded<A extends Agent>(agent: A, ageMs: number, meters: Meters): A {
  const since = new WeakMap<Duplex, number>()
  const connect = agent.createConnection.bind(agent)
  agent.createConnection = (...asked) => {
    const socket = connect(...asked)
    if (socket) meters.add(socket)
    return socket
  }
  const keep = agent.keepSocketAlive.bind(agent)
  agent.keepSocketAlive = (socket: Duplex) => {
    meters.end(socket)
    const now = performance.now()
    const from = since.get(socket) ?? now
    since.set(socket, from)
    return now - from < ageMs && keep(socket) !== (false as unknown)
  }
  return agent
}
