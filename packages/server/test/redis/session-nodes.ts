import { afterAll, afterEach } from 'bun:test'
import { Redis } from 'ioredis'
import { StoreError } from '../../src/ports/store-error.ts'
import { createStore } from '../../src/stores/redis/connection.ts'
import { rowKey } from '../../src/stores/redis/keys.ts'
import type { Reply, ScriptName } from '../../src/stores/redis/scripts.ts'
import { resumeWindowMs, windowMs } from '../contracts/session-parts.ts'
import { openRedisDatabases } from '../support/redis.ts'
import { createRedisSessions, type RedisSessions } from '../support/redis-sessions.ts'

/** What becomes of a script that a node runs: `send` sends it to the real server. */
export type OnScript = (
  name: ScriptName,
  args: readonly (string | number)[],
  send: () => Promise<Reply>,
) => Promise<Reply>

/** A node whose scripts fail, or whose replies are late or lost, where a test says so. */
export interface SessionNode extends RedisSessions {
  onScript: OnScript
  /** The scripts that it ran, in order. */
  readonly ran: readonly ScriptName[]
}

export interface SessionNodes {
  /** `isDead`: which others it takes for dead. */
  start(url: string, isDead?: (node: string) => boolean, prefix?: string): Promise<SessionNode>
  closeAll(): Promise<void>
}

export const sendAll: OnScript = (_name, _args, send) => send()

/** The node stands still: nothing that it sends arrives, until the answer is called. */
export function holdUp(node: SessionNode): () => void {
  const { promise, resolve } = Promise.withResolvers<void>()
  node.onScript = (_name, _args, send) => promise.then(send)
  return () => {
    node.onScript = sendAll
    resolve()
  }
}

/** The reply to the first run of a script is lost: it ran, and its caller does not know. */
export function loseFirstReply(node: SessionNode, lost: ScriptName): void {
  node.onScript = async (name, _args, send) => {
    const reply = await send()
    if (name !== lost) return reply
    node.onScript = sendAll
    throw new StoreError('unknown', 'the reply is lost')
  }
}

export function createSessionNodes(): SessionNodes {
  const started: RedisSessions[] = []

  async function start(url: string, isDead?: (node: string) => boolean, prefix = ''): Promise<SessionNode> {
    const store = createStore(url, () => {}, { prefix })
    const ran: ScriptName[] = []
    const sessions = createRedisSessions({
      ...{ url, node: crypto.randomUUID(), windowMs, resumeWindowMs },
      store: {
        ...store,
        run(name, keys, args) {
          ran.push(name)
          return node.onScript(name, args, () => store.run(name, keys, args))
        },
      },
      ...(isDead && { isDead }),
      // Failures are what is tested.
      onError: () => {},
    })
    const node: SessionNode = { ...sessions, onScript: sendAll, ran }
    await node.start()
    started.push(node)
    return node
  }

  return {
    start,
    async closeAll() {
      await Promise.all(started.splice(0).map((node) => node.close().catch(() => {})))
    },
  }
}

/** Nodes for each test of a file, on a Redis that the tests share; they are closed after each. */
export async function useSessionNodes() {
  const nodes = createSessionNodes()
  const server = await openRedisDatabases()
  afterEach(() => nodes.closeAll())
  afterAll(() => server.stop())
  return { nodes, server, start: async (count: number) => startNodes(nodes, await server.database(), count) }
}

/** So many nodes on one Redis, and a client that looks into it. */
export async function startNodes(
  nodes: SessionNodes,
  url: string,
  count: number,
): Promise<{ started: SessionNode[]; client: Redis }> {
  const started: SessionNode[] = []
  for (let i = 0; i < count; i++) started.push(await nodes.start(url))
  return { started, client: new Redis(url) }
}

/** Writes into the row of a session what another node would: with `o: ''` nobody owns it, with another fence somebody else does. */
export async function writeRow(
  client: Redis,
  sessionId: string,
  fields: Readonly<Record<string, string>>,
): Promise<void> {
  await client.hset(rowKey(sessionId), fields)
}

/** How an operation ended: its result, or the kind of a failure of the store. */
export async function outcomeOf<T>(work: () => T | Promise<T>): Promise<T | string> {
  try {
    return await work()
  } catch (error) {
    return error instanceof StoreError ? error.kind : String(error)
  }
}
