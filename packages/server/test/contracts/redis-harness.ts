import { Redis } from 'ioredis'
import type { Cluster } from '../../src/cluster/cluster.ts'
import type { Sessions, Sink } from '../../src/ports/sessions.ts'
import { createStore, type Store } from '../../src/stores/redis/connection.ts'
import type { RedisDatabases } from '../support/redis.ts'
import { createRedisSessions } from '../support/redis-sessions.ts'
import type { OpenSessions, SessionsHarness } from './session-parts.ts'

/** What a node sends its commands through, where it is not what this build has. */
export type WrapStore = (store: Store) => Store
type Windows = Parameters<OpenSessions>[0]

/** Nodes that are started, and what they share. */
export interface Nodes {
  readonly nodes: readonly Cluster[]
  flush(): Promise<void>
  close(): Promise<void>
}

/** Nodes on a database of their own, because a suite may empty it. */
async function startNodes(server: RedisDatabases, wraps: readonly WrapStore[], windows: Windows): Promise<Nodes> {
  const url = await server.database()
  const failures: unknown[] = []
  const onError = (error: unknown) => void failures.push(error)
  const nodes: Cluster[] = wraps.map((wrap) =>
    createRedisSessions({
      ...windows,
      url,
      store: wrap(createStore(url, onError)),
      node: crypto.randomUUID(),
      onError,
    }),
  )
  await Promise.all(nodes.map((node) => node.start()))
  const client = new Redis(url)
  return {
    nodes,
    flush: async () => void (await client.flushdb()),
    async close() {
      await Promise.all(nodes.map((node) => node.close()))
      client.disconnect()
      if (failures.length > 0) throw failures[0]
    },
  }
}

export function harnessOf({ nodes, flush, close }: Nodes, sessions: Sessions): SessionsHarness {
  const settled = async () => {
    await Promise.all(nodes.map((node) => node.settled()))
  }
  /** Sessions with an owner have their pushes in its memory. */
  const emptyStore = async () => {
    await settled()
    await flush()
    for (const node of nodes) await node.look()
    await settled()
  }
  return { sessions, isShared: true, emptyStore, settled, close }
}

/**
 * Two nodes: sockets are on one or the other, a session changes the node when it comes back, and whatever can be said to
 * any node is said to the one that does not hold the socket.
 */
function acrossNodes([one, two]: readonly Sessions[], settled: () => Promise<void>): Sessions {
  if (one === undefined || two === undefined) throw new Error('two nodes')
  const homes = new Map<string, Sessions>()
  let turn = 0
  const next = () => (turn++ % 2 === 0 ? one : two)
  const home = (id: string) => homes.get(id) ?? one
  const away = (id: string) => (home(id) === one ? two : one)
  return {
    async open(identity, sink, at) {
      homes.set(identity.sessionId, next())
      return home(identity.sessionId).open(identity, sink, at)
    },
    sinkToReplace: (id, ...how) => home(id).sinkToReplace(id, ...how),
    async resume(request, identity, sink, at) {
      const there = away(request.sessionId)
      // As arrivals do [RES1]: the previous socket is retired first.
      const older: Sink | undefined = await there.sinkToReplace(request.sessionId, identity, sink, request.seq)
      await older?.retire()
      const open = await there.resume(request, identity, sink, at)
      if (open !== undefined) homes.set(request.sessionId, there)
      // The previous node hears of it a moment later.
      await settled()
      return open
    },
    ready: (id, sink) => home(id).ready(id, sink),
    async detach(id, sink, clean, at, how) {
      for (const node of [home(id), away(id)]) {
        if (!(await node.detach(id, sink, clean, at, how))) continue
        // Clocks of nodes agree.
        for (const each of [one, two]) await each.sweep(at)
        return true
      }
      return false
    },
    hasHungUp: (id) => home(id).hasHungUp(id),
    wasClosed: (id, node) => away(id).wasClosed(id, node),
    awaitedMs: (id, node) => away(id).awaitedMs(id, node),
    sinkOf: (id) => home(id).sinkOf(id),
    findAt: (id, node) => home(id).findAt(id, node),
    liveOf: (participant, at, began) => next().liveOf(participant, at, began),
    appendLive: (...how) => next().appendLive(...how),
    mayRing: (...how) => next().mayRing(...how),
    seen: (participant) => next().seen(participant),
    renew: (id, expiresAt) => home(id).renew(id, expiresAt),
    append: (id, push) => away(id).append(id, push),
    appendRung: (participant, push, except) => next().appendRung(participant, push, except),
    prove: (id, seq) => home(id).prove(id, seq),
    apply: (id, step) => (step.orOpen === undefined ? away(id) : next()).apply(id, step),
    knowsEnd: (id, call) => home(id).knowsEnd(id, call),
    hasLeft: (id, call) => home(id).hasLeft(id, call),
    holdsAny: (id) => away(id).holdsAny(id),
    isIdle: (id) => home(id).isIdle(id),
    inCall: (id) => away(id).inCall(id),
    move: (...how) => next().move(...how),
    hasMoved: (id, sink) => home(id).hasMoved(id, sink),
    heldHere: (id) => one.heldHere(id) ?? two.heldHere(id),
    unaware: (participant, call) => [...one.unaware(participant, call), ...two.unaware(participant, call)],
    doubt: (id) => home(id).doubt(id),
    trust: (id) => home(id).trust(id),
    acknowledge: (id, call) => home(id).acknowledge(id, call),
    keep: (id, push) => away(id).keep(id, push),
    confirm: (call) => next().confirm(call),
    owing: (identity) => next().owing(identity),
    collectFinals: (identity) => next().collectFinals(identity),
    async sweep(at) {
      for (const node of [one, two]) await node.sweep(at)
    },
  }
}

/** One node, which may be of another version. */
export async function openOne(server: RedisDatabases, windows: Windows, only = asIs): Promise<SessionsHarness> {
  const started = await startNodes(server, [only], windows)
  return harnessOf(started, started.nodes[0]!.sessions)
}

/** All that can be said to two nodes, as `acrossNodes`. */
export function harnessAcross(started: Nodes): SessionsHarness {
  const settled = async () => void (await Promise.all(started.nodes.map((node) => node.settled())))
  const sessions = started.nodes.map((node) => node.sessions)
  return harnessOf(started, acrossNodes(sessions, settled))
}

/** Two nodes, the second of which may be of another version. */
export async function openTwo(server: RedisDatabases, windows: Windows, second = asIs): Promise<SessionsHarness> {
  return harnessAcross(await startNodes(server, [asIs, second], windows))
}

const asIs: WrapStore = (store) => store
