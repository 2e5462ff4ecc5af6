/** What the stores are asked for, with how long it takes and what fails [MET1]. */

import type { CallStore } from '../ports/call-store.ts'
import type { MaybePromise } from '../ports/maybe.ts'
import type { Outbox } from '../ports/outbox.ts'
import type { Meter, StoreName } from './metrics.ts'

/** Hands on what it is given. An answer that comes at once came from this process, and does not count. */
export type Timed = <A extends MaybePromise<unknown>>(operation: string, answer: A) => A

export function createTimed(meter: Pick<Meter, 'stored' | 'storeFailed'>, store: StoreName): Timed {
  return (operation, answer) => {
    if (!(answer instanceof Promise)) return answer
    const since = performance.now()
    answer.then(
      () => meter.stored(store, operation, (performance.now() - since) / 1_000),
      (error) => meter.storeFailed(store, error),
    )
    return answer
  }
}

/** The same store, with its commits, reads and checks timed. */
export function timedCalls(store: CallStore, timed: Timed): CallStore {
  return {
    transition: (ref, decide) => timed('commit', store.transition(ref, decide)),
    invite: (...given) => timed('commit', store.invite(...given)),
    foresee: (...given) => timed('read', store.foresee(...given)),
    load: (ref) => timed('read', store.load(ref)),
    liveCallsOf: (participant) => timed('read', store.liveCallsOf(participant)),
    inCall: (participants) => timed('read', store.inCall(participants)),
    lastAnswered: (participants) => timed('read', store.lastAnswered(participants)),
    livePages: () => store.livePages(),
    dueRings: (from, to, limit) => timed('read', store.dueRings(from, to, limit)),
    overPages: (since) => store.overPages(since),
    stepsAfter: (ref, version) => timed('read', store.stepsAfter(ref, version)),
    history: (query) => timed('history', store.history(query)),
    seen: (ref) => timed('read', store.seen(ref)),
    beginning: (product, start, limit) => timed('read', store.beginning(product, start, limit)),
    list: (query) => timed('list', store.list(query)),
    erase: (participant, onErased) => timed('erase', store.erase(participant, onErased)),
    note: (call) => store.note(call),
    tryWrite: () => timed('check', store.tryWrite()),
    close: () => store.close(),
  }
}

/** The same outbox, timed: a removal and a return are writes beside the commits. */
export function timedOutbox(outbox: Outbox, timed: Timed): Outbox {
  return {
    rowOf: outbox.rowOf,
    leftOf: (ref) => timed('read', outbox.leftOf(ref)),
    remove: (rows) => timed('outbox', outbox.remove(rows)),
    claim: (limit) => timed('outbox', outbox.claim(limit)),
    release: (rows, afterMs) => timed('outbox', outbox.release(rows, afterMs)),
    oldest: () => timed('outbox', outbox.oldest()),
  }
}
