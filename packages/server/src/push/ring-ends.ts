import { deviceOfTicketSession } from '../auth/ring-ticket.ts'
import {
  type Call,
  type CallRef,
  type Participant,
  participantOf,
  type RingingCall,
  ringsAt,
  sameParticipant,
} from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { quietSince } from '../call/hook.ts'
import type { Device } from '../ports/devices.ts'
import type { MaybePromise } from '../ports/maybe.ts'
import type { Sessions } from '../ports/sessions.ts'
import type { Cancelling, Decider } from './cancelling.ts'
import { memberOf, type Ring, type Rings } from './rings.ts'

export interface RingEndsOptions {
  readonly sessions: Pick<Sessions, 'heldHere'>
  /** The call as it is stored. */
  readonly load: (ref: CallRef) => MaybePromise<Call | undefined>
  readonly onError: (error: unknown) => void
}

/**
 * The end of a ring, or of its part at some members of a group: the node wakes no device there any more, and tells those that
 * it woke.
 */
export function createRingEnds(
  { sessions, load, onError }: RingEndsOptions,
  rings: Rings,
  { cancel, cancelAll }: Cancelling,
) {
  /** The node that ended the ring may have read the woken devices before these were among them. */
  async function cancelSent(ref: CallRef, ring: Ring, done: Promise<unknown>): Promise<void> {
    await done
    if (ring.endsHere || ring.sending.size === 0) return
    const call = await load(ref)
    if (call === undefined || call.status === 'ringing') return
    const answerer = participantOf(call, 'callee')
    const hasAnswered = ({ participant, deviceId }: Device) =>
      deviceId === deviceThatHasIt(call) && sameParticipant(participant, answerer)
    await cancel(call, ownersOf(ring.sending), isOneOf(ring.sending, hasAnswered))
  }

  /** The same of members at whom it rings no more, while it rings at others. */
  async function cancelLeft(call: RingingCall, ring: Ring, left: readonly string[], done: Promise<unknown>) {
    await done
    const isLeft = ({ participant: { userId } }: Device) => left.includes(userId) && !memberOf(ring, userId).endsHere
    const sent = new Set([...ring.sending].filter(isLeft))
    for (const device of sent) ring.sending.delete(device)
    if (sent.size > 0) await cancel(call, ownersOf(sent), isOneOf(sent))
  }

  return {
    /** This node committed the step. */
    ended(step: Step): void {
      const ring = rings.find(step.call)
      const stopped = step.call.status === 'ringing' ? stopAtMembers(rings, ring, quietSince(step)) : stopAll()
      const decider = deciderOf(step, sessions)
      const cancelled = stopped.then(() => (rings.stopping.aborted ? undefined : cancelAll(step, decider)))
      rings.waitFor(cancelled.catch(onError))

      function stopAll(): Promise<unknown> {
        if (ring !== undefined) ring.endsHere = true
        return rings.end(step.call)
      }
    },
    /** Any node ended it. */
    isQuiet(ref: CallRef): void {
      const ring = rings.find(ref)
      if (ring !== undefined) rings.waitFor(cancelSent(ref, ring, rings.end(ref)).catch(onError))
    },
    /** Any node may have committed that it rings at fewer members. */
    ringsOn(call: RingingCall): void {
      const ring = rings.find(call)
      if (ring === undefined) return
      const { product, callee } = call
      const left = Array.from(ring.members).filter(
        ([userId, { giveUp }]) => !giveUp.signal.aborted && !ringsAt(call, { product, role: callee.role, userId }),
      )
      if (left.length === 0) return
      const done = rings.leave(left.map(([, member]) => member))
      const names = left.map(([userId]) => userId)
      rings.waitFor(cancelLeft(call, ring, names, done).catch(onError))
    },
  }
}

/** Of a ring that goes on at others. */
async function stopAtMembers(rings: Rings, ring: Ring | undefined, quiet: readonly Participant[]): Promise<void> {
  if (ring === undefined) return
  const members = quiet.map(({ userId }) => memberOf(ring, userId))
  for (const member of members) member.endsHere = true
  await rings.leave(members)
  // They hear it with all others that were woken there.
  const left = new Set(quiet.map(({ userId }) => userId))
  for (const device of ring.sending) if (left.has(device.participant.userId)) ring.sending.delete(device)
}

/** Who answered or declined, and where; null: nobody did. */
function deciderOf({ call, event }: Step, sessions: Pick<Sessions, 'heldHere'>): Decider | null {
  if (event.type === 'accepted') return { participant: participantOf(call, 'callee'), deviceId: deviceThatHasIt(call) }
  if ((event.type !== 'rejected' && event.type !== 'declined') || event.by === null) return null
  const { userId, role, sessionId } = event.by
  const deviceId = deviceOfTicketSession(sessionId) ?? sessions.heldHere(sessionId)?.deviceId
  return { participant: { product: call.product, role, userId }, deviceId }
}

function deviceThatHasIt(call: Call): string | null {
  return call.status === 'ringing' ? null : (call.calleePlace?.deviceId ?? null)
}

/** Whose devices these are. */
function ownersOf(devices: Iterable<Device>): readonly Participant[] {
  return [...new Map(Array.from(devices, ({ participant }) => [participant.userId, participant])).values()]
}

function isOneOf(devices: ReadonlySet<Device>, isNot: (device: Device) => boolean = () => false) {
  const isSame = (one: Device, other: Device) =>
    one.deviceId === other.deviceId && sameParticipant(one.participant, other.participant)
  const all = [...devices]
  return (device: Device) => !isNot(device) && all.some((each) => isSame(each, device))
}
