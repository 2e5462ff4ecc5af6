import {
  type Call,
  type CallRef,
  callKey,
  type LiveCall,
  type Participant,
  participantKey,
  takesPartIn,
} from '../../call/call.ts'
import { type CallStore, type Ended, type InviteSituation, pageSize } from '../../ports/call-store.ts'
import { macrotask } from '../../ports/macrotask.ts'
import type { MaybePromise } from '../../ports/maybe.ts'
import { StoreError } from '../../ports/store-error.ts'
import { type CallRows, eraseCalls } from '../sql/erasure.ts'
import { linkedOf } from '../sql/linked.ts'
import type { CallLists } from './call-lists.ts'
import type { CallReads, EndedAt } from './call-reads.ts'
import { attempt } from './connection.ts'
import type { LiveCalls } from './live-calls.ts'
import { createTransitions, type TransitionsParts } from './transitions.ts'

export interface CallStoreParts extends TransitionsParts {
  readonly lists: CallLists
  readonly erasable: CallRows
  readonly close: () => Promise<void>
}

/**
 * The calls of the serving process. It is the only writer, so it decides on what it committed last, from memory; the
 * guard in the database has the last word. Transitions of one call take turns, and so do invites of one participant.
 */
export function createCallStore(parts: CallStoreParts): CallStore {
  const { reads, lists, live, commits, erasable, close } = parts
  const decideOn = createTransitions(parts)

  function find(ref: CallRef): Call | undefined {
    const known = live.find(ref)
    if (known !== undefined) return known.call
    const stored = reads.load(ref)
    if (stored !== undefined) live.put(stored)
    return stored?.call
  }

  return {
    transition(ref, decide) {
      // No lock on the linked call: its guard fails where somebody changes that meanwhile, as with the calls of an invite.
      const situation = () => {
        const call = find(ref)
        return { call, linked: linkedOf(call, find) }
      }
      return decideOn([callKey(ref)], situation, ({ call, linked }) => decide(call, linked))
    },
    invite(caller, callee, callUuid, decide) {
      const keys = [...new Set([participantKey(caller), participantKey(callee)])].sort()
      const situation = (): InviteSituation => ({
        sameUuid: find({ product: caller.product, callUuid }),
        live: liveOfBoth(live, caller, callee),
      })
      return decideOn(keys, situation, decide)
    },
    // Each decision reads what it needs, from memory.
    foresee: (caller) => ({ sameUuid: undefined, live: live.liveOf(caller) }),
    load: (ref) => attempt(() => find(ref)),
    liveCallsOf: (participant) => live.liveOf(participant),
    inCall: (participants) => participants.map((one) => live.liveOf(one).some((call) => takesPartIn(call, one))),
    lastAnswered: (participants) => reads.lastAnswered(participants),
    livePages: () => pagesOf(live.all),
    dueRings: (from, to, limit) => dueOf(live.all(), from, to, limit),
    overPages: (since) => overPagesOf(reads, since),
    stepsAfter: (ref, version) => attempt(() => reads.stepsAfter(ref, version)),
    history: (query) => attempt(() => reads.history(query)),
    seen: (ref) => attempt(() => lists.seen(ref)),
    beginning: (product, start, limit) => attempt(() => lists.beginning(product, start, limit)),
    list: (query) => attempt(() => lists.list(query)),
    async erase(participant, onErased = () => {}) {
      const count = await eraseCalls(erasable, participant, onErased)
      live.dropOverOf(participant)
      return count
    },
    // No other process writes calls.
    note() {},
    tryWrite: () => commits.tryWrite(),
    close,
  }
}

/** A call, and the other one of its transfer. */
function liveOfBoth(live: LiveCalls, caller: Participant, callee: Participant): LiveCall[] {
  return [...new Set([...live.liveOf(caller), ...live.liveOf(callee)])]
}

/** Beside a serving process: it reads, and writes no call. */
export function createReadOnlyCallStore(reads: CallReads, lists: CallLists, close: () => Promise<void>): CallStore {
  const refuse = () => Promise.reject(new StoreError('unavailable', 'Calls are written by the serving process alone.'))
  return {
    transition: refuse,
    invite: refuse,
    foresee: refuse,
    load: (ref) => attempt(() => reads.load(ref)?.call),
    liveCallsOf: reads.liveOf,
    inCall: refuse,
    lastAnswered: reads.lastAnswered,
    livePages: () => pagesOf(async () => (await reads.live()).map(({ call }) => call)),
    dueRings: refuse,
    overPages: (since) => overPagesOf(reads, since),
    stepsAfter: (ref, version) => attempt(() => reads.stepsAfter(ref, version)),
    history: (query) => attempt(() => reads.history(query)),
    seen: (ref) => attempt(() => lists.seen(ref)),
    beginning: (product, start, limit) => attempt(() => lists.beginning(product, start, limit)),
    list: (query) => attempt(() => lists.list(query)),
    erase: refuse,
    note() {},
    tryWrite: refuse,
    close,
  }
}

async function* pagesOf(read: () => MaybePromise<readonly LiveCall[]>): AsyncGenerator<readonly LiveCall[]> {
  const all = await read()
  for (let from = 0; from === 0 || from < all.length; from += pageSize) yield all.slice(from, from + pageSize)
}

async function* overPagesOf(reads: CallReads, since: number): AsyncGenerator<readonly Ended[]> {
  for (let after: EndedAt | undefined = { endedAt: since, id: 0 }; after !== undefined; ) {
    const from: EndedAt = after
    const { ended, next } = await attempt(() => reads.overPage(from))
    after = next
    yield ended
    // Each page was read at once: sockets have their turn before the next one.
    await macrotask()
  }
}

/** All are in memory. */
function dueOf(all: readonly LiveCall[], from: number, to: number, limit: number): LiveCall[] {
  const due = all.filter(({ status, ringExpiresAt: at }) => status === 'ringing' && at > from && at <= to)
  return due.sort((a, b) => a.ringExpiresAt - b.ringExpiresAt).slice(0, limit)
}
