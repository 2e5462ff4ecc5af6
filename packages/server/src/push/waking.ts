import type { WakeDevice } from '@ringwire/protocol/webhook-events'
import type { RingTickets } from '../auth/ring-ticket.ts'
import { deviceOfTicketSession } from '../auth/ring-ticket.ts'
import { type Call, type CallRef, callKey, participantOf, type RingingCall } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { stopsRinging } from '../call/hook.ts'
import type { Device, Devices } from '../ports/devices.ts'
import type { MaybePromise } from '../ports/maybe.ts'
import type { Sessions } from '../ports/sessions.ts'
import { inBatches } from '../time/in-batches.ts'
import { pause } from '../time/pause.ts'
import { createAtLast } from './at-last.ts'
import { createCancelling, headingOf } from './cancelling.ts'
import type { Sender, SentResult } from './sender.ts'
import type { Wakes } from './wakes.port.ts'

export interface WakingOptions {
  readonly devices: Pick<Devices, 'of'>
  readonly sessions: Pick<Sessions, 'seen' | 'heldHere'>
  readonly wakes: Wakes
  readonly sender: Sender
  readonly tickets: Pick<RingTickets, 'sign'>
  readonly now: () => number
  /** The call as this node has heard of it last. */
  readonly known: (ref: CallRef) => Call | undefined
  /** The call as it is stored. */
  readonly load: (ref: CallRef) => MaybePromise<Call | undefined>
  /** Whether a backend of the product wakes devices itself. */
  readonly hearsWakes: (product: string) => boolean
  /** A call rings, and the callee has no device that could be woken. */
  readonly onNoDevice: (call: Call, found: CalleeDevices) => void
  /** These devices fell asleep since the call rings. */
  readonly onWokenAgain: (call: RingingCall, devices: readonly WakeDevice[]) => Promise<void>
  readonly onError: (error: unknown) => void
}

/** How many devices of a callee had a session as the ring began, and how many are registered. */
export interface CalleeDevices {
  readonly connected: number
  readonly registered: number
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

/** What this node does for a call that rings. */
interface Ring {
  readonly giveUp: AbortController
  /** Looks and pushes. The cancellations wait for all of them. */
  readonly underWay: Set<Promise<void>>
  /** Devices whose push is on its way. */
  readonly sending: Set<Device>
  /** This node committed its end, and tells everybody. */
  endsHere: boolean
}

/** A page that is loaded again, or goes to another node, is back within this time, and nobody is woken for it. In ms. */
const reloadMs = 1_000

/**
 * Wakes the devices of a callee that sleep while a call rings, each once, and tells them when the ring is over [PUSH2].
 * Beside the call: nothing of it waits for a push.
 */
export function createWaking(options: WakingOptions): Waking {
  const { devices, sessions, wakes, sender, tickets, now, known, load, onError } = options
  const rings = new Map<string, Ring>()
  /** Of all calls. */
  const underWay = new Set<Promise<void>>()
  const stopping = new AbortController()
  /** The looks for the nodes that are gone: one page of calls after the other. */
  let looking: Promise<unknown> = Promise.resolve()

  const isWanted = (product: string) => sender.servesAny || options.hearsWakes(product)
  const isServed = ({ address }: Device) => sender.serves(address.platform)
  const atLast = createAtLast(now)
  const { cancel, cancelAll } = createCancelling({ ...options, atLast, signal: stopping.signal })

  /** The devices that are registered, and those with a session whose client is there as far as anybody knows. */
  async function read(call: Call): Promise<{ registered: readonly Device[]; awake: ReadonlySet<string> }> {
    const callee = participantOf(call, 'callee')
    const registered = await devices.of(callee, now())
    const seen = await sessions.seen(callee)
    const awake = new Set(seen.flatMap(({ deviceId, isUnsure }) => (deviceId && !isUnsure ? [deviceId] : [])))
    return { registered, awake }
  }

  function ringOf(call: CallRef): Ring {
    const key = callKey(call)
    const ring = rings.get(key) ?? {
      giveUp: new AbortController(),
      underWay: new Set(),
      sending: new Set(),
      endsHere: false,
    }
    rings.set(key, ring)
    return ring
  }

  /** It was answered, or ended, as far as is known here. */
  const isOver = (call: RingingCall) => (known(call) ?? call).status !== 'ringing'

  /** The ring begins. */
  async function wake(call: RingingCall, ring: Ring, signal: AbortSignal): Promise<void> {
    const { ringExpiresAt: until } = call
    const callee = participantOf(call, 'callee')
    const { registered, live } = await atLast(
      async () => ({
        registered: await devices.of(callee, now()),
        live: new Set((await sessions.seen(callee)).map(({ deviceId }) => deviceId)),
      }),
      until,
      signal,
    )
    const isNobodyThere = live.size === 0 && registered.length === 0
    if (isNobodyThere || (sender.servesAny && !registered.some(isServed)))
      options.onNoDevice(call, { connected: live.size, registered: registered.length })
    // An unsure socket counts: it is just being asked about this call, too.
    const asleep = registered.filter(({ deviceId }) => !live.has(deviceId))
    const names = asleep.map(({ deviceId }) => deviceId)
    // Without a push service nobody asks whether the ring is known.
    if (names.length === 0 && !sender.servesAny) return
    await push(call, asleep, await wakes.add(callKey(call), names, until), ring, signal)
  }

  /** The ring goes on, and devices may have fallen asleep. Does not wait for the pushes that it begins. */
  async function look(call: RingingCall, deviceId: string | null, signal: AbortSignal): Promise<void> {
    if (signal.aborted || isOver(call)) return
    const { registered, awake } = await atLast(() => read(call), call.ringExpiresAt, signal)
    const named = deviceId === null ? [] : [deviceId]
    const names = new Set([...named, ...registered.map(({ deviceId }) => deviceId)].filter((name) => !awake.has(name)))
    if (names.size === 0 || (await load(call))?.status !== 'ringing') return
    const fresh = await wakes.add(callKey(call), [...names], call.ringExpiresAt)
    const told = fresh.map((deviceId) => wakeDevice(deviceId, registered))
    if (told.length > 0) options.onWokenAgain(call, told).catch(onError)
    void begin(call, (ring, signal) => push(call, registered, fresh, ring, signal))
  }

  function wakeDevice(deviceId: string, registered: readonly Device[]): WakeDevice {
    const device = registered.find((each) => each.deviceId === deviceId)
    const platform = device?.address.platform ?? null
    return { device_id: deviceId, platform, reached: false, pushed: device !== undefined && isServed(device) }
  }

  async function push(
    call: RingingCall,
    of: readonly Device[],
    names: readonly string[],
    ring: Ring,
    signal: AbortSignal,
  ): Promise<void> {
    const due = of.filter((device) => names.includes(device.deviceId) && isServed(device))
    const unserved = names.filter((name) => !due.some(({ deviceId }) => deviceId === name))
    await Promise.all([
      wakes.settle(callKey(call), unserved),
      ...due.map((device) => pushOne(call, device, ring, signal)),
    ])
  }

  async function pushOne(call: RingingCall, device: Device, ring: Ring, signal: AbortSignal): Promise<void> {
    const { callUuid, ringExpiresAt: expiresAt } = call
    const payload = {
      ...headingOf(call, 'call.wake'),
      expires_at: new Date(expiresAt).toISOString(),
      ring_ticket: tickets.sign(call, device.participant, device.deviceId),
    }
    ring.sending.add(device)
    const result = await sender.send(device, { type: 'call.wake', callUuid, payload, expiresAt }, signal)
    if (!signal.aborted) ring.sending.delete(device)
    if (result === 'accepted') await wakes.settle(callKey(call), [device.deviceId])
    // After any other result the device may have heard of the ring, so it has to hear of its end.
    else if (hasFailed(result)) await wakes.remove(callKey(call), device.deviceId)
  }

  /** Resolves when the work is done, and never rejects. */
  async function begin(call: RingingCall, work: (ring: Ring, signal: AbortSignal) => Promise<void>): Promise<void> {
    if (isOver(call)) return
    const ring = ringOf(call)
    const done = work(ring, AbortSignal.any([ring.giveUp.signal, stopping.signal]))
      // It is too late for that.
      .catch(onError)
      .finally(() => {
        ring.underWay.delete(done)
        // `cancelSent` still needs a ring whose pushes were given up.
        if (ring.underWay.size === 0 && ring.sending.size === 0) forget(call, ring)
      })
    ring.underWay.add(done)
    waitFor(done)
    await done
  }

  function forget(ref: CallRef, ring: Ring | undefined): void {
    if (rings.get(callKey(ref)) === ring) rings.delete(callKey(ref))
  }

  function waitFor(done: Promise<void>): void {
    underWay.add(done)
    void done.finally(() => underWay.delete(done))
  }

  /** Answers what to wait for until nothing more of it is under way. */
  function end(ref: CallRef): Promise<unknown> {
    const ring = rings.get(callKey(ref))
    ring?.giveUp.abort()
    const done = Promise.all(ring?.underWay ?? [])
    void done.then(() => forget(ref, ring))
    return done
  }

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
    committed(step) {
      const { call, event } = step
      if (!isWanted(call.product) || stopping.signal.aborted) return
      if (event.type === 'invited') {
        // Told late, it may be answered or over by now.
        if (call.status === 'ringing') void begin(call, (ring, signal) => wake(call, ring, signal))
      } else if (stopsRinging(step)) {
        const ring = rings.get(callKey(call))
        if (ring !== undefined) ring.endsHere = true
        const decided = deviceThatDecided(step, sessions)
        waitFor(
          end(call)
            .then(() => (stopping.signal.aborted ? undefined : cancelAll(step, decided)))
            .catch(onError),
        )
      }
    },
    doubt(call, doubt) {
      if (!isWanted(call.product) || stopping.signal.aborted) return
      void begin(call, async (_, signal) => {
        if (doubt.cause === 'lost') await pause(reloadMs, signal)
        await look(call, doubt.deviceId, signal)
      })
    },
    nodeDied(calls) {
      const wanted = calls.filter(({ product }) => isWanted(product))
      if (wanted.length === 0 || stopping.signal.aborted) return
      const done = Promise.all([looking, pause(reloadMs, stopping.signal)]).then(() =>
        inBatches(wanted, (call) => begin(call, (_, signal) => look(call, null, signal))),
      )
      looking = done
      waitFor(done)
    },
    isQuiet(ref) {
      const ring = rings.get(callKey(ref))
      if (ring === undefined) return
      waitFor(cancelSent(ref, ring, end(ref)).catch(onError))
    },
    async stop() {
      await Promise.race([Promise.all(underWay), Bun.sleep(underWay.size > 0 ? graceMs : 0)])
      stopping.abort()
    },
  }
}

/** A stop waits this long for what is under way, in ms. */
const graceMs = 1_000

/** For sure: the device was sent nothing, or nothing that it shows. */
const failures: readonly SentResult[] = ['gone', 'refused', 'too_large', 'dropped']
const hasFailed = (result: SentResult) => failures.includes(result)

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
