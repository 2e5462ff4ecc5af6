/**
 * Who is there, and in a call, of those that the sessions of this process watch [PRES1]. Where sessions are is known in one
 * place, the sessions' store, and what calls there are in another, the calls' store. Both are asked again and again: nothing
 * that was to be told can be lost on its way, whichever node dies.
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
import { participantHash } from '../ports/session-id.ts'
import type { Sessions } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import { inBatches } from '../time/in-batches.ts'

/** Everybody is looked at so often, in ms, and at most so many in a round: where more are watched it takes more rounds. */
const roundMs = 1_000
const perRound = 500
/** For those who ask anew so many may be looked at in a round beside, and for one participant so many of them. */
const perRoundAsked = 2_000
const perRoundAskedByOne = 400
/** Who is gone for so long is offline: a page that is loaded again is not [PRES1]. In ms. */
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

interface Watcher {
  readonly product: string
  readonly watched: Set<Person>
  readonly askedAt: number
}

/** Undefined: not known yet. */
type State = { readonly online: boolean; readonly inCall: boolean | undefined }

interface Person {
  readonly participant: Participant
  /** What each session that watches him was told. */
  readonly told: Map<string, State>
  state: State
  /** Since when no session of his is there, though he counts as online. */
  goneAt: number | undefined
}

export function createPresence({ sessions, calls, now, isOpen, onError }: PresenceOptions): Presence {
  /** Who was looked at longest ago comes first. */
  const people = new Map<string, Person>()
  /** Also who watches nobody by now, while its socket is here: when it asked last counts on. */
  const watchers = new Map<string, Watcher>()
  /** Those of whom somebody was told otherwise: they stay here until everybody was told. */
  const untold = new Set<Person>()
  let asked = 0
  const askedBy = new Map<string, number>()
  let isWorking = false
  let isAway = false
  let timer: ReturnType<typeof setInterval> | undefined

  async function lookForSessions(person: Person): Promise<void> {
    const isHere = (await sessions.seen(person.participant)).length > 0
    const at = now()
    if (isHere) person.goneAt = undefined
    else person.goneAt ??= at
    learn(person, { online: isHere || (person.state.online && at - (person.goneAt ?? at) < goneMs) })
  }

  const lookForCalls = shareRead(async (some: readonly Person[]) => {
    const found = await calls.inCall(some.map(({ participant }) => participant))
    for (const [i, person] of some.entries()) learn(person, { inCall: found[i] })
  })

  function learn(person: Person, news: Partial<State>): void {
    const state = { ...person.state, ...news }
    if (isSame(state, person.state)) return
    person.state = state
    if (person.told.size > 0) untold.add(person)
  }

  async function round(): Promise<void> {
    for (const [sessionId, { product, watched }] of watchers) {
      if (sessions.heldHere(sessionId) === undefined) forget(sessionId)
      else if (!isOpen(product)) for (const person of watched) leave(sessionId, person)
    }
    const due = [...people.entries().take(perRound)]
    for (const [key, person] of due) {
      people.delete(key)
      people.set(key, person)
    }
    const some = due.map(([, person]) => person)
    const looks = await Promise.allSettled([inBatches(some, lookForSessions), lookForCalls(some)])
    // Whoever could not be looked at holds back nobody else.
    await tell()
    for (const look of looks) if (look.status === 'rejected') throw look.reason
  }

  /** Who could not be told is told in the next round, if it is still so. */
  async function tell(): Promise<void> {
    const changed = new Map<string, Person[]>()
    for (const person of untold) {
      const outdated = [...person.told].filter(([, told]) => !isSame(told, person.state))
      if (outdated.length === 0) untold.delete(person)
      for (const [sessionId] of outdated) changed.set(sessionId, [...(changed.get(sessionId) ?? []), person])
    }
    await inBatches(changed, async ([sessionId, some]) => {
      // It went on elsewhere, perhaps with a token of other roles.
      if (sessions.heldHere(sessionId) === undefined) return forget(sessionId)
      const watcher = watchers.get(sessionId)
      // It let go of some while others were told.
      const watched = some.filter((person) => watcher?.watched.has(person))
      if (watched.length === 0) return
      const data: PresenceState = { participants: watched.map(stateOf) }
      const text = JSON.stringify({ event: 'presence.changed', data })
      await sessions.append(sessionId, { kind: 'notice', call: '', version: undefined, text })
      for (const person of watched) if (person.told.has(sessionId)) person.told.set(sessionId, person.state)
    })
  }

  function forget(sessionId: string): void {
    for (const person of watchers.get(sessionId)?.watched ?? []) leave(sessionId, person)
    watchers.delete(sessionId)
  }

  function leave(sessionId: string, person: Person): void {
    watchers.get(sessionId)?.watched.delete(person)
    person.told.delete(sessionId)
    if (person.told.size > 0) return
    people.delete(keyOf(person.participant))
    untold.delete(person)
  }

  /** One at a time: where the store is slow, rounds are fewer. */
  async function work(): Promise<void> {
    if (isWorking || watchers.size === 0) return
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
      const before = watchers.get(sessionId)
      const again = before === undefined ? 0 : before.askedAt + roundMs - now()
      const wanted = new Map(participants.map((participant) => [keyOf(participant), participant]))
      const fresh = [...wanted].filter(([key]) => !people.has(key))
      const share = (askedBy.get(keyOf(by)) ?? 0) + fresh.length
      if (again > 0 || asked + fresh.length > perRoundAsked || share > perRoundAskedByOne)
        return { ok: false, error: errorBody('RATE_LIMITED', { limit: 'messages', retry_after_ms: roundMs }) }
      asked += fresh.length
      if (fresh.length > 0) askedBy.set(keyOf(by), share)
      // Those who are known already stay as they are, also where everybody lets go of them meanwhile.
      const wantedPeople = new Map(
        Array.from(wanted, ([key, participant]): [string, Person] => [
          key,
          people.get(key) ?? { participant, told: new Map(), state: nothingKnown, goneAt: undefined },
        ]),
      )
      const unseen = fresh.flatMap(([key]) => wantedPeople.get(key) ?? [])
      // Who is there is told also where nobody can say who is in a call: the rounds will.
      await Promise.all([inBatches(unseen, lookForSessions), lookForCalls(unseen).catch(unlessAway)])
      forget(sessionId)
      const watched = new Set<Person>()
      for (const [key, looked] of wantedPeople) {
        // Another session may have asked for the same person meanwhile.
        const person = people.get(key) ?? looked
        person.told.set(sessionId, person.state)
        people.set(key, person)
        watched.add(person)
      }
      watchers.set(sessionId, { product: by.product, watched, askedAt: now() })
      return { ok: true, participants: [...watched].map(stateOf) }
    },
    restrict({ sessionId }, roles) {
      for (const person of watchers.get(sessionId)?.watched ?? [])
        if (!roles.includes(person.participant.role)) leave(sessionId, person)
    },
    end: forget,
    start() {
      timer = setInterval(() => {
        asked = 0
        askedBy.clear()
        void work()
      }, roundMs)
    },
    stop: () => clearInterval(timer),
  }
}

const keyOf = participantHash

const nothingKnown: State = { online: false, inCall: undefined }
const isSame = (a: State, b: State) => a.online === b.online && a.inCall === b.inCall

function stateOf({ participant: { role, userId }, state }: Person): PresenceState['participants'][number] {
  const { online, inCall } = state
  return { role, user_id: userId, online, ...(inCall !== undefined && { in_call: inCall }) }
}

function unlessAway(error: unknown): void {
  if (!(error instanceof StoreError)) throw error
}

/** One read at a time: whoever asks during one shares the next. */
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
