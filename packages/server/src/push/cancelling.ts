import { type Call, callKey, isLive, type Participant, sameParticipant } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { quietSince } from '../call/hook.ts'
import type { Device, Devices } from '../ports/devices.ts'
import type { SeenSession, Sessions } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import type { AtLast } from './at-last.ts'
import type { Sender } from './sender.ts'
import { devicesOf, inGroups, memberOfName, nameInAnyTurn, wakeName } from './wake-names.ts'
import type { Wakes } from './wakes.port.ts'

export interface CancellingOptions {
  readonly devices: Pick<Devices, 'of' | 'ofMembers'>
  readonly sessions: Pick<Sessions, 'seen'>
  readonly wakes: Pick<Wakes, 'of'>
  readonly sender: Sender
  readonly now: () => number
  readonly atLast: AtLast
  /** The service stops. */
  readonly signal: AbortSignal
}

/** Who answered or declined with a step. Null: nobody did. */
export interface Decider {
  readonly participant: Participant
  /** Undefined: it has to be looked up. */
  readonly deviceId: string | null | undefined
}

/** Tells devices that were woken that the ring is over [PUSH2]. */
export interface Cancelling {
  cancel(call: Call, rung: readonly Participant[], isTold: (device: Device) => boolean): Promise<void>
  /** Tells all devices that were woken where the call rings no more since this step, but for the one that decided. */
  cancelAll(step: Step, decider: Decider | null): Promise<void>
}

/** A push after the ring is worth sending for a moment: missed calls are reported when the ring is over. In ms. */
const leastMs = 30_000

export function createCancelling(options: CancellingOptions): Cancelling {
  const { devices, wakes, sender, now, atLast, signal } = options
  const seenOf = createSeenOf(options)
  // A device that was switched off meanwhile hears of neither: one takes the place of the other until the ring is over.
  const worthUntil = (call: Call) => Math.max(call.ringExpiresAt, now() + leastMs)

  /** Of some of the people at whom it rang. A VoIP push has to ring, whatever it says. */
  async function toldDevices(call: Call, rung: readonly Participant[]): Promise<readonly Device[]> {
    const registered = await atLast(async () => devicesOf(devices, rung, now()), worthUntil(call), signal)
    return registered.filter((device) => sender.serves(device.address.platform) && !isVoip(device))
  }

  async function send(call: Call, told: readonly Device[]): Promise<void> {
    const { callUuid } = call
    const expiresAt = worthUntil(call)
    const payload = {
      ...headingOf(call, 'call.wake_cancelled'),
      status: call.status,
      end_reason: isLive(call) ? null : call.endReason,
    }
    await Promise.all(
      told.map((device) => sender.send(device, { type: 'call.wake_cancelled', callUuid, payload, expiresAt })),
    )
  }

  async function cancel(call: Call, rung: readonly Participant[], isTold: (device: Device) => boolean): Promise<void> {
    const sent = inGroups(rung).map(async (some) => send(call, (await toldDevices(call, some)).filter(isTold)))
    await Promise.all(sent)
  }

  async function cancelAll(step: Step, decider: Decider | null): Promise<void> {
    if (!sender.servesAny) return
    const { call } = step
    const names = await wakes.of(callKey(call))
    if (names?.length === 0) return
    const woken = names && new Set(names.map((name) => nameInAnyTurn(call, name)))
    const nameOf = (participant: Participant, deviceId: string) =>
      nameInAnyTurn(call, wakeName(call, participant, deviceId))
    const sent = inGroups(rungAmong(step, woken)).map(async (some) => {
      const [told, seen] = await Promise.all([toldDevices(call, some), seenOf(some, woken, decider)])
      const isDecider = (device: Device) =>
        decider !== null &&
        sameParticipant(device.participant, decider.participant) &&
        device.deviceId === (decider.deviceId ?? deviceOfAuthor(step, seen))
      // No process is known that saw the ring begin: a device without a session counts as woken.
      const awake = new Set(seen.map(({ participant, deviceId }) => nameOf(participant, deviceId ?? '')))
      const isWoken = ({ participant, deviceId }: Device) => {
        const name = nameOf(participant, deviceId)
        return woken?.has(name) ?? !awake.has(name)
      }
      await send(
        call,
        told.filter((device) => !isDecider(device) && isWoken(device)),
      )
    })
    await Promise.all(sent)
  }

  return { cancel, cancelAll }
}

/** Reads the sessions of those of whom something has to be looked up. */
function createSeenOf({ sessions }: Pick<CancellingOptions, 'sessions'>) {
  /** While the store is away nobody is: the cancellations do not wait for it, and one too many does no harm. */
  async function seenOrNone(participant: Participant): Promise<readonly Seen[]> {
    try {
      return (await sessions.seen(participant)).map((session) => ({ ...session, participant }))
    } catch (error) {
      if (error instanceof StoreError) return []
      throw error
    }
  }

  return async (
    rung: readonly Participant[],
    woken: ReadonlySet<string> | undefined,
    decider: Decider | null,
  ): Promise<readonly Seen[]> => {
    const isUnknown = (one: Participant) =>
      decider?.deviceId === undefined && decider !== null && sameParticipant(one, decider.participant)
    const asked = woken === undefined ? rung : rung.filter(isUnknown)
    return (await Promise.all(asked.map(seenOrNone))).flat()
  }
}

type Seen = SeenSession & { readonly participant: Participant }

/** Of a group only members with a device that was woken matter, if that is known. */
function rungAmong(step: Step, woken: ReadonlySet<string> | undefined): readonly Participant[] {
  const quiet = quietSince(step)
  if (step.call.group === undefined || woken === undefined) return quiet
  const members = new Set(Array.from(woken, memberOfName))
  return quiet.filter(({ userId }) => members.has(userId))
}

/** The device of the session that decided, if it is still seen. */
function deviceOfAuthor({ event }: Step, seen: readonly Seen[]): string | null | undefined {
  return seen.find(({ sessionId }) => sessionId === event.by?.sessionId)?.deviceId
}

const isVoip = ({ address }: Device) => address.platform === 'apns' && address.voip

/** What both pushes of a call begin with. */
export function headingOf({ callUuid, callType, caller, group }: Call, type: string) {
  const { userId, role, displayName } = caller
  return {
    type,
    call_uuid: callUuid,
    call_type: callType,
    caller: { user_id: userId, role, display_name: displayName ?? '' },
    ...(group !== undefined && { callee_group: group.name }),
  }
}
