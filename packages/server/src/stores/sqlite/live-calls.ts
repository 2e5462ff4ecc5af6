import {
  type Call,
  type CallRef,
  callKey,
  isLive,
  isNamedIn,
  type LiveCall,
  type Participant,
  participantKey,
  participantOf,
  rungBy,
} from '../../call/call.ts'
import type { StoredCall } from './rows.ts'

/**
 * Calls that need no SQL: every live one, and those that were over last. There is one writer, so what it committed is
 * what is stored; where a guard says otherwise, `put` and `drop` bring the row that is really there.
 */
export interface LiveCalls {
  find(ref: CallRef): StoredCall | undefined
  liveOf(participant: Participant): LiveCall[]
  all(): LiveCall[]
  /** The result of a commit; an older version than the known one is not news. */
  committed(stored: StoredCall): void
  /** The result of a read from the database, whatever was known before. */
  put(stored: StoredCall): void
  drop(ref: CallRef): void
  /** Calls that ended before an instant are removed. */
  dropOver(before: number): void
  /** Calls of a participant that are over are stored without its name. */
  dropOverOf(participant: Participant): void
  /** All live calls, read again; nothing else is known any more. */
  replaceAll(stored: readonly StoredCall[]): void
}

/** How many calls that are over stay known: late messages come within a minute of the end. */
const maxOver = 10_000

export function createLiveCalls(): LiveCalls {
  const live = new Map<string, StoredCall<LiveCall>>()
  const byParticipant = createIndex()
  /** In the order of their end, or of being read. */
  const over = new Map<string, StoredCall>()

  function forget(key: string): void {
    const known = live.get(key)
    if (known !== undefined) byParticipant.remove(known.call, key)
    live.delete(key)
    over.delete(key)
  }

  function put({ id, call }: StoredCall): void {
    const key = callKey(call)
    if (isLive(call)) {
      const before = live.get(key)
      if (before === undefined || !sameParties(before.call, call)) {
        forget(key)
        byParticipant.add(call, key)
      }
      live.set(key, { id, call })
      return
    }
    forget(key)
    over.set(key, { id, call })
    if (over.size <= maxOver) return
    for (const oldest of over.keys()) {
      over.delete(oldest)
      break
    }
  }

  function find(ref: CallRef): StoredCall | undefined {
    const key = callKey(ref)
    return live.get(key) ?? over.get(key)
  }

  return {
    find,
    put,
    drop: (ref) => forget(callKey(ref)),
    dropOver(before) {
      for (const [key, { call }] of over) if (!isLive(call) && call.endedAt < before) over.delete(key)
    },
    dropOverOf(participant) {
      for (const [key, { call }] of over) if (isNamedIn(call, participant)) over.delete(key)
    },
    liveOf: (participant) => byParticipant.of(participant).flatMap((key) => live.get(key)?.call ?? []),
    all: () => Array.from(live.values(), (stored) => stored.call),
    committed(stored) {
      const known = find(stored.call)
      if (known === undefined || known.call.version < stored.call.version) put(stored)
    },
    replaceAll(stored) {
      live.clear()
      byParticipant.clear()
      over.clear()
      for (const call of stored) put(call)
    },
  }
}

/** The keys of calls by their participants. */
function createIndex() {
  const calls = new Map<string, Set<string>>()
  const partiesOf = (call: Call) => {
    // A call to a group is of those at whom it rings, until one of them answers.
    const callees = call.status === 'ringing' ? rungBy(call) : [participantOf(call, 'callee')]
    return [participantOf(call, 'caller'), ...callees].map(participantKey)
  }
  return {
    of: (participant: Participant): string[] => [...(calls.get(participantKey(participant)) ?? [])],
    add(call: LiveCall, key: string): void {
      for (const party of partiesOf(call)) calls.set(party, (calls.get(party) ?? new Set()).add(key))
    },
    remove(call: Call, key: string): void {
      for (const party of partiesOf(call)) {
        const keys = calls.get(party)
        keys?.delete(key)
        if (keys?.size === 0) calls.delete(party)
      }
    },
    clear: () => calls.clear(),
  }
}

function sameParties(a: Call, b: Call): boolean {
  return (
    a.group === b.group &&
    a.caller.userId === b.caller.userId &&
    a.caller.role === b.caller.role &&
    a.callee.userId === b.callee.userId &&
    a.callee.role === b.callee.role
  )
}
