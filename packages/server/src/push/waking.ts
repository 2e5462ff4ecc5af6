import { type Call, type CallRef, type Participant, type RingingCall, rungBy } from '../call/call.ts'
import type { Step } from '../call/effects.ts'
import { quietSince, ringsSince, type WokenAgain } from '../call/hook.ts'
import type { Sessions } from '../ports/sessions.ts'
import { inBatches } from '../time/in-batches.ts'
import { pause } from '../time/pause.ts'
import { type AsleepOptions, createAsleep, type Sleeper, wakeDevices } from './asleep.ts'
import { type AtLast, createAtLast } from './at-last.ts'
import { createCancelling } from './cancelling.ts'
import { createRingEnds } from './ring-ends.ts'
import { beginsAgain, createRings, type Ring } from './rings.ts'
import type { Sender } from './sender.ts'
import { inGroups } from './wake-names.ts'
import { createWakePushes, type WakePushesOptions } from './wake-pushes.ts'
import type { Wakes } from './wakes.port.ts'

export interface WakingOptions extends AsleepOptions, WakePushesOptions {
  readonly sessions: Pick<Sessions, 'seen' | 'heldHere'>
  readonly wakes: Wakes
  readonly sender: Sender
  /** Whether a backend of the product wakes devices itself. */
  readonly hearsWakes: (product: string) => boolean
  /** These devices fell asleep since the call rings. */
  readonly onWokenAgain: (call: RingingCall, woken: readonly WokenAgain[]) => Promise<void>
  /** A call began to ring at `count` members of a group; `woken` of them had devices that slept. */
  readonly onMembers: (call: Call, count: number, woken: number) => void
  readonly onError: (error: unknown) => void
}

/** A session of a device lost its socket while a call rings, or does not answer pings there: the device may sleep [PUSH2]. */
export interface Doubt {
  readonly cause: 'lost' | 'unsure'
  /** Whose session it was. */
  readonly participant: Participant
  readonly deviceId: string | null
}

export interface Waking {
  /**
   * A version of a call that this node has committed, or that nobody else seems to see to; returns at once, whatever comes
   * of it.
   */
  committed(step: Step): void
  /** Looks which devices of a callee sleep by now, and wakes those that were not woken for the call yet; returns at once. */
  doubt(call: RingingCall, doubt: Doubt): void
  /**
   * A node is gone: any device of these calls may have had its session there, and what the node was sending is lost. Looks
   * after a moment, some calls at a time, and wakes as `doubt` does; returns at once.
   */
  nodeDied(calls: readonly RingingCall[]): void
  /** A call does not ring any more, whichever node saw to that: nobody is woken for it from now on. */
  isQuiet(ref: CallRef): void
  /** A call to a group rings on, maybe at fewer members: those at whom it rings no more are not woken from now on. */
  ringsOn(call: RingingCall): void
  /** A call began to ring, and its callee had no session: notes so if nobody is woken for it; returns at once [TRACE1]. */
  rangNowhere(call: RingingCall): void
  /** Waits a moment for what is under way, and gives up the rest; nobody is woken from then on. */
  stop(): Promise<void>
}

/** A page that is loaded again, or goes to another node, is back within this time, and nobody is woken for it. In ms. */
const reloadMs = 1_000

/**
 * Wakes the devices of a callee, or of the members of a group, that sleep while a call rings, each once, and tells them when
 * the ring is over [PUSH2]. Beside the call: nothing of it waits for a push.
 */
export function createWaking(options: WakingOptions): Waking {
  const { sender, known } = options
  const rings = createRings(options.onError)
  const { stopping } = rings
  const atLast = createAtLast(options.now)
  /** The looks for the nodes that are gone: one page of calls after the other. */
  let looking: Promise<unknown> = Promise.resolve()

  const isWanted = ({ product }: Call) => sender.servesAny || options.hearsWakes(product)
  /** It was answered, or ended, as far as is known here. */
  const isOver = (call: RingingCall) => (known(call) ?? call).status !== 'ringing'

  async function begin(call: RingingCall, work: (ring: Ring, signal: AbortSignal) => Promise<void>): Promise<void> {
    if (!isOver(call)) await rings.begin(call, work)
  }

  const { wake, look, nobody, noteMembers } = createLooks(options, atLast, begin, isOver)
  const ends = createRingEnds(options, rings, createCancelling({ ...options, atLast, signal: stopping }))
  return {
    committed(step) {
      const { call } = step
      if (stopping.aborted) return
      const rung = ringsSince(step)
      // Told late, it may be answered or over by now.
      const begins = call.status === 'ringing' && rung.length > 0
      if (!isWanted(call)) return begins ? noteMembers(call, rung.length, 0) : undefined
      if (begins) void begin(call, (ring, signal) => wake(call, rung, ring, signal))
      else if (quietSince(step).length > 0) ends.ended(step)
    },
    doubt(call, { cause, participant, deviceId }) {
      if (!isWanted(call) || stopping.aborted) return
      void begin(call, async (_, signal) => {
        if (cause === 'lost') await pause(reloadMs, signal)
        await look(call, [participant], deviceId, signal)
      })
    },
    nodeDied(calls) {
      const wanted = calls.filter(isWanted)
      if (wanted.length === 0 || stopping.aborted) return
      const done = Promise.all([looking, pause(reloadMs, stopping)]).then(() =>
        inBatches(wanted, (call) => begin(call, (_, signal) => look(call, rungBy(call), null, signal))),
      )
      looking = done
      rings.waitFor(done)
    },
    isQuiet: ends.isQuiet,
    ringsOn: ends.ringsOn,
    rangNowhere(call) {
      // Where devices are woken, the look for them notes it.
      if (!isWanted(call) && !stopping.aborted) void begin(call, (_, signal) => nobody(call, signal))
    },
    stop: rings.stop,
  }
}

type Begin = (call: RingingCall, work: (ring: Ring, signal: AbortSignal) => Promise<void>) => Promise<void>

/** Looks for devices that sleep, and pushes to them: some members of a group after the others. */
function createLooks(options: WakingOptions, atLast: AtLast, begin: Begin, isOver: (call: RingingCall) => boolean) {
  const { sender, onError } = options
  const asleep = createAsleep(options, atLast)
  const push = createWakePushes(options)

  /** Of a ring in turn each turn is an event of the call. */
  function noteMembers(call: RingingCall, count: number, woken: number): void {
    if (call.group !== undefined && call.group.turns === undefined) options.onMembers(call, count, woken)
  }

  /** The ring begins. Devices of some members are looked for while others are pushed to. */
  async function wake(call: RingingCall, rung: readonly Participant[], ring: Ring, signal: AbortSignal): Promise<void> {
    const pushes: Promise<void>[] = []
    const woken = new Set<Participant>()
    beginsAgain(
      ring,
      rung.map(({ userId }) => userId),
    )
    for (const some of inGroups(rung)) {
      if (signal.aborted) break
      const due = await asleep.first(call, some, signal)
      for (const { participant } of due) woken.add(participant)
      const done = push(call, due, ring, signal)
      // It is awaited last, so a rejection before that has to be handled.
      done.catch(() => {})
      pushes.push(done)
    }
    noteMembers(call, rung.length, woken.size)
    await Promise.all(pushes)
  }

  /** The ring goes on. Does not wait for the pushes that it begins. */
  async function look(
    call: RingingCall,
    rung: readonly Participant[],
    deviceId: string | null,
    signal: AbortSignal,
  ): Promise<void> {
    for (const some of inGroups(rung)) {
      if (signal.aborted || isOver(call)) return
      const due = await asleep.again(call, some, deviceId, signal)
      if (due.length === 0) continue
      options.onWokenAgain(call, wokenOf(due, sender)).catch(onError)
      void begin(call, (ring, signal) => push(call, due, ring, signal))
    }
  }

  return { wake, look, nobody: asleep.nobody, noteMembers }
}

/** What a backend that wakes devices itself hears, for each of the people whose devices these are. */
function wokenOf(due: readonly Sleeper[], sender: Sender): WokenAgain[] {
  const ofEach = Map.groupBy(due, ({ participant }) => participant)
  return Array.from(ofEach, ([participant, sleepers]) => ({ participant, devices: wakeDevices(sleepers, sender) }))
}
