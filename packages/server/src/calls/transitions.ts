import { type Call, type CallDurations, type CallRef, isLive, type LiveCall, placeOf } from '../call/call.ts'
import type { CallCommand, Decision } from '../call/command.ts'
import { alsoToldOf, type Step } from '../call/effects.ts'
import type { InviteDecision } from '../call/invite.ts'
import { decideLinked } from '../call/linked.ts'
import type { Delivery } from '../delivery/delivery.ts'
import type { CallSteps } from '../ports/call-store.ts'
import type { MaybePromise } from '../ports/maybe.ts'
import type { Nodes, Uptime } from '../ports/nodes.ts'
import type { Sessions } from '../ports/sessions.ts'
import { StoreError } from '../ports/store-error.ts'
import type { SteadyClock } from '../time/steady-clock.ts'
import type { WithQuality } from './end-quality.ts'
import { isUnheld } from './holders.ts'
import { ownPlace } from './own-place.ts'
import type { ClientSession, Waiter } from './request.ts'

type LoseCommand = Extract<CallCommand, { type: 'lose' }>

/** A socket that was found lost. */
interface Loss {
  /** It says how the socket went. */
  readonly command: LoseCommand
  /**
   * Whether the client has another socket by now, here or at another node, which is about to take the place: nobody hears
   * that it was away [RES1, PEER1].
   */
  isBack(): boolean
}

export interface TransitionsOptions {
  readonly store: CallSteps
  readonly sessions: Pick<Sessions, 'heldHere' | 'sinkOf' | 'wasClosed' | 'awaitedMs' | 'hasHungUp'>
  readonly nodes: Nodes
  readonly delivery: Delivery
  readonly uptime: Uptime
  /** Adds to a decision how the media of the calls was that it ends [STAT1]. */
  readonly withQuality: WithQuality
  readonly clock: SteadyClock
  readonly durations: CallDurations
  /** Called with every version that this process has committed [LOG2]. */
  readonly onCommitted: (step: Step) => void
  /** Called with each step that has reached everybody. */
  readonly onTold: (step: Step) => void
  readonly onError: (error: unknown) => void
}

/** Every change of a call: it is decided on, committed, and handed on, in that order. */
export interface Transitions {
  /** A command for one call. Resolves when its steps are delivered, or cannot be delivered now. */
  run(ref: CallRef, command: CallCommand): Promise<Decision>
  /** The same, and resolves when it is committed: others do not wait for a delivery to a silent node. */
  begin(ref: CallRef, command: CallCommand): Promise<Decision>
  /** A commit by the store; where nobody knows whether it was one, its row in the outbox says so once that is clear. */
  commit<T>(work: MaybePromise<T>): Promise<T>
  /** Hands on the committed steps, after `first`. Resolves when they are delivered, or cannot be delivered now. */
  handOn<D extends Decision | InviteDecision>(decision: D, first?: Promise<void>): Promise<D>
  /**
   * Vacates the place that the session could take, where its holder gives no sign of life [PLACE4]. True where the place is
   * vacant then, false where it stays held.
   */
  losesDeadHolder(session: ClientSession, call: Call, waiter: Waiter | undefined): Promise<boolean>
}

export function createTransitions(options: TransitionsOptions): Transitions {
  const { store, sessions, nodes, delivery, uptime, withQuality, clock, durations, onCommitted, onTold, onError } =
    options
  const lossOf = createLossOf(sessions, nodes)

  async function decided(ref: CallRef, command: CallCommand): Promise<Decision> {
    const loss = command.type === 'lose' ? await lossOf(command) : undefined
    return withQuality((seen) =>
      commit(
        store.transition(ref, (call, linked) =>
          call !== undefined && loss?.isBack() === true
            ? { ok: true as const, call, steps: [] }
            : seen(
                decideLinked(call, linked, loss?.command ?? command, clock.now(), {
                  ...durations,
                  outages: uptime.outages(),
                }),
              ),
        ),
      ),
    )
  }

  async function run(ref: CallRef, command: CallCommand): Promise<Decision> {
    return handOn(await decided(ref, command))
  }

  async function begin(ref: CallRef, command: CallCommand): Promise<Decision> {
    const decision = await decided(ref, command)
    handOn(decision).catch(onError)
    return decision
  }

  async function commit<T>(work: MaybePromise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      if (error instanceof StoreError) uptime.doubt()
      throw error
    }
  }

  /** Committed first, then delivered; then losses that happened meanwhile are made up for. */
  async function handOn<D extends Decision | InviteDecision>(decision: D, first?: Promise<void>): Promise<D> {
    let areAllTold = true
    for (const step of decision.steps) {
      onCommitted(step)
      // A side that is transferred hears of the new call first. If the service could not tell it so, the end of the first call,
      // or the news that the transfer failed, waits in the outbox [XFER1].
      if (!areAllTold && alsoToldOf(step) !== undefined) continue
      const told = delivery.apply(step, first)
      const isTold = told instanceof Promise ? await told : told
      if (isTold) onTold(step)
      areAllTold &&= isTold
      if (isLive(step.call)) loseDeadHolders(step.call)
    }
    return decision
  }

  /** A holder whose socket closed while its request was being committed: nobody else will observe that close [END3]. */
  function loseDeadHolders(call: LiveCall): void {
    for (const place of [placeOf(call, 'caller'), placeOf(call, 'callee')]) {
      if (place?.state !== 'held' || !isUnheld(place, nodes, sessions)) continue
      void run(call, { type: 'lose', sessionId: place.sessionId, node: place.node }).catch(() => {
        // The store is away: the sweep finds the holder dead again.
      })
    }
  }

  return { run, begin, commit, handOn, losesDeadHolder: createLosesDeadHolder(sessions, run) }
}

function createLossOf(sessions: TransitionsOptions['sessions'], nodes: Nodes) {
  /**
   * However a loss was found, the sessions' store knows how the socket went. While it is away, no client counts as closed
   * [END5], nor as asked to come back [PEER1].
   */
  return async (command: LoseCommand): Promise<Loss> => {
    const { sessionId, node } = command
    const hasSocket = () => sessions.heldHere(sessionId) !== undefined
    // A holder that gives no sign of life still has its socket. It loses its place nevertheless.
    const hadSocket = node === nodes.self && hasSocket()
    const isBack = () => hasSocket() && !hadSocket
    const hungUp = sessions.hasHungUp(sessionId)
    try {
      const closed = await sessions.wasClosed(sessionId, node)
      const awaitedMs = command.awaitedMs ?? (await sessions.awaitedMs(sessionId, node))
      if (awaitedMs === 'back') return { command, isBack: () => true }
      return { command: { ...command, closed, hungUp, awaitedMs }, isBack }
    } catch (error) {
      if (error instanceof StoreError) return { command: { ...command, closed: false, hungUp }, isBack }
      throw error
    }
  }
}

function createLosesDeadHolder(
  sessions: TransitionsOptions['sessions'],
  run: Transitions['run'],
): Transitions['losesDeadHolder'] {
  return async (session, call, waiter) => {
    const place = ownPlace(session, call)
    if (place === null || place.deviceId !== session.deviceId) return false
    // Its holder was seen to be gone while this one asked.
    if (place.state === 'vacant') return true
    if (place.sessionId === session.sessionId) return false
    const holder = await sessions.sinkOf(place.sessionId, place.node)
    if (holder !== undefined) waiter?.waitsFor(call)
    const alive = (await holder?.probe()) ?? false
    if (!alive) await run(call, { type: 'lose', sessionId: place.sessionId, node: place.node })
    return !alive
  }
}
