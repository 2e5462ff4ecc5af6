import { Cluster } from 'ioredis'
import { StoreError } from '../../ports/store-error.ts'
import type { Client } from './servers.ts'

/** Nothing waits longer for the store, in ms. */
export const deadlineMs = 4_000

/** The store refused it, and nothing was done. */
const refusals = /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|NOREPLICAS|OOM|MISCONF|BUSY|NOAUTH|TRYAGAIN|MOVED|ASK)\b/

interface Pending {
  readonly until: number
  readonly expire: () => void
}

/** Gives up what is not answered in time, and the connection with it: it may be dead without saying so. */
export function createDeadlines(client: Client, onError: (error: unknown) => void) {
  const pending = new Set<Pending>()
  // In order of their deadlines: all have the same time.
  const timer = setInterval(() => {
    const now = performance.now()
    let isDead = false
    for (const each of pending) {
      if (each.until > now) break
      pending.delete(each)
      each.expire()
      isDead = true
    }
    // One that is being made is not to be disturbed: it would be given up.
    if (isDead && client.status === 'ready' && !(client instanceof Cluster)) client.disconnect(true)
    if (client.status === 'end') void client.connect().catch(onError)
  }, 250)
  timer.unref()

  /** Rejects with a `StoreError` where no answer comes in time; a bug in a script is thrown as it is. */
  function within<T>(send: () => Promise<T>): Promise<T> {
    if (client.status !== 'ready') return Promise.reject(new StoreError('unavailable', 'Redis is not connected'))
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const expire = () => reject(new StoreError('unknown', 'Redis did not answer in time'))
    const mine = { until: performance.now() + deadlineMs, expire }
    pending.add(mine)
    send().then(
      (value) => {
        pending.delete(mine)
        resolve(value)
      },
      (cause: unknown) => {
        pending.delete(mine)
        reject(storeError(cause))
      },
    )
    return promise
  }

  return { within, stop: () => clearInterval(timer) }
}

/** A bug in a script is thrown as it is. */
export function storeError(cause: unknown): unknown {
  const message = cause instanceof Error ? cause.message : ''
  if (refusals.test(message)) return new StoreError('unavailable', message.split(' ')[0] ?? '', { cause })
  if (cause instanceof Error && cause.name === 'ReplyError') return cause
  if (message.includes('enableOfflineQueue')) return new StoreError('unavailable', 'Redis is not connected', { cause })
  return new StoreError('unknown', 'the connection to Redis was lost', { cause })
}
