/**
 * The file descriptors of this process. Each socket is one. When none is left, the runtime accepts nothing and says nothing, so
 * some are kept back for probes, operators, stores and outgoing requests [MET2].
 */
import { readdirSync, readFileSync, statSync } from 'node:fs'

/**
 * `free`: newcomers get in. `low`: the rest is kept back, and newcomers are refused. `short`: too little is left to refuse
 * them over a socket of their own. `out`: hardly any is left.
 */
export type Room = 'free' | 'low' | 'short' | 'out'

export interface Descriptors {
  /** How many the process may open; undefined where the system does not say. */
  readonly limit: number | undefined
  /** How many are open. */
  open(): number
  room(): Room
  /** Whether one more newcomer would get in: its own socket takes a descriptor, too. */
  admits(): boolean
  /** The same as `room`, for a newcomer who gets in where it is `free`. */
  roomForNewcomer(): Room
  /** Whether a newcomer was refused since the last call. */
  hasRefused(): boolean
}

export interface DescriptorsOptions {
  readonly limit: number | undefined
  readonly count: () => number
  /** Counts each newcomer. The last sample may be older than the newest connections. */
  readonly onNewcomer?: () => void
}

/** Of the limit an eighth is kept back, within these bounds. */
const leastReserve = 16
const mostReserve = 256
/** With fewer left than this, nothing works that needs one. */
const fewest = 5
/** A limit under this is worth a warning [CONF1]. */
export const fewDescriptors = 4_096

export const reserveOf = (limit: number) => Math.min(mostReserve, Math.max(leastReserve, Math.round(limit / 8)))

export function createDescriptors({ limit, count, onNewcomer }: DescriptorsOptions): Descriptors {
  function room(more = 0): Room {
    if (limit === undefined) return 'free'
    const left = limit - count() - more
    const reserve = reserveOf(limit)
    if (left >= reserve) return 'free'
    if (left >= reserve / 2) return 'low'
    return left >= fewest ? 'short' : 'out'
  }
  let isRefused = false
  return {
    limit,
    open: count,
    room: () => room(),
    admits: () => room(1) === 'free',
    roomForNewcomer() {
      onNewcomer?.()
      const left = room()
      isRefused ||= left !== 'free'
      return left
    },
    hasRefused() {
      const was = isRefused
      isRefused = false
      return was
    },
  }
}

/** The descriptors of this process. Outside of Linux their number is unknown, and all count as free. */
export function ownDescriptors(): Descriptors {
  const limit = descriptorLimit()
  return createDescriptors({ limit, ...(limit === undefined ? { count: () => 0 } : createCount(limit)) })
}

/** The soft limit of this process; undefined where the system does not say, or has none. */
export function descriptorLimit(): number | undefined {
  try {
    const [, limit] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return limit === undefined ? undefined : Number(limit)
  } catch {
    return undefined
  }
}

const folder = '/proc/self/fd'
const sampleMs = 1_000
/** Reading the folder takes at most this share of the time, and less while under half of the limit is open. */
const sampleShare = { far: 0.001, near: 0.01 }
/** While under half of the limit is open, a count that costs little is this old at most, in ms. */
const farMs = 500
const usualRestMs = (isFar: boolean, tookMs: number) =>
  Math.max(sampleMs, tookMs / (isFar ? sampleShare.far : sampleShare.near))

/** From version 6.2 on, Linux says how many entries the folder has. Before that it is read now and then. */
function createCount(limit: number): Omit<DescriptorsOptions, 'limit'> {
  const now = () => performance.now()
  if (statSync(folder).size === 0) return createSampledCount({ limit, now, read: () => readdirSync(folder).length })
  // A question to the kernel for each of many newcomers is a twentieth of what they cost.
  const restMs = (isFar: boolean) => (isFar ? farMs : 0)
  return createSampledCount({ limit, now, read: () => statSync(folder).size, restMs })
}

/** Between two reads, each newcomer counts as open: the count is never too low because of them. */
export function createSampledCount({
  limit,
  read,
  now,
  restMs = usualRestMs,
}: {
  readonly limit: number
  readonly read: () => number
  readonly now: () => number
  /** Milliseconds until the next read. `isFar`: under half of the limit was open; `tookMs`: as long as the last read took. */
  readonly restMs?: (isFar: boolean, tookMs: number) => number
}): Omit<DescriptorsOptions, 'limit'> {
  let open = 0
  let readAt = Number.NEGATIVE_INFINITY
  let tookMs = 0
  function count(): number {
    const at = now()
    if (at < readAt + restMs(open < limit / 2, tookMs)) return open
    try {
      open = read()
    } catch {
      // Reading takes a descriptor.
      open = limit
    }
    readAt = at
    tookMs = now() - at
    return open
  }
  return { count, onNewcomer: () => void open++ }
}
