/**
 * Who came online and went offline, for the webhook endpoints that name it [HOOK2]. Each node writes whose sockets it has, and
 * the store tells of the first node of somebody and of the last one, in that commit. So one node tells, whichever dies.
 *
 *   const online = createOnline({ store, self, isDead, hooked, now, wall, onError })
 *   online.start()
 *   online.opened(participant), online.closed(participant)    → of sockets of this process
 *   online.died(node, hasLeft)                                → its sockets are gone
 */
import { type Participant, participantKey } from '../call/call.ts'
import { mostComing, type OnlineStore } from '../ports/online.ts'
import { StoreError } from '../ports/store-error.ts'

/** Who is gone for so long is offline: a page that is loaded again is not. In ms. */
const goneMs = 5_000
/** After a start people need longer to come back: nobody was there to come back to. In ms. */
const startMs = 15_000
/** How often it is looked for what is to be written, and whose rows there are, in ms. */
const workMs = 100
const lookMs = 5_000
/** What the store did not take is tried again so much later, in ms. */
const retryMs = 1_000

export interface OnlineOptions {
  readonly store: OnlineStore
  /** This run of this process: no other has had the name. */
  readonly self: string
  /** Whether a run is over for sure. */
  readonly isDead: (node: string) => boolean
  /** Products with an endpoint that hears it; another set where they changed. */
  readonly hooked: () => ReadonlySet<string>
  /** Steady, in ms. */
  readonly now: () => number
  /** In ms since the epoch. */
  readonly wall: () => number
  readonly onError: (error: unknown) => void
}

export interface Online {
  opened(participant: Participant): void
  closed(participant: Participant): void
  /** `hasLeft`: it was stopped, and its clients are on their way to another one. */
  died(node: string, hasLeft: boolean): void
  start(): void
  stop(): void
}

interface Person {
  readonly participant: Participant
  sockets: number
  goneAt: number
  /** The store has his row of this process. */
  isWritten: boolean
}

export function createOnline({ store, self, isDead, hooked, now, wall, onError }: OnlineOptions): Online {
  const people = new Map<string, Person>()
  /** Those whose row may have to change now, and those whose last socket is gone, the first one first. */
  const changed = new Set<Person>()
  const gone = new Map<string, Person>()
  /** Runs that are over, and from when on their rows go. */
  const over = new Map<string, number>()
  let known: ReadonlySet<string> = new Set()
  let startedAt = now()
  let lookedAt = Number.NEGATIVE_INFINITY
  let notBefore = Number.NEGATIVE_INFINITY
  let isWorking = false
  let isAway = false
  let timer: ReturnType<typeof setInterval> | undefined

  const comes = ({ participant, sockets, goneAt }: Person, at: number) =>
    known.has(participant.product) && (sockets > 0 || at - goneAt < goneMs)

  function notice(at: number): void {
    const products = hooked()
    if (products !== known) {
      known = products
      for (const person of people.values()) changed.add(person)
    }
    for (const [key, person] of gone) {
      if (at - person.goneAt < goneMs) break
      gone.delete(key)
      changed.add(person)
    }
  }

  function settled(person: Person, isWritten: boolean): void {
    person.isWritten = isWritten
    changed.delete(person)
    const key = participantKey(person.participant)
    if (person.sockets === 0 && !isWritten && !gone.has(key)) people.delete(key)
  }

  async function writeChanges(): Promise<void> {
    while (changed.size > 0) {
      const at = now()
      const batch: { person: Person; comes: boolean }[] = []
      for (const person of changed) {
        const isComing = comes(person, at)
        if (isComing === person.isWritten) settled(person, isComing)
        else if (batch.push({ person, comes: isComing }) === mostComing) break
      }
      if (batch.length === 0) return
      // What changes about them meanwhile is in the next batch.
      for (const { person } of batch) changed.delete(person)
      try {
        const rows = batch.map(({ person: { participant }, comes }) => ({ participant, comes }))
        await store.write(self, rows, wall())
      } catch (error) {
        // It may have been written: doing it again tells nothing.
        for (const { person } of batch) changed.add(person)
        throw error
      }
      for (const { person, comes: isWritten } of batch) {
        person.isWritten = isWritten
        if (comes(person, now()) !== isWritten) changed.add(person)
        else settled(person, isWritten)
      }
    }
  }

  /** Others do the same: the store tells once. */
  async function dropOver(at: number): Promise<void> {
    for (const [node, dueAt] of over) {
      if (at < dueAt) continue
      for (let left = await store.of(node); left.length > 0; left = await store.of(node)) {
        const rows = left.map((participant) => ({ participant, comes: false }))
        await store.write(node, rows, wall())
      }
      over.delete(node)
    }
  }

  /** Runs of which nobody saw the end, and rows of this one that others took away while it stood still. */
  async function look(at: number): Promise<void> {
    const nodes = await store.nodes()
    lookedAt = at
    for (const node of nodes.keys()) if (node !== self && !over.has(node) && isDead(node)) forget(node, at + goneMs)
    const written = [...people.values()].filter(({ isWritten }) => isWritten)
    if ((nodes.get(self) ?? 0) >= written.length) return
    for (const person of written) {
      if (person.sockets === 0) continue
      person.isWritten = false
      changed.add(person)
    }
  }

  /** A node that has just started learns of all that died before it, and people had nobody to come back to. */
  function forget(node: string, from: number): void {
    over.set(node, Math.max(from, startedAt + startMs))
  }

  async function work(): Promise<void> {
    const at = now()
    if (isWorking || at < notBefore) return
    notice(at)
    if (known.size === 0 && changed.size === 0 && over.size === 0 && lookedAt > startedAt) return
    isWorking = true
    try {
      if (at - lookedAt >= lookMs) await look(at)
      await writeChanges()
      await dropOver(at)
      isAway = false
    } catch (error) {
      notBefore = now() + retryMs
      // Said once, however long the store is away.
      if (!(error instanceof StoreError) || !isAway) onError(error)
      isAway ||= error instanceof StoreError
    } finally {
      isWorking = false
    }
  }

  return {
    opened(participant) {
      const key = participantKey(participant)
      const person = people.get(key) ?? { participant, sockets: 0, goneAt: 0, isWritten: false }
      person.sockets++
      people.set(key, person)
      gone.delete(key)
      if (!person.isWritten) changed.add(person)
    },
    closed(participant) {
      const key = participantKey(participant)
      const person = people.get(key)
      if (person === undefined) return
      person.sockets--
      if (person.sockets > 0) return
      person.goneAt = now()
      gone.set(key, person)
    },
    died(node, hasLeft) {
      forget(node, now() + (hasLeft ? goneMs : 0))
    },
    start() {
      startedAt = now()
      timer = setInterval(() => void work(), workMs)
    },
    stop: () => clearInterval(timer),
  }
}
