import type { Copies } from '../../cluster/copies.port.ts'
import type { Directory } from '../../cluster/directory.port.ts'
import type { Ephemerals } from '../../cluster/ephemerals.port.ts'
import type { Post } from '../../cluster/post.port.ts'
import type { Counters } from '../../limits/counters.port.ts'
import { connectionName, idOf } from '../../ports/node-name.ts'
import type { OwnWakes, Wakes } from '../../push/wakes.port.ts'
import { createStore, type Store } from './connection.ts'
import { createRedisCopies } from './copies.ts'
import { createRedisDirectory } from './directory.ts'
import { createRedisEphemerals } from './ephemerals.ts'
import { createRedisCounters } from './limits.ts'
import { createRedisPost } from './post.ts'
import { createRedisWakes } from './wakes.ts'

export interface RedisOptions {
  readonly url: string
  /** RINGWIRE_REDIS_PREFIX. */
  readonly prefix: string
  /** Whose database it has to be [REDIS1]. */
  readonly deployment: string
  /** Names this run of this node: no other has had the name. */
  readonly node: string
  /** Whether a node is known for sure not to serve any more. */
  readonly isDead: (node: string) => boolean
  /** Counts while Redis is away. */
  readonly fallback: Counters
  readonly ownWakes: OwnWakes
  /** The clock that calls go by. */
  readonly now: () => number
  readonly onLimitsAway: (error: unknown) => void
  readonly onLimitsBack: () => void
  readonly onError: (error: unknown) => void
  /** Hears how long an answer takes, and hands it on [MET1]. */
  readonly timed: <T>(operation: string, answer: Promise<T>) => Promise<T>
}

/** The parts that nodes share through Redis: each other's sessions, and counts over all of them. */
export interface RedisBackend {
  readonly directory: Directory
  readonly copies: Copies
  readonly post: Post
  readonly ephemerals: Ephemerals
  readonly counters: Counters
  readonly wakes: Wakes
  /** Resolves when Redis can be used; rejects with what is wrong with it. */
  ready(): Promise<void>
  /** Resolves when every master would take a write; rejects where one does not say so within 1 s [HEALTH1]. */
  tryWrite(): Promise<void>
  close(): void
}

export function createRedisBackend(options: RedisOptions): RedisBackend {
  const { url, node, prefix, deployment, fallback, isDead, now, onLimitsAway, onLimitsBack, onError } = options
  const name = connectionName(idOf(node))
  const store = timedStore(createStore(url, onError, { name, prefix, deployment }), options.timed)
  const ephemerals = createRedisEphemerals({ url, store, onError })
  const counters = createRedisCounters({ store, fallback, onAway: onLimitsAway, onBack: onLimitsBack })
  return {
    directory: createRedisDirectory(store, node),
    copies: createRedisCopies(store, node),
    post: createRedisPost({ url, store, node, onError }),
    ephemerals,
    counters,
    wakes: createRedisWakes({ store, node, isDead, own: options.ownWakes, now }),
    ready: store.ready,
    tryWrite: store.tryWrite,
    close() {
      counters.close()
      void ephemerals.close()
      store.close()
    },
  }
}

function timedStore(store: Store, timed: RedisOptions['timed']): Store {
  return {
    ...store,
    run: (name, keys, args) => timed(name === 'save' ? name : 'script', store.run(name, keys, args)),
    tryWrite: () => timed('check', store.tryWrite()),
  }
}
