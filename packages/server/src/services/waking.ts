import type { RingTickets } from '../auth/ring-ticket.ts'
import { deviceOfTicketSession } from '../auth/ring-ticket.ts'
import { type Call, type CallRef, callKey, isLive, participantOf, type RingingCall } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { stopsRinging } from '../call/hook.ts'
import type { Device, Devices } from '../ports/devices.ts'
import type { Sessions } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import type { Sender } from '../push/sender.ts'
import { pause } from '../time/pause.ts'

export interface WakingOptions {
  readonly devices: Pick<Devices, 'of'>
  readonly sessions: Pick<Sessions, 'seen'>
  readonly sender: Sender
  readonly tickets: Pick<RingTickets, 'sign'>
  readonly now: () => number
  /** The call as this node has heard of it last. */
  readonly known: (ref: CallRef) => Call | undefined
  /** A call rings, and the callee has no device that could be woken. */
  readonly onNoDevice: (call: Call) => void
  readonly onError: (error: unknown) => void
}

export interface Waking {
  /**
   * A version of a call that this node has committed, or that nobody else seems to see to; returns at once, whatever comes
   * of it. Whom this node has woken for a call it does not wake again.
   */
  committed(step: Step): void
  /** A call does not ring any more, whichever node saw to that: nobody is woken for it from now on. */
  isQuiet(ref: CallRef): void
  /** Waits a moment for what is under way, and gives up the rest; nobody is woken from then on. */
  stop(): Promise<void>
}

/**
 * Wakes the devices of a callee that have no live session when a call begins to ring, and tells them when it stops before
 * it was answered there [PUSH2]. Beside the call: nothing of it waits for a push.
 */
export function createWaking(options: WakingOptions): Waking {
  const { devices, sessions, sender, tickets, now, known, onNoDevice, onError } = options
  /** Of each call that rings, and for which this node wakes, its pushes: what comes next about the call comes after them. */
  const ringing = new Map<string, { readonly giveUp: AbortController; readonly done: Promise<void> }>()
  /** Pushes of both kinds. */
  const underWay = new Set<Promise<void>>()
  const stopping = new AbortController()

  /** Undefined where none is registered that this process has a push service for. */
  async function asleep(call: Call, except: string | null): Promise<readonly Device[] | undefined> {
    const callee = participantOf(call, 'callee')
    const registered = (await devices.of(callee, now())).filter(({ address }) => sender.serves(address.platform))
    if (registered.length === 0) return undefined
    const live = new Set((await sessions.seen(callee)).map(({ deviceId }) => deviceId))
    return registered.filter(({ deviceId }) => deviceId !== except && !live.has(deviceId))
  }

  /** Once everybody was told of a step no other node looks at it: while a store is away it is read again and again. */
  async function asleepAtLast(
    call: Call,
    until: number,
    signal: AbortSignal,
    except: string | null,
  ): Promise<readonly Device[] | undefined> {
    for (;;) {
      try {
        return await asleep(call, except)
      } catch (error) {
        if (!(error instanceof StoreError)) throw error
        await pause(againMs, signal)
        if (signal.aborted || now() >= until) throw error
      }
    }
  }

  async function wake(call: RingingCall, signal: AbortSignal): Promise<void> {
    const { callUuid, ringExpiresAt: expiresAt } = call
    const callee = participantOf(call, 'callee')
    const found = await asleepAtLast(call, expiresAt, signal, null)
    if (found === undefined) return onNoDevice(call)
    const sent = found.map((device) => {
      const payload = {
        ...headingOf(call, 'call.wake'),
        expires_at: new Date(expiresAt).toISOString(),
        ring_ticket: tickets.sign(call, callee, device.deviceId),
      }
      return sender.send(device, { type: 'call.wake', callUuid, payload, expiresAt }, signal)
    })
    await Promise.all(sent)
  }

  async function cancel(call: Call, except: string | null): Promise<void> {
    const { callUuid } = call
    // A device that was switched off meanwhile hears of neither: one takes the place of the other until the ring is over.
    const expiresAt = Math.max(call.ringExpiresAt, now() + leastMs)
    const payload = {
      ...headingOf(call, 'call.wake_cancelled'),
      status: call.status,
      end_reason: isLive(call) ? null : call.endReason,
    }
    const found = (await asleepAtLast(call, expiresAt, stopping.signal, except)) ?? []
    // A VoIP push has to ring, whatever it says.
    const told = found.filter(({ address }) => address.platform !== 'apns' || !address.voip)
    await Promise.all(
      told.map((device) => sender.send(device, { type: 'call.wake_cancelled', callUuid, payload, expiresAt })),
    )
  }

  function begin(call: RingingCall): void {
    const key = callKey(call)
    // It was answered, or ended, before the answer to its commit came.
    if (ringing.has(key) || (known(call) ?? call).status !== 'ringing') return
    const giveUp = new AbortController()
    const done = wake(call, AbortSignal.any([giveUp.signal, stopping.signal])).catch((error) => {
      // Nobody was woken, and it is too late for that.
      ringing.delete(key)
      onError(error)
    })
    ringing.set(key, { giveUp, done })
    waitFor(done)
  }

  function waitFor(done: Promise<void>): void {
    underWay.add(done)
    void done.finally(() => underWay.delete(done))
  }

  /** Answers when nothing more of it is under way. */
  function end(ref: CallRef): Promise<void> | undefined {
    const key = callKey(ref)
    const pushes = ringing.get(key)
    pushes?.giveUp.abort()
    void pushes?.done.then(() => ringing.delete(key))
    return pushes?.done
  }

  return {
    committed(step) {
      const { call, event } = step
      if (!sender.servesAny || stopping.signal.aborted) return
      if (event.type === 'invited') {
        // Told late, it may be answered or over by now.
        if (call.status === 'ringing') begin(call)
      } else if (stopsRinging(step)) {
        const except = event.type === 'accepted' ? deviceThatHasIt(call) : deviceOfTicketSession(event.by?.sessionId)
        waitFor(
          Promise.resolve(end(call))
            .then(() => (stopping.signal.aborted ? undefined : cancel(call, except)))
            .catch(onError),
        )
      }
    },
    isQuiet: (ref) => void end(ref),
    async stop() {
      await Promise.race([Promise.all(underWay), Bun.sleep(underWay.size > 0 ? graceMs : 0)])
      stopping.abort()
    },
  }
}

/** What comes after the ring is worth telling for a moment: missed calls are told when the ring is over. In ms. */
const leastMs = 30_000
/** Devices that could not be read are read again after so many ms. */
const againMs = 1_000
/** A stop waits this long for what is under way, in ms. */
const graceMs = 1_000

function deviceThatHasIt(call: Call): string | null {
  return call.status === 'ringing' ? null : (call.calleePlace?.deviceId ?? null)
}

function headingOf({ callUuid, callType, caller }: Call, type: string) {
  const { userId, role, displayName } = caller
  return {
    type,
    call_uuid: callUuid,
    call_type: callType,
    caller: { user_id: userId, role, display_name: displayName ?? '' },
  }
}
