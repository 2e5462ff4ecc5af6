/**
 * Who is there, and in a call, of those that the sessions of this process watch [PRES1]. The sessions' store knows the
 * sockets, and the calls' store knows the calls. It reads both again and again: no change can be lost on its way,
 * whichever node dies.
 *
 *   const presence = createPresence({ sessions, calls, now, isOpen, onError })
 *   presence.start()
 *   await presence.watch(session, participants)  → { ok: true, participants } | { ok: false, error }; a StoreError where
 *                                                  nobody knows
 *   presence.restrict(session, roles)            → it hears of no other roles any more
 *   presence.end(sessionId)                      → it hears of nobody until it asks again
 */
import { type ErrorBody, errorBody } from '@ringwire/protocol/errors'
import type { PresenceState } from '@ringwire/protocol/events/presence'
import type { Participant } from '../call/call.ts'
import type { CallStore } from '../ports/call-store.ts'
import type { Cancel } from '../ports/clock.ts'
import type { Sessions } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import { every } from '../time/alarms.ts'
import { inBatches } from '../time/in-batches.ts'
import { createWatchers, keyOf, newPerson, type Person, type Watchers } from './watchers.ts'

/** How often a round is, in ms, and how many people a round looks at: if sessions watch more, it takes more rounds. */
const roundMs = 1_000
const perRound = 500
/** The most people that requests may add to a round, of all participants and of one. */
const perRoundAsked = 2_000
const perRoundAskedByOne = 400
/** A person without a session is offline after this time: a page that is loaded again is back before it [PRES1]. In ms. */
const goneMs = 5_000

export interface PresenceOptions {
  readonly sessions: Pick<Sessions, 'seen' | 'append' | 'heldHere'>
  readonly calls: Pick<CallStore, 'inCall'>
  /** Steady, in ms. */
  readonly now: () => number
  /** Whether participants of the product may see each other. */
  readonly isOpen: (product: string) => boolean
  readonly onError: (error: unknown) => void
}

export type Watched =
  | { readonly ok: true; readonly participants: PresenceState['participants'] }
  | { readonly ok: false; readonly error: ErrorBody }

/** Who watches. */
export interface Watching {
  readonly sessionId: string
  readonly participant: Participant
}

export interface Presence {
  /** From now on the session hears of these people, and of no others. */
  watch(session: Watching, participants: readonly Participant[]): Promise<Watched>
  /** From now on the session hears of nobody whose role is not among these. */
  restrict(session: Watching, roles: readonly string[]): void
  /** The session has another socket. */
  end(sessionId: string): void
  start(): void
  stop(): void
}

export function createPresence({ sessions, calls, now, isOpen, onError }: PresenceOptions): Presence {
  const watchers = createWatchers()
  const asked = createAsked()
  const look = createLooks({ sessions, calls, now }, watchers.learn)
  let isWorking = false
  let isAway = false
  let stop: Cancel = () => {}

  async function round(): Promise<void> {
    for (const [sessionId, { product, watched }] of watchers.all) {
      if (sessions.heldHere(sessionId) === undefined) watchers.forget(sessionId)
      else if (!isOpen(product)) for (const person of watched) watchers.leave(sessionId, person)
    }
    const due = watchers.next(perRound)
    const looks = await Promise.allSettled([look.forSessions(due), look.forCalls(due)])
    // A person who could not be looked at holds back nobody else.
    await tellChanges(watchers, sessions)
    for (const look of looks) if (look.status === 'rejected') throw look.reason
  }

  /** One at a time: where the store is slow, rounds are fewer. */
  async function work(): Promise<void> {
    if (isWorking || watchers.all.size === 0) return
    isWorking = true
    try {
      await round()
      isAway = false
    } catch (error) {
      // Said once, however long the store is away.
      if (!(error instanceof StoreError) || !isAway) onError(error)
      isAway ||= error instanceof StoreError
    } finally {
      isWorking = false
    }
  }

  return {
    async watch({ sessionId, participant: by }, participants) {
      const before = watchers.all.get(sessionId)
      const again = before === undefined ? 0 : before.askedAt + roundMs - now()
      const wanted = new Map(participants.map((participant) => [keyOf(participant), participant]))
      // Those who are known already stay as they are, also where everybody lets go of them meanwhile.
      const people = new Map(Array.from(wanted, ([key, one]) => [key, watchers.find(key) ?? newPerson(one)]))
      const unseen = [...people].flatMap(([key, person]) => (watchers.find(key) ? [] : [person]))
      if (again > 0 || !asked.take(keyOf(by), unseen.length))
        return { ok: false, error: errorBody('RATE_LIMITED', { limit: 'messages', retry_after_ms: roundMs }) }
      // The answer does not need the store of the calls: if that is away, a later round adds who is in a call.
      await Promise.all([look.forSessions(unseen), look.forCalls(unseen).catch(unlessAway)])
      const watched = watchers.watch(sessionId, by.product, people, now())
      return { ok: true, participants: [...watched].map(stateOf) }
    },
    restrict({ sessionId }, roles) {
      for (const person of watchers.watchedBy(sessionId))
        if (!roles.includes(person.participant.role)) watchers.leave(sessionId, person)
    },
    end: watchers.forget,
    start() {
      stop = every(roundMs, () => {
        asked.clear()
        void work()
      })
    },
    stop: () => stop(),
  }
}

/** How many people new requests have added since the last round, and for whom. */
function createAsked() {
  let all = 0
  const byOne = new Map<string, number>()
  return {
    /** False: these are too many, and count for nothing. */
    take(by: string, count: number): boolean {
      const share = (byOne.get(by) ?? 0) + count
      if (all + count > perRoundAsked || share > perRoundAskedByOne) return false
      all += count
      if (count > 0) byOne.set(by, share)
      return true
    },
    clear() {
      all = 0
      byOne.clear()
    },
  }
}

/** Looks who is there, and in a call; `learn` hears of it. */
function createLooks(
  { sessions, calls, now }: Pick<PresenceOptions, 'sessions' | 'calls' | 'now'>,
  learn: Watchers['learn'],
) {
  async function lookForSessions(person: Person): Promise<void> {
    const isHere = (await sessions.seen(person.participant)).length > 0
    const at = now()
    if (isHere) person.goneAt = undefined
    else person.goneAt ??= at
    learn(person, { online: isHere || (person.state.online && at - (person.goneAt ?? at) < goneMs) })
  }

  return {
    forSessions: (some: readonly Person[]) => inBatches(some, lookForSessions),
    forCalls: shareRead(async (some: readonly Person[]) => {
      const found = await calls.inCall(some.map(({ participant }) => participant))
      for (const [i, person] of some.entries()) learn(person, { inCall: found[i] })
    }),
  }
}

/** If a session cannot get a change, the next round sends it, unless the state has changed back. */
async function tellChanges(watchers: Watchers, sessions: PresenceOptions['sessions']): Promise<void> {
  await inBatches(watchers.outdated(), async ([sessionId, some]) => {
    // It went on elsewhere, perhaps with a token of other roles.
    if (sessions.heldHere(sessionId) === undefined) return watchers.forget(sessionId)
    // The session may have let go of some of them meanwhile.
    const watched = some.filter((person) => watchers.watchedBy(sessionId).has(person))
    if (watched.length === 0) return
    const data: PresenceState = { participants: watched.map(stateOf) }
    const text = JSON.stringify({ event: 'presence.changed', data })
    await sessions.append(sessionId, { kind: 'notice', call: '', version: undefined, text })
    for (const person of watched) if (person.told.has(sessionId)) person.told.set(sessionId, person.state)
  })
}

function stateOf({ participant: { role, userId }, state }: Person): PresenceState['participants'][number] {
  const { online, inCall } = state
  return { role, user_id: userId, online, ...(inCall !== undefined && { in_call: inCall }) }
}

function unlessAway(error: unknown): void {
  if (!(error instanceof StoreError)) throw error
}

/** One read at a time: requests during one share the next. */
function shareRead<T>(read: (items: readonly T[]) => Promise<void>): (items: readonly T[]) => Promise<void> {
  let last: Promise<void> = Promise.resolve()
  let next: { readonly items: T[]; readonly done: Promise<void> } | undefined
  return async (more) => {
    if (more.length === 0) return
    if (next === undefined) {
      const items: T[] = []
      const begin = () => {
        next = undefined
        return read(items)
      }
      last = last.then(begin, begin)
      next = { items, done: last }
    }
    next.items.push(...more)
    await next.done
  }
}
