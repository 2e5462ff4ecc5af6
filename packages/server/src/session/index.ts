import type { Session } from './session.ts'

/** Sessions by participant, oldest first. A participant has few, and mostly one: a list of one costs a third of a set of one. */
export class Index {
  private readonly lists = new Map<string, Session[]>()

  add(session: Session): void {
    const known = this.lists.get(session.participantKey)
    if (known === undefined) this.lists.set(session.participantKey, [session])
    else if (!known.includes(session)) known.push(session)
  }

  remove(session: Session): void {
    const known = this.lists.get(session.participantKey)
    const at = known?.indexOf(session) ?? -1
    if (known === undefined || at < 0) return
    if (known.length === 1) this.lists.delete(session.participantKey)
    else known.splice(at, 1)
  }

  /** A list of its own: the index may change while it is walked. */
  of(participantKey: string): readonly Session[] {
    return [...(this.lists.get(participantKey) ?? [])]
  }

  all(): readonly Session[] {
    return [...this.lists.values()].flat()
  }

  count(): number {
    let count = 0
    for (const { length } of this.lists.values()) count += length
    return count
  }
}
