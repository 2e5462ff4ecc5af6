import type { Post, Reader } from '../../cluster/post.port.ts'
import { connectionName, idOf } from '../../ports/node-name.ts'
import { connect, tellErrors } from './connect.ts'
import type { Store } from './connection.ts'
import { inboxOf } from './keys.ts'
import type { Client } from './servers.ts'

export interface RedisPostOptions {
  /** Reading has a connection of its own: it waits there for what comes. */
  readonly url: string
  readonly store: Store
  readonly node: string
  readonly onError: (error: unknown) => void
}

/** The nodes that own sessions: those of the previous version, which do not, say so elsewhere. */
const aliveKey = 'rw:alive'
/** Less than a connection may be silent, in ms. */
const blockMs = 1_500
const againMs = 100
const mostRead = 200
/** After this number of reads the stream is trimmed. */
const trimEvery = 32

/** A stream in the store for each node, read in order, and trimmed by who reads it. */
export function createRedisPost({ url, store, node, onError }: RedisPostOptions): Post {
  const mine = inboxOf(node)
  let connection: Client | undefined
  let lastId = '0-0'
  let reads = 0
  let isStopped = false

  async function read({ onRead, onBatch }: Reader): Promise<void> {
    while (!isStopped) {
      try {
        if (connection?.status !== 'ready') {
          await Bun.sleep(againMs)
          continue
        }
        const from = lastId
        const found = await connection.xreadBuffer('COUNT', mostRead, 'BLOCK', blockMs, 'STREAMS', mine, from)
        const entries = found?.[0]?.[1] ?? []
        await onRead()
        const last = entries.at(-1)?.[0]
        // It may have to be read from its begin since.
        if (last === undefined || from !== lastId) continue
        lastId = last.toString()
        for (const [, [, bytes]] of entries) if (bytes !== undefined) onBatch(bytes)
        trim()
      } catch (error) {
        if (isStopped) return
        if (error instanceof Error && error.name === 'ReplyError') onError(error)
        await Bun.sleep(againMs)
      }
    }
  }

  function trim(): void {
    reads++
    if (reads % trimEvery !== 0) return
    const [ms = '0', count = '0'] = lastId.split('-')
    store.client.xtrim(mine, 'MINID', `${ms}-${BigInt(count) + 1n}`).catch(() => {
      // The rest of it is passed over.
    })
  }

  return {
    async send(to, batch) {
      await store.run('post', [inboxOf(to)], [batch])
    },
    listen(reader) {
      connection = connect(url, connectionName(idOf(node)), store.prefix)
      tellErrors(connection, onError)
      void read(reader)
    },
    readAgain() {
      lastId = '0-0'
    },
    async beat(ms) {
      const [isNew, at, ...listed] = await store.run('nodes', [aliveKey], [node, ms])
      const pairs = Array.from(
        { length: listed.length / 2 },
        (_, i) => [String(listed[2 * i]), Number(listed[2 * i + 1])] as const,
      )
      return { isNew: isNew === 1, at: Number(at), listed: pairs }
    },
    async stop() {
      isStopped = true
      connection?.disconnect()
      await store.client.zrem(aliveKey, node).catch(() => undefined)
    },
  }
}
