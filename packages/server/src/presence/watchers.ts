import type { Participant } from '../call/call.ts'
import { participantHash } from '../ports/session-id.ts'

/** Undefined: not known yet. */
export type State = { readonly online: boolean; readonly inCall: boolean | undefined }

export interface Person {
  readonly participant: Participant
  /** The state that the service last told each session that watches him. */
  readonly told: Map<string, State>
  state: State
  /** Since when no session of his is there, though he counts as online. */
  goneAt: number | undefined
}

interface Watcher {
  readonly product: string
  readonly watched: Set<Person>
  readonly askedAt: number
}

export const keyOf = participantHash

const nothingKnown: State = { online: false, inCall: undefined }
const isSame = (a: State, b: State) => a.online === b.online && a.inCall === b.inCall
const nobody: ReadonlySet<Person> = new Set()

export function newPerson(participant: Participant): Person {
  return { participant, told: new Map(), state: nothingKnown, goneAt: undefined }
}

export type Watchers = ReturnType<typeof createWatchers>

/** The sessions that watch, the people whom they watch, and the states that they know. */
export function createWatchers() {
  /** The person of the earliest look comes first. */
  const people = new Map<string, Person>()
  /** Also who watches nobody by now, while its socket is here: when it asked last counts on. */
  const watchers = new Map<string, Watcher>()
  /** People of whom a session knows an older state. They stay here until every session knows the new one. */
  const untold = new Set<Person>()

  const watchedBy = (sessionId: string): ReadonlySet<Person> => watchers.get(sessionId)?.watched ?? nobody

  function leave(sessionId: string, person: Person): void {
    watchers.get(sessionId)?.watched.delete(person)
    person.told.delete(sessionId)
    if (person.told.size > 0) return
    people.delete(keyOf(person.participant))
    untold.delete(person)
  }

  function forget(sessionId: string): void {
    for (const person of watchedBy(sessionId)) leave(sessionId, person)
    watchers.delete(sessionId)
  }

  return {
    all: watchers,
    watchedBy,
    leave,
    forget,
    find: (key: string) => people.get(key),
    /** From now on the session watches these, and no others; answers them as they are known. */
    watch(
      sessionId: string,
      product: string,
      wanted: ReadonlyMap<string, Person>,
      askedAt: number,
    ): ReadonlySet<Person> {
      forget(sessionId)
      const watched = new Set<Person>()
      for (const [key, looked] of wanted) {
        // Another session may have asked for the same person meanwhile.
        const person = people.get(key) ?? looked
        person.told.set(sessionId, person.state)
        people.set(key, person)
        watched.add(person)
      }
      watchers.set(sessionId, { product, watched, askedAt })
      return watched
    },
    learn(person: Person, news: Partial<State>): void {
      const state = { ...person.state, ...news }
      if (isSame(state, person.state)) return
      person.state = state
      if (person.told.size > 0) untold.add(person)
    },
    /** The people of the earliest looks. */
    next: (count: number): Person[] => toEnd(people, count),
    /** The people of whom each session knows an older state. */
    outdated(): Map<string, Person[]> {
      const changed = new Map<string, Person[]>()
      for (const person of untold) {
        const outdated = [...person.told].filter(([, told]) => !isSame(told, person.state))
        if (outdated.length === 0) untold.delete(person)
        for (const [sessionId] of outdated) changed.set(sessionId, [...(changed.get(sessionId) ?? []), person])
      }
      return changed
    },
  }
}

/** Moves the first ones to the end, and answers them. */
function toEnd(people: Map<string, Person>, count: number): Person[] {
  const first = [...people.entries().take(count)]
  for (const [key, person] of first) {
    people.delete(key)
    people.set(key, person)
  }
  return first.map(([, person]) => person)
}
