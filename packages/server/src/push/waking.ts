import type { WakeDevice } from '@ringwire/protocol/webhook-events'
import { deviceOfTicketSession } from '../auth/ring-ticket.ts'
import type { Call, CallRef, RingingCall } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { stopsRinging } from '../call/hook.ts'
import type { Sessions } from '../ports/sessions.ts'
import { inBatches } from '../time/in-batches.ts'
import { pause } from '../time/pause.ts'
import { type AsleepOptions, createAsleep, wakeDevices } from './asleep.ts'
import { createAtLast } from './at-last.ts'
import { type Cancelling, createCancelling } from './cancelling.ts'
import { createRings, type Ring, type Rings } from './rings.ts'
import type { Sender } from './sender.ts'
import { createWakePushes, type WakePushesOptions } from './wake-pushes.ts'
import type { Wakes } from './wakes.port.ts'

export interface WakingOptions extends AsleepOptions, WakePushesOptions {
  readonly sessions: Pick<Sessions, 'seen' | 'heldHere'>
  readonly wakes: Wakes
  readonly sender: Sender
  /** The call as this node has heard of it last. */
  readonly known: (ref: CallRef) => Call | undefined
  /** Whether a backend of the product wakes devices itself. */
  readonly hearsWakes: (product: string) => boolean
  /** These devices fell asleep since the call rings. */
  readonly onWokenAgain: (call: RingingCall, devices: readonly WakeDevice[]) => Promise<void>
  readonly onError: (error: unknown) => void
}

/** A session of a device lost its socket while a call rings, or does not answer pings there: the device may sleep [PUSH2]. */
export interface Doubt {
  readonly cause: 'lost' | 'unsure'
  readonly deviceId: string | null
}

export interface Waking {
  /**
   * A version of a call that this node has committed, or that nobody else seems to see to; returns at once, whatever comes
   * of it.
   */
  committed(step: Step): void
  /** Looks which devices of the callee sleep by now, and wakes those that were not woken for the call yet; returns at once. */
  doubt(call: RingingCall, doubt: Doubt): void
  /**
   * A node is gone: any device of these calls may have had its session there, and what the node was sending is lost. Looks
   * after a moment, some calls at a time, and wakes as `doubt` does; returns at once.
   */
  nodeDied(calls: readonly RingingCall[]): void
  /** A call does not ring any more, whichever node saw to that: nobody is woken for it from now on. */
  isQuiet(ref: CallRef): void
  /** Waits a moment for what is under way, and gives up the rest; nobody is woken from then on. */
  stop(): Promise<void>
}

/** A page that is loaded again, or goes to another node, is back within this time, and nobody is woken for it. In ms. */
const reloadMs = 1_000

/**
 * Wakes the devices of a callee that sleep while a call rings, each once, and tells them when the ring is over [PUSH2].
 * Beside the call: nothing of it waits for a push.
 */
export function createWaking(options: WakingOptions): Waking {
  const { sender, known, onError } = options
  const rings = createRings(onError)
  const { stopping } = rings
  const atLast = createAtLast(options.now)
  const asleep = createAsleep(options, atLast)
  const push = createWakePushes(options)
  /** The looks for the nodes that are gone: one page of calls after the other. */
  let looking: Promise<unknown> = Promise.resolve()

  // Members of a group are not woken [GROUP1].
  const isWanted = ({ product, group }: Call) =>
    group === undefined && (sender.servesAny || options.hearsWakes(product))
  /** It was answered, or ended, as far as is known here. */
  const isOver = (call: RingingCall) => (known(call) ?? call).status !== 'ringing'

  async function begin(call: RingingCall, work: (ring: Ring, signal: AbortSignal) => Promise<void>): Promise<void> {
    if (!isOver(call)) await rings.begin(call, work)
  }

  async function wake(call: RingingCall, ring: Ring, signal: AbortSignal): Promise<void> {
    const due = await asleep.first(call, signal)
    if (due !== undefined) await push(call, due, ring, signal)
  }

  /** Does not wait for the pushes that it begins. */
  async function look(call: RingingCall, deviceId: string | null, signal: AbortSignal): Promise<void> {
    if (signal.aborted || isOver(call)) return
    const due = await asleep.again(call, deviceId, signal)
    if (due === undefined) return
    if (due.names.length > 0) options.onWokenAgain(call, wakeDevices(due, sender)).catch(onError)
    void begin(call, (ring, signal) => push(call, due, ring, signal))
  }

  const { ended, isQuiet } = createRingEnds(options, rings, createCancelling({ ...options, atLast, signal: stopping }))
  return {
    committed(step) {
      const { call, event } = step
      if (!isWanted(call) || stopping.aborted) return
      if (event.type === 'invited') {
        // Told late, it may be answered or over by now.
        if (call.status === 'ringing') void begin(call, (ring, signal) => wake(call, ring, signal))
      } else if (stopsRinging(step)) ended(step)
    },
    doubt(call, doubt) {
      if (!isWanted(call) || stopping.aborted) return
      void begin(call, async (_, signal) => {
        if (doubt.cause === 'lost') await pause(reloadMs, signal)
        await look(call, doubt.deviceId, signal)
      })
    },
    nodeDied(calls) {
      const wanted = calls.filter(isWanted)
      if (wanted.length === 0 || stopping.aborted) return
      const done = Promise.all([looking, pause(reloadMs, stopping)]).then(() =>
        inBatches(wanted, (call) => begin(call, (_, signal) => look(call, null, signal))),
      )
      looking = done
      rings.waitFor(done)
    },
    isQuiet,
    stop: rings.stop,
  }
}

/** The end of a ring: the node wakes no device any more, and tells those that it woke. */
function createRingEnds(
  { sessions, load, onError }: Pick<WakingOptions, 'sessions' | 'load' | 'onError'>,
  rings: Rings,
  { cancel, cancelAll }: Cancelling,
) {
  /** The node that ended the ring may have read the woken devices before these were among them. */
  async function cancelSent(ref: CallRef, ring: Ring, done: Promise<unknown>): Promise<void> {
    await done
    if (ring.endsHere || ring.sending.size === 0) return
    const call = await load(ref)
    if (call === undefined || call.status === 'ringing') return
    const names = new Set([...ring.sending].map(({ deviceId }) => deviceId))
    await cancel(call, ({ deviceId }) => names.has(deviceId) && deviceId !== deviceThatHasIt(call))
  }

  return {
    /** This node committed the step. */
    ended(step: Step): void {
      const ring = rings.find(step.call)
      if (ring !== undefined) ring.endsHere = true
      const decided = deviceThatDecided(step, sessions)
      const cancelled = rings.end(step.call).then(() => (rings.stopping.aborted ? undefined : cancelAll(step, decided)))
      rings.waitFor(cancelled.catch(onError))
    },
    /** Any node ended it. */
    isQuiet(ref: CallRef): void {
      const ring = rings.find(ref)
      if (ring !== undefined) rings.waitFor(cancelSent(ref, ring, rings.end(ref)).catch(onError))
    },
  }
}

/** The device that answered or rejected; null: none did. Undefined where it has to be looked up. */
function deviceThatDecided({ call, event }: Step, sessions: Pick<Sessions, 'heldHere'>): string | null | undefined {
  if (event.type === 'accepted') return deviceThatHasIt(call)
  if (event.type !== 'rejected' || event.by === null) return null
  const { sessionId } = event.by
  return deviceOfTicketSession(sessionId) ?? sessions.heldHere(sessionId)?.deviceId
}

function deviceThatHasIt(call: Call): string | null {
  return call.status === 'ringing' ? null : (call.calleePlace?.deviceId ?? null)
}
