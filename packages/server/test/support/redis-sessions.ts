import { type Cluster, type ClusterOptions, createCluster } from '../../src/cluster/cluster.ts'
import { createDeaths } from '../../src/cluster/deaths.ts'
import { newEpoch } from '../../src/ports/session-id.ts'
import { createStore, type Store } from '../../src/stores/redis/connection.ts'
import { createRedisCopies } from '../../src/stores/redis/copies.ts'
import { createRedisDirectory } from '../../src/stores/redis/directory.ts'
import { createRedisPost } from '../../src/stores/redis/post.ts'
import { createSystemTimers } from '../../src/time/timers.ts'

export type RedisSessions = Cluster

export interface RedisSessionsOptions
  extends Omit<ClusterOptions, 'directory' | 'copies' | 'post' | 'deaths' | 'timers' | 'newEpoch'> {
  readonly url: string
  /** Set if a test looks at the commands to Redis, or changes them. */
  readonly store?: Store
}

/** The sessions of a node over Redis, as `backend.ts` composes them. */
export function createRedisSessions(options: RedisSessionsOptions): RedisSessions {
  const { url, node, onError } = options
  const store = options.store ?? createStore(url, onError)
  const timers = createSystemTimers()
  const cluster = createCluster({
    ...options,
    deaths: createDeaths(timers),
    directory: createRedisDirectory(store, node),
    copies: createRedisCopies(store, node),
    post: createRedisPost({ url, store, node, onError }),
    timers,
    newEpoch,
  })
  return {
    ...cluster,
    async start() {
      await store.ready()
      return cluster.start()
    },
    async close() {
      await cluster.close()
      store.close()
    },
  }
}
