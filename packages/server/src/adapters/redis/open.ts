import type { Call } from '../../call/call.ts'
import type { Counters } from '../../ports/counters.ts'
import { connectionName, idOf } from '../../ports/node-name.ts'
import type { Sessions } from '../../ports/sessions.ts'
import { StoreError } from '../../ports/store-error.ts'
import type { OwnWakes, Wakes } from '../../ports/wakes.ts'
import { createStore, type Store } from './connection.ts'
import { createRedisCounters } from './limits.ts'
import { createRedisSessions, type RedisSessionsOptions } from './sessions.ts'
import { createRedisWakes } from './wakes.ts'

export interface RedisOptions extends Omit<RedisSessionsOptions, 'store'> {
  /** RINGWIRE_REDIS_PREFIX. */
  readonly prefix: string
  /** Whose database it has to be [REDIS1]. */
  readonly deployment: string
  /** What counts while Redis is away. */
  readonly fallback: Counters
  readonly ownWakes: OwnWakes
  /** The clock that calls go by. */
  readonly now: () => number
  readonly onLimitsAway: (error: unknown) => void
  readonly onLimitsBack: () => void
  /** Hears how long an answer takes, and hands it on [MET1]. */
  readonly timed: <T>(operation: string, answer: Promise<T>) => Promise<T>
}

export interface RedisBackend {
  readonly sessions: Sessions
  readonly counters: Counters
  readonly wakes: Wakes
  /** See `RedisSessions`. */
  save(): Promise<void> | undefined
  /** See `Nodes`. */
  tell(call: Call): void
  told(call: Call): void
  /** Whether a node is known for sure not to say here that it lives, though it could. */
  isGone(node: string): boolean
  /** Whether a node said here lately that it lives. */
  saysItLives(node: string): boolean
  /** Looks at once who does. */
  lookForNodes(): Promise<void>
  /** Whether this node could say here just now that it lives. */
  isReady(): boolean
  /** Answers whether sessions of before this start may be known there; rejects with what is wrong with Redis. */
  start(): Promise<boolean>
  /** Resolves when every master would take a write; rejects where one does not say so within 1 s [HEALTH1]. */
  tryWrite(): Promise<void>
  /** Hands over what other nodes need to go on with the sessions of this one. */
  close(): Promise<void>
}

/** What nodes share through Redis: sessions, each in the memory of one of them, and what is counted over all of them. */
export function createRedisBackend(options: RedisOptions): RedisBackend {
  const { url, node, prefix, deployment, fallback, onLimitsAway, onLimitsBack, onError } = options
  const name = connectionName(idOf(node))
  const store = timedStore(createStore(url, onError, { name, prefix, deployment }), options.timed)
  const { sessions, save, tell, told, isGone, saysItLives, lookForNodes, isReady, canSave, start, close } =
    createRedisSessions({
      ...options,
      store,
    })
  const counters = createRedisCounters({ store, fallback, onAway: onLimitsAway, onBack: onLimitsBack })
  return {
    sessions,
    counters,
    wakes: createRedisWakes({
      store,
      node,
      isDead: options.isDead ?? isGone,
      own: options.ownWakes,
      now: options.now,
    }),
    save,
    tell,
    told,
    isGone,
    saysItLives,
    lookForNodes,
    isReady,
    start,
    async tryWrite() {
      await store.tryWrite()
      // It is back, and what waited for it is not written yet: nobody could come in.
      if (!canSave()) throw new StoreError('unavailable', 'sessions are not saved yet')
    },
    async close() {
      counters.close()
      await close()
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
