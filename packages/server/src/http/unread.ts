/**
 * Large answers that clients have not read yet, in the whole process [HTTP3]. Each connection may leave one of them
 * unread.
 *
 *   const unread = createUnread({ limit })
 *   unread.add(response, close)      each answer; over the limit, those that wait for their readers the longest are cut
 */
import { type Held, heldBy } from './replies.ts'

/** The most that clients may leave unread of large answers, all together, in bytes. */
export const maxUnreadBytes = 64 * 1024 * 1024

export interface Unread {
  /** `close` closes the connection: a stream that ends leaves it open until its client has read what was sent. */
  add(response: Response, close: () => void): void
  /** How much is held now, in bytes. */
  size(): number
}

export interface UnreadOptions {
  /** In bytes. */
  readonly limit: number
}

/** After some are cut this share of the limit is left: the next answer does not cut again at once. */
const share = 0.9

export function createUnread({ limit }: UnreadOptions): Unread {
  const open = new Map<Held, () => void>()
  let total = 0

  function remove(held: Held): void {
    if (open.delete(held)) total -= held.bytes
  }

  return {
    add(response, close) {
      const held = heldBy(response)
      if (held === undefined) return
      open.set(held, close)
      total += held.bytes
      void held.over.then(() => remove(held))
      if (total <= limit) return
      for (const [oldest, closeOldest] of open) {
        if (total <= limit * share) return
        remove(oldest)
        oldest.cut()
        closeOldest()
      }
    },
    size: () => total,
  }
}
