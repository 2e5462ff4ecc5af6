import { type Call, type CallRef, callKey, type LiveCall } from '../call/call.ts'
import type { CallCommand } from '../call/command.ts'
import { type LiveCallReads, pageSize } from '../ports/call-store.ts'
import type { Timers } from '../ports/clock.ts'
import type { Nodes } from '../ports/nodes.ts'
import type { Sessions } from '../ports/sessions.ts'
import { inBatches } from '../time/in-batches.ts'
import { isShareOf, isUnheld, patienceMs, stepInMs } from './holders.ts'

export interface RoundsOptions {
  readonly store: Pick<LiveCallReads, 'livePages'>
  readonly sessions: Pick<Sessions, 'heldHere'>
  readonly nodes: Nodes
  readonly deadlineOf: (call: Call) => number | undefined
  /** Whether this node has a timer for a call. */
  readonly isWatched: (call: Call) => boolean
  readonly run: (ref: CallRef, command: CallCommand) => Promise<unknown>
  /** More that is done with live calls at every look at them; `isAfterDeath`: the first one since a node died. */
  readonly onPage: (live: readonly LiveCall[], isAfterDeath: boolean) => void
  /** All live calls were looked at, page by page: these. */
  readonly onRound: (now: number, live: ReadonlySet<string>) => void
  readonly timers: Pick<Timers, 'monotonic'>
}

/** Looks at all live calls in turn, and does what no timer, no close and no arrival brought about. */
export interface Rounds {
  /** One page at a time; where a node died all of them, now and for as long as others may have left their share. */
  look(now: number): Promise<void>
  /** A node died: its calls are looked at sooner. */
  nodeDied(): void
  /** How long ago a node was last found dead, in ms. */
  sinceDeathMs(): number
}

export function createRounds(options: RoundsOptions): Rounds {
  const { store, nodes, run, onPage, onRound, timers } = options
  /** The round over all live calls that is under way, a page at every sweep, and what it has found. */
  let pages: AsyncIterator<readonly LiveCall[]> | undefined
  let found = new Set<string>()
  /** A node died, and nobody has made up for it yet; and when the last one did, on the monotonic clock. */
  let isUrgent = false
  let diedAt = Number.NEGATIVE_INFINITY
  /** The round under way is the first one since then. */
  let isAfterDeath = false

  const sinceDeathMs = () => timers.monotonic() - diedAt
  const owed = createOwed(options, sinceDeathMs)

  async function look(now: number): Promise<void> {
    const isFirst = isUrgent
    if (isFirst) {
      pages = undefined
      isAfterDeath = true
    }
    isUrgent = false
    try {
      do await lookAtPage(now)
      while (pages !== undefined && sinceDeathMs() < 2 * stepInMs)
    } catch (error) {
      pages = undefined
      isUrgent ||= isFirst
      throw error
    }
  }

  async function lookAtPage(now: number): Promise<void> {
    if (pages === undefined) found = new Set()
    pages ??= store.livePages()
    const { value: page, done } = await pages.next()
    if (done === true) {
      pages = undefined
      isAfterDeath = false
      onRound(now, found)
      return
    }
    for (const call of page) found.add(callKey(call))
    onPage(page, isAfterDeath)
    const owing = page.flatMap((call) => {
      const command = owed(call, now)
      return command === undefined ? [] : [[call, command] as const]
    })
    const alive = await notDead(
      nodes,
      owing.flatMap(([, command]) => (command.type === 'lose' ? [command.node] : [])),
    )
    await inBatches(owing, async ([call, command]) => {
      if (command.type !== 'lose' || !alive.has(command.node)) await run(call, command)
    })
    // A last page that is not full ends the round in the same sweep.
    if (page.length < pageSize) await lookAtPage(now)
  }

  return {
    look,
    nodeDied() {
      isUrgent = true
      diedAt = timers.monotonic()
    },
    sinceDeathMs,
  }
}

/** The other nodes of these that are not dead after all. */
async function notDead(nodes: Nodes, names: readonly string[]): Promise<ReadonlySet<string>> {
  const others = [...new Set(names)].filter((name) => name !== nodes.self)
  const areDead = await Promise.all(others.map((name) => nodes.isStillDead(name)))
  return new Set(others.filter((_, i) => !areDead[i]))
}

/** The steps that a call is owed because no timer, no close and no arrival brought them about. */
function createOwed({ sessions, nodes, deadlineOf, isWatched }: RoundsOptions, sinceDeathMs: () => number) {
  function owed(call: LiveCall, now: number): CallCommand | undefined {
    const deadline = deadlineOf(call)
    if (deadline !== undefined && deadline <= now && deadline + patienceFor(call) <= now) return { type: 'time' }
    const places = call.status === 'ringing' ? [call.callerPlace] : [call.callerPlace, call.calleePlace]
    for (const place of places) {
      const { sessionId, node } = place
      // Closes that could not be written while the store was away, and those that a dead node would have observed.
      if (place.state === 'held' && isUnheld(place, nodes, sessions) && isOwnToLose(call, node))
        return { type: 'lose', sessionId, node }
      const identity = place.state === 'vacant' ? sessions.heldHere(sessionId) : undefined
      // The others took this node for dead, and it was not.
      if (identity !== undefined)
        return { type: 'arrive', actor: { ...identity, ...place, displayName: '', node: nodes.self } }
    }
    return undefined
  }

  /** The node that handed on the call's last version has a timer for it: the others wait a little for that node. */
  function patienceFor(call: LiveCall): number {
    return nodes.others().length > 0 && !isWatched(call) ? patienceMs : 0
  }

  /** The places of a dead node are shared out; any node may take a share that is not done after a while. */
  function isOwnToLose(call: LiveCall, node: string): boolean {
    return node === nodes.self || isShareOf(call, nodes) || sinceDeathMs() > stepInMs
  }

  return owed
}
