import { type CallPort, type CallSeed, createCall, type LiveCall } from './call.ts'
import { isUnanswered } from './call-state.ts'
import type { Listeners } from './listeners.ts'
import { type Call, type ClientEvents, ownReasons, type Peer, type RestorableCall } from './types.ts'

/** So many calls that are over are remembered: what is still said about them is not news. */
const maxFinished = 128

type Shown = { -readonly [E in 'calls' | 'restorable']: ClientEvents[E] }

/** The calls that a client knows, and which of them its application sees. */
export function createCallList(listeners: Listeners<ClientEvents>, port: Omit<CallPort, 'changed' | 'live'>) {
  const live = new Map<string, LiveCall>()
  /** Calls of somebody whom this client is inviting at this moment: glare, if the service says so [INV6]. */
  const held = new Set<LiveCall>()
  /** Calls that wait for a gesture before they go on here. */
  const parked = new Map<LiveCall, RestorableCall>()
  const finished = new Set<string>()
  const shown: Shown = { calls: [], restorable: [] }

  function refresh(): void {
    show(listeners, shown, 'restorable', [...parked.values()])
    const visible = [...live.values()].filter((it) => !held.has(it) && !parked.has(it))
    show(listeners, shown, 'calls', visible.map(callOf))
  }

  function forget(it: LiveCall, callUuid: string): void {
    live.delete(callUuid)
    held.delete(it)
    parked.delete(it)
  }

  function changed(it: LiveCall, before: string): void {
    forget(it, before)
    if (it.call.state.name === 'over') {
      const { status, reason } = it.call.state
      // The turn of a member passes, and may come again [GROUP1]. One that was lost may also have been in between.
      if (status !== 'ringing' && reason !== ownReasons.lost) remember(finished, before)
      release()
    } else live.set(it.call.callUuid, it)
    refresh()
  }

  function announce(it: LiveCall): void {
    held.delete(it)
    refresh()
    listeners.emit('incoming', it.call)
  }

  /** Calls that were held back because they might have been glare. */
  function release(): void {
    for (const it of [...held]) if (!isInviting(live, it.call.peer)) announce(it)
  }

  /** It goes on here, if it waited for that. */
  function resume(it: LiveCall): Call {
    if (parked.delete(it)) {
      refresh()
      // An application that makes the media in this turn hears the event, and the media begins anew.
      queueMicrotask(() => it.resync(true))
    }
    return it.call
  }

  return {
    shown: shown as Readonly<Shown>,
    live: live as ReadonlyMap<string, LiveCall>,
    /** Neither live nor remembered as over. */
    isNews: (callUuid: string): boolean => !live.has(callUuid) && !finished.has(callUuid),
    add(seed: CallSeed): LiveCall {
      const it = createCall(seed, { ...port, changed, live: (callUuid) => live.get(callUuid) })
      live.set(seed.callUuid, it)
      return it
    },
    /** It rings here. */
    ring: (it: LiveCall) => (isInviting(live, it.call.peer) ? held.add(it) : announce(it)),
    release,
    park(it: LiveCall, startedAt: number): void {
      parked.set(it, restorableOf(it, startedAt, resume))
      refresh()
    },
    resume,
    forget,
    refresh,
  }
}

export type CallList = ReturnType<typeof createCallList>

export function isSame(a: Pick<Peer, 'userId' | 'role'>, b: typeof a): boolean {
  return a.userId === b.userId && a.role === b.role
}

function isInviting(live: ReadonlyMap<string, LiveCall>, peer: Peer): boolean {
  return [...live.values()].some(({ call }) => isUnanswered(call) && isSame(call.peer, peer))
}

function restorableOf(it: LiveCall, startedAt: number, resume: (it: LiveCall) => Call): RestorableCall {
  const { callUuid, peer, group, callType, direction, end } = it.call
  return { callUuid, peer, group, callType, direction, startedAt, resume: () => resume(it), end }
}

const callOf = ({ call }: LiveCall): Call => call

function remember(finished: Set<string>, callUuid: string): void {
  finished.add(callUuid)
  if (finished.size > maxFinished) finished.delete(finished.values().next().value as string)
}

/** The application's objects are replaced when they change, and only then. */
function show<E extends keyof Shown>(listeners: Listeners<ClientEvents>, shown: Shown, event: E, next: Shown[E]): void {
  const before = shown[event]
  if (before.length === next.length && before.every((it, i) => it === next[i])) return
  shown[event] = next
  listeners.emit(event, next as ClientEvents[E])
}
