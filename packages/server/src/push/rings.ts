import { type CallRef, callKey } from '../call/call.ts'
import type { Device } from '../ports/devices.ts'

/** What this node does for a call that rings. */
export interface Ring {
  readonly giveUp: AbortController
  /** Looks and pushes. The cancellations wait for all of them. */
  readonly underWay: Set<Promise<void>>
  /** Devices whose push is on its way. */
  readonly sending: Set<Device>
  /** Of a call to a group: the members whose devices this node wakes, by user_id. */
  readonly members: Map<string, MemberRing>
  /** This node committed its end, and tells everybody. */
  endsHere: boolean
}

/** What this node does for one member of a group at whom a call rings [GROUP1]. */
export interface MemberRing {
  readonly giveUp: AbortController
  readonly pushes: Set<Promise<void>>
  /** This node committed that it rings there no more, and tells its devices. */
  endsHere: boolean
}

/** A stop waits this long for what is under way, in ms. */
const graceMs = 1_000

export function memberOf({ members }: Ring, userId: string): MemberRing {
  const member = members.get(userId) ?? { giveUp: new AbortController(), pushes: new Set(), endsHere: false }
  members.set(userId, member)
  return member
}

/** It rings at these members, maybe for the second time. */
export function beginsAgain({ members }: Ring, userIds: readonly string[]): void {
  for (const userId of userIds) if (members.get(userId)?.giveUp.signal.aborted) members.delete(userId)
}

export type Rings = ReturnType<typeof createRings>

/** What is under way on this node for calls that ring. */
export function createRings(onError: (error: unknown) => void) {
  const rings = new Map<string, Ring>()
  /** Of all calls. */
  const underWay = new Set<Promise<void>>()
  const stopping = new AbortController()

  function ringOf(ref: CallRef): Ring {
    const key = callKey(ref)
    const ring = rings.get(key) ?? {
      giveUp: new AbortController(),
      underWay: new Set(),
      sending: new Set(),
      members: new Map(),
      endsHere: false,
    }
    rings.set(key, ring)
    return ring
  }

  function forget(ref: CallRef, ring: Ring | undefined): void {
    if (rings.get(callKey(ref)) === ring) rings.delete(callKey(ref))
  }

  /** A stop waits for it. */
  function waitFor(done: Promise<void>): void {
    underWay.add(done)
    void done.finally(() => underWay.delete(done))
  }

  return {
    waitFor,
    stopping: stopping.signal,
    find: (ref: CallRef): Ring | undefined => rings.get(callKey(ref)),
    /** Resolves when the work is done, and never rejects. */
    async begin(ref: CallRef, work: (ring: Ring, signal: AbortSignal) => Promise<void>): Promise<void> {
      const ring = ringOf(ref)
      const done = work(ring, AbortSignal.any([ring.giveUp.signal, stopping.signal]))
        // It is too late for that.
        .catch(onError)
        .finally(() => {
          ring.underWay.delete(done)
          // Who cancels still needs a ring whose pushes were given up.
          if (ring.underWay.size === 0 && ring.sending.size === 0) forget(ref, ring)
        })
      ring.underWay.add(done)
      waitFor(done)
      await done
    },
    /** Gives up what is under way for it. Answers what to wait for until nothing more of it is. */
    end(ref: CallRef): Promise<unknown> {
      const ring = rings.get(callKey(ref))
      ring?.giveUp.abort()
      const done = Promise.all(ring?.underWay ?? [])
      void done.then(() => forget(ref, ring))
      return done
    },
    /** The same for members of a group; it rings on at the others. */
    leave(members: readonly MemberRing[]): Promise<unknown> {
      for (const { giveUp } of members) giveUp.abort()
      return Promise.all(members.flatMap(({ pushes }) => [...pushes]))
    },
    async stop(): Promise<void> {
      await Promise.race([Promise.all(underWay), Bun.sleep(underWay.size > 0 ? graceMs : 0)])
      stopping.abort()
    },
  }
}
