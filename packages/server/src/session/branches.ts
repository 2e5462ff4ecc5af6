import type { Session } from './session.ts'

/** Takeovers of which a client may have missed every `auth.ok`. */
const mostEarlier = 16

/**
 * Its last owner did not let go of it. If the store loses the fence, that owner may go on with the log as it has it, under the
 * same numbers: from here on this log has a name of its own, so that no client takes one for the other [RES2].
 */
export function branchOff(session: Session, epoch: string): void {
  const last = { epoch: session.epoch, seq: session.log?.last ?? 0, calls: callsIn(session) }
  session.earlier = [...(session.earlier ?? []), last].slice(-mostEarlier)
  session.epoch = epoch
}

/**
 * Whether a session has everything that an earlier owner wrote of it: that owner added nothing after another one took the session
 * over. Its log shows what it acknowledged to others. Relays that wait for an accept are not in the log, so the calls are
 * compared, too.
 */
export function hasAllOf(session: Session, earlier: Session): boolean {
  const last = earlier.log?.last ?? 0
  // That owner let go of it, and added nothing after that.
  if (earlier.epoch === session.epoch) return last <= (session.log?.last ?? 0)
  const branch = session.earlier?.findLast(({ epoch }) => epoch === earlier.epoch)
  return branch !== undefined && last <= branch.seq && branch.calls === callsIn(earlier)
}

function callsIn({ calls }: Session): string {
  return Bun.hash(JSON.stringify([...(calls ?? [])])).toString(36)
}
