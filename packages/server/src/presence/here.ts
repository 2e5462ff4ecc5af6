import { type Participant, participantKey } from '../call/call.ts'
import { mostComing } from '../ports/online.ts'

/** A person without a socket is offline after this time: a page that is loaded again is back before it. In ms. */
export const goneMs = 5_000

interface Person {
  readonly participant: Participant
  sockets: number
  goneAt: number
  /** The store has his row of this process. */
  isWritten: boolean
}

export type Change = { readonly person: Person; readonly comes: boolean }

/** Who has sockets of this process, and whose row of it has to come or go. */
export function createHere(now: () => number) {
  const people = new Map<string, Person>()
  /** Those whose row may have to change now, and those whose last socket is gone, the first one first. */
  const changed = new Set<Person>()
  const gone = new Map<string, Person>()
  /** Products with an endpoint that hears it. */
  let hooked: ReadonlySet<string> = new Set()

  function settled(person: Person, isWritten: boolean): void {
    person.isWritten = isWritten
    changed.delete(person)
    const key = participantKey(person.participant)
    if (person.sockets === 0 && !isWritten && !gone.has(key)) people.delete(key)
  }

  return {
    opened(participant: Participant): void {
      const key = participantKey(participant)
      const person = people.get(key) ?? { participant, sockets: 0, goneAt: 0, isWritten: false }
      person.sockets++
      people.set(key, person)
      gone.delete(key)
      // A product that is hooked later looks at all people then.
      if (!person.isWritten && hooked.has(participant.product)) changed.add(person)
    },
    closed(participant: Participant): void {
      const key = participantKey(participant)
      const person = people.get(key)
      if (person === undefined || --person.sockets > 0) return
      person.goneAt = now()
      gone.set(key, person)
    },
    notice(products: ReadonlySet<string>, at: number): void {
      if (products !== hooked) {
        hooked = products
        for (const person of people.values()) changed.add(person)
      }
      for (const person of takeExpired(gone, at)) changed.add(person)
    },
    isQuiet: () => hooked.size === 0 && changed.size === 0,
    /** Takes what is to be written next. Later changes are in the next batch. */
    take(): Change[] {
      const at = now()
      const batch: Change[] = []
      for (const person of changed) {
        const isComing = comes(person, hooked, at)
        if (isComing === person.isWritten) settled(person, isComing)
        else if (batch.push({ person, comes: isComing }) === mostComing) break
      }
      for (const { person } of batch) changed.delete(person)
      return batch
    },
    written(batch: readonly Change[]): void {
      for (const { person, comes: isWritten } of batch) {
        person.isWritten = isWritten
        if (comes(person, hooked, now()) !== isWritten) changed.add(person)
        else settled(person, isWritten)
      }
    },
    /** It may have been written: doing it again tells nothing. */
    failed(batch: readonly Change[]): void {
      for (const { person } of batch) changed.add(person)
    },
    /** Writes all rows again where the store has fewer. */
    compare(stored: number): void {
      const written = [...people.values()].filter(({ isWritten }) => isWritten)
      if (stored >= written.length) return
      for (const person of written) {
        if (person.sockets === 0) continue
        person.isWritten = false
        changed.add(person)
      }
    },
  }
}

const comes = ({ participant, sockets, goneAt }: Person, hooked: ReadonlySet<string>, at: number) =>
  hooked.has(participant.product) && (sockets > 0 || at - goneAt < goneMs)

/** Takes those who have been gone for long enough. */
function* takeExpired(gone: Map<string, Person>, at: number) {
  for (const [key, person] of gone) {
    if (at - person.goneAt < goneMs) return
    gone.delete(key)
    yield person
  }
}
