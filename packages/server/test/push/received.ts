import { overdue } from '@ringwire/testkit/patience'

/** How long something is waited for, in ms. A bound for failures, never a pace. */
const patienceMs = 40_000

/** Waits for things as they come, in order. */
export class Inbox<T> {
  readonly all: T[] = []
  private waiters: { matches: (it: T) => boolean; resolve: (it: T) => void }[] = []
  private unread: T[] = []

  add(it: T): void {
    this.all.push(it)
    const index = this.waiters.findIndex(({ matches }) => matches(it))
    if (index < 0) this.unread.push(it)
    else this.waiters.splice(index, 1)[0]?.resolve(it)
  }

  /** Webhooks that came until now without a request of the test count as read. */
  skip(): void {
    this.unread = []
  }

  next(matches: (it: T) => boolean = () => true): Promise<T> {
    const index = this.unread.findIndex(matches)
    if (index >= 0) return Promise.resolve(this.unread.splice(index, 1)[0] as T)
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const waiter = { matches, resolve }
    const cancel = overdue(patienceMs, () => {
      this.waiters = this.waiters.filter((each) => each !== waiter)
      reject(new Error(`waited ${patienceMs} ms; ${this.all.length} came before`))
    })
    this.waiters.push(waiter)
    return promise.finally(cancel)
  }
}
