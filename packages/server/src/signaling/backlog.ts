/**
 * How much may wait on this node for one participant, on all its sockets together: one token must not make the process
 * hold a gigabyte [ORD1].
 */
export interface Backlog {
  /** False where it would be too much: then nothing is added. */
  add(participant: string, bytes: number): boolean
  remove(participant: string, bytes: number): void
}

export function createBacklog(maxBytes: number): Backlog {
  /** Only participants for whom something waits. */
  const waiting = new Map<string, number>()

  return {
    add(participant, bytes) {
      const sum = (waiting.get(participant) ?? 0) + bytes
      if (sum > maxBytes) return false
      waiting.set(participant, sum)
      return true
    },
    remove(participant, bytes) {
      const sum = (waiting.get(participant) ?? 0) - bytes
      if (sum > 0) waiting.set(participant, sum)
      else waiting.delete(participant)
    },
  }
}
