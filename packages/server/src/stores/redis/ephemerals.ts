import type { Redis } from 'ioredis'
import type { Ephemerals, Holding, Look } from '../../cluster/ephemerals.port.ts'
import { connectionName, idOf } from '../../ports/node-name.ts'
import { StoreError } from '../../ports/store-error.ts'
import { connectTo, tellErrors } from './connect.ts'
import type { Store } from './connection.ts'
import { signOf, signsKey, signsTag } from './keys.ts'

export interface RedisEphemeralsOptions {
  /** The sign has a connection of its own: one that is subscribed takes no other commands. */
  readonly url: string
  readonly store: Pick<Store, 'ask' | 'prefix' | 'addressOf' | 'exists'>
  readonly onError: (error: unknown) => void
}

/** So often a connection shows that it is there, in ms: one that is silent for long is made anew. */
const pingMs = 1_000
/** On a cluster it may not be known at once which server is meant, in ms. */
const againMs = 100

/**
 * A subscription for each node, to a channel that nobody publishes to. On a cluster all nodes subscribe at the same master,
 * because each server only counts its own subscribers.
 */
export function createRedisEphemerals(options: RedisEphemeralsOptions): Ephemerals {
  const { store } = options
  const sign = createSign(options)
  let own: string | undefined

  return {
    hold(node, holding) {
      own = node
      sign.hold(node, holding)
    },
    async look(nodes): Promise<Look> {
      // An account that may not subscribe would be refused this, too.
      if (!sign.isHeld()) throw new StoreError('unavailable', 'Redis does not hold the sign of this node')
      const before = sign.connection()
      const channels = nodes.map((node) => channelOf(store, node))
      if (store.addressOf(signsTag) !== 'primary') {
        store.exists([signsKey]).catch(() => {
          // It was only asked so that the client hears of another master.
        })
      }
      const answers = await store.ask(signsTag, (server) =>
        server
          .pipeline()
          .pubsub('NUMSUB', ...channels)
          .info('server')
          .exec(),
      )
      const [counts, info] = (answers ?? []).map(([error, answer]) => {
        if (error !== null) throw error
        return answer
      })
      const origin = /run_id:(\w+)/.exec(String(info))?.[1]
      if (origin === undefined) throw new StoreError('unavailable', 'Redis does not say which server it is')
      const held = readCounts(nodes, counts as (string | number)[])
      // This server is not the one that has the sign: it changed its role, or the slots moved.
      if (own !== undefined && nodes.includes(own) && !held.has(own)) sign.moveOn(before)
      return { origin, held }
    },
    close: sign.close,
  }
}

/** The connection that has the sign of this node; it is made again and again. */
function createSign({ url, store, onError }: RedisEphemeralsOptions) {
  const told = new Set<string>()
  /** The connection, and whether it has the sign. */
  let client: Redis | undefined
  let isHeld = false
  let mine: { readonly node: string; readonly holding: Holding } | undefined
  let pings: Timer | undefined
  let again: Timer | undefined
  let isClosed = false

  function connect(): void {
    if (isClosed || mine === undefined) return
    const address = store.addressOf(signsTag)
    if (address === undefined) {
      again = setTimeout(connect, againMs)
      return
    }
    const { node } = mine
    const made = connectTo(url, address, connectionName(idOf(node)))
    client = made
    tellErrors(made, onError, told)
    made.on('ready', () => {
      made.subscribe(channelOf(store, node)).then(
        () => held(made),
        // A connection that ended meanwhile is made again; an account that may not subscribe is reported.
        (error) => {
          if (error instanceof Error && error.name === 'ReplyError') onError(error)
        },
      )
    })
    made.on('close', () => lost(made))
  }

  function held(by: Redis): void {
    if (by !== client || isClosed || by.status !== 'ready') return
    isHeld = true
    mine?.holding.onHeld()
  }

  function lost(by: Redis): void {
    if (by !== client || !isHeld || isClosed) return
    isHeld = false
    mine?.holding.onLost()
  }

  /** Holds the sign at another server, if that was not done since. */
  function moveOn(from: Redis | undefined): void {
    if (from === undefined || from !== client || isClosed) return
    lost(from)
    client = undefined
    from.disconnect()
    connect()
  }

  return {
    hold(node: string, holding: Holding): void {
      mine = { node, holding }
      connect()
      pings = setInterval(() => void (isHeld && client?.ping().catch(() => {})), pingMs)
      pings.unref()
    },
    isHeld: () => isHeld,
    connection: () => client,
    moveOn,
    async close(): Promise<void> {
      isClosed = true
      clearInterval(pings)
      clearTimeout(again)
      client?.disconnect()
    },
  }
}

const channelOf = (store: Pick<Store, 'prefix'>, node: string) => store.prefix + signOf(node)

/** Of each channel its name and the number of its subscribers, in the order of the request. */
function readCounts(nodes: readonly string[], counts: readonly (string | number)[]): Set<string> {
  return new Set(nodes.filter((_, i) => Number(counts[2 * i + 1]) > 0))
}
