/**
 * Turns at push services. Each origin has so many at once, and so many more wait: one that stands still holds up no other
 * one, and costs no memory without end.
 *
 *   const turns = createTurns({ atOnce, waiting, atOnceEach, waitingEach })
 *   await turns.take(origin, signal, () => ask(origin))  → what that answered; undefined: `signal` gave up before its turn
 */
export interface TurnLimits {
  /** Of all origins together. */
  readonly atOnce: number
  readonly waiting: number
  /** Of one origin. */
  readonly atOnceEach: number
  readonly waitingEach: number
}

export interface Turns {
  /** Whether one more of this origin is too many. */
  isFull(origin: string): boolean
  take<T>(origin: string, signal: AbortSignal, action: () => Promise<T>): Promise<T | undefined>
}

interface Lane {
  busy: number
  /** In the order in which they came. */
  readonly waiting: Set<() => void>
}

export function createTurns(limits: TurnLimits): Turns {
  /** By origin; only origins with something under way or waiting. An origin that was let in goes to the end. */
  const lanes = new Map<string, Lane>()
  let busy = 0
  let waiting = 0

  const hasRoom = (lane: Lane | undefined) => busy < limits.atOnce && (lane?.busy ?? 0) < limits.atOnceEach

  function begin(lane: Lane): void {
    lane.busy++
    busy++
  }

  function leave(origin: string, { busy, waiting }: Lane): void {
    if (busy === 0 && waiting.size === 0) lanes.delete(origin)
  }

  /** True: it has its turn. */
  function wait(origin: string, lane: Lane, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    return new Promise((resolve) => {
      const go = () => {
        signal.removeEventListener('abort', giveUp)
        resolve(true)
      }
      const giveUp = () => {
        lane.waiting.delete(go)
        waiting--
        leave(origin, lane)
        resolve(false)
      }
      lane.waiting.add(go)
      waiting++
      signal.addEventListener('abort', giveUp, { once: true })
    })
  }

  /** A turn is free: it goes round the origins that wait. */
  function next(): void {
    if (waiting === 0) return
    for (const [origin, lane] of lanes) {
      const [first] = lane.waiting
      if (first === undefined || !hasRoom(lane)) continue
      lane.waiting.delete(first)
      waiting--
      begin(lane)
      lanes.delete(origin)
      lanes.set(origin, lane)
      first()
      return
    }
  }

  return {
    isFull(origin) {
      const lane = lanes.get(origin)
      if (hasRoom(lane)) return false
      return waiting >= limits.waiting || (lane?.waiting.size ?? 0) >= limits.waitingEach
    },
    async take(origin, signal, action) {
      const lane = laneOf(lanes, origin)
      if (hasRoom(lane)) begin(lane)
      else if (!(await wait(origin, lane, signal))) return undefined
      try {
        return await action()
      } finally {
        lane.busy--
        busy--
        leave(origin, lane)
        next()
      }
    },
  }
}

function laneOf(lanes: Map<string, Lane>, origin: string): Lane {
  const lane = lanes.get(origin) ?? { busy: 0, waiting: new Set() }
  lanes.set(origin, lane)
  return lane
}
