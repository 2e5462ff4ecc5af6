import type { FaultRecord, Header } from '../recording.ts'
import { clockSlackMs, evictionShowsMs } from './findings.ts'
import { blowsTo } from './losses.ts'
import type { Reading, Stretch } from './reading.ts'

/**
 * How long news may take when nothing is wrong, in ms: to a phone that is there, and until a phone that is not there has
 * come back and heard what it lost. One node sweeps every 500 ms. Of several, a dead one is found after 5 s, and the logs
 * of sessions in calls are looked at every 5 s.
 */
const news = { oneNode: { online: 1_200, back: 4_000 }, manyNodes: { online: 10_000, back: 15_000 } } as const

/** News that nothing is in the way of: on a busy machine it waits for a core. In ms. */
export const atOnceMs = 2_000

/** Says what was due when, and so which loss explains what is missing. */
export interface Patience {
  /** When what was decided at `at` was known to the store for sure: what waited for one that was away is committed later. */
  storedBy(at: number): number
  /**
   * Until when a phone has to have stayed that surely heard what was known to be committed at `knownAt`: a little longer,
   * or, where a store or a node on its way was broken then, as long as news may take after that, in which what breaks again
   * does not count. `nodes`: those of both sides.
   */
  heardBy(knownAt: number, user: string, nodes: readonly (number | undefined)[]): number
  /**
   * Whether something that was due at `at` may be missing in a part of a session: a loss was declared to its phone, soon
   * enough to be that loss, and the phone was not there all the time before; or it was away until its log was lost, and
   * could not have heard of it.
   */
  excuses(reading: Reading, stretch: Stretch, at: number): boolean
  /**
   * Whether something that was due at `at` went with its session: the phone stayed away for longer than the resume window,
   * and could not have heard of it before [RES1]. How a call ended waits for the next session [WS4].
   */
  timedOut(reading: Reading, stretch: Stretch, at: number): boolean
  /** Whether a loss was declared to a phone from `from` on, and soon enough to be one of `at`. */
  declared(reading: Reading, from: number, at: number): boolean
  /** Whether nothing was broken all that time, nor so shortly before that something may still be settling. */
  isCalm(from: number, until: number): boolean
}

interface Time {
  readonly from: number
  readonly until: number
}

/** A node tries a store that was away again every 100 ms: so long after that it still counts as away there, in ms. */
const againMs = 120

/** A store or a node that was away is there for everybody after this, in ms. */
const settlingMs = 6_000

export function createPatience(header: Header): Patience {
  const { nodes, faults } = header
  const { online, back } = nodes === 1 ? news.oneNode : news.manyNodes

  /**
   * When everything was whole again for a user that was not whole at an instant, or soon after. Not what broke after that.
   */
  function wholeAfter(at: number, user: string): number {
    const ends = faults.flatMap((fault) => {
      const end = wholeFor(user, fault)
      return fault.from <= at + back && end >= at ? end : []
    })
    return Math.max(at, ...ends)
  }

  /**
   * Whether a phone was there for no longer than what was due at `at` may be under way, in this time, at the end of which
   * that was lost. A socket at which nothing can arrive does not count: a store or its node is broken.
   */
  function wasAway(reading: Reading, at: number, { from, until }: Time): boolean {
    if (!Number.isFinite(until)) return false
    const isBroken = faults.some((fault) => {
      const whole = wholeFor(reading.user, fault)
      return fault.from < whole && fault.from <= at + atOnceMs && whole >= at
    })
    const there = reading.online.map((time) => {
      const [first, last] = [Math.max(time.from, from), Math.min(time.until, until)]
      return last <= first ? 0 : wholeMs(first, last, brokenFor(reading.user, [time.node]))
    })
    return there.reduce((sum, ms) => sum + ms, 0) <= (isBroken ? Math.max(online, atOnceMs) : atOnceMs)
  }

  /** When a store was broken for a user, or one of these nodes. */
  function brokenFor(user: string, nodes: readonly (number | undefined)[]): readonly Time[] {
    return faults
      .filter(({ target }) => !/^node-/.test(target) || nodes.some((node) => target === `node-${node}`))
      .map((fault) => ({ from: fault.from, until: wholeFor(user, fault) }))
      .sort((a, b) => a.from - b.from)
  }

  return {
    storedBy(at) {
      const away = faults.filter(({ kind, from, until }) => {
        return /PostgreSQL/.test(kind) && from <= at + clockSlackMs && until >= at
      })
      return Math.max(at, ...away.map(({ until }) => until))
    },
    heardBy(knownAt, user, nodes) {
      const soon = knownAt + atOnceMs
      const onTheWay = brokenFor(user, nodes)
      const ends = onTheWay
        .filter(({ from, until }) => from <= soon && until >= knownAt - againMs)
        .map(({ until }) => until)
      return ends.length === 0 ? soon : wholeTimeAfter(Math.max(...ends), online, onTheWay)
    },
    excuses(reading, stretch, at) {
      const { from: begun, until } = stretch
      const whole = wholeAfter(at, reading.user)
      // If the log was lost under a socket, that socket says so.
      if (until <= whole + online || (until <= whole + back && !isThere(reading, at, whole + online))) return true
      const blows = blowsTo(reading.user, header).filter(({ from }) => begun <= from && from <= until)
      // Where the log was lost before, that counts until the phone heard of the loss.
      return blows.some(({ from }) => wasAway(reading, at, from < at ? { from, until } : { from: at, until: from }))
    },
    timedOut(reading, { until }, at) {
      const left = reading.online.findLast(({ from }) => from < until)?.until ?? until
      return until - left > header.resumeWindowMs && wasAway(reading, at, { from: at, until })
    },
    declared({ states, user }, from, at) {
      const latest = wholeAfter(at, user) + back
      return states.some((state) => state.kind !== 'recovered' && state.at >= from && state.at <= latest)
    },
    isCalm: (from, until) => faults.every((fault) => fault.until < from - settlingMs || fault.from > until),
  }
}

/** When this much time had passed in which nothing was broken. `faults`: in the order in which they began. */
function wholeTimeAfter(at: number, ms: number, faults: readonly Time[]): number {
  let due = at + ms
  let wholeFrom = at
  for (const { from, until } of faults) {
    if (from > due) break
    due += Math.max(0, until - Math.max(from, wholeFrom))
    wholeFrom = Math.max(wholeFrom, until)
  }
  return due
}

/**
 * When a fault was over for a user: a key that was deleted is missed later, and by nobody but whose it was. An endpoint that
 * fails is no user's business.
 */
function wholeFor(user: string, { kind, from, until, evicted }: FaultRecord): number {
  if (kind.startsWith('endpoint')) return from
  if (evicted === undefined) return until
  return evicted.user === user ? until + evictionShowsMs : from
}

/** Whether a phone had one and the same socket all that time. */
export function isThere({ online }: Reading, from: number, until: number): boolean {
  return online.some((time) => time.from + clockSlackMs < from && time.until > until)
}

/** In how much of a time nothing was broken. `broken`: in the order in which it began. */
function wholeMs(from: number, until: number, broken: readonly Time[]): number {
  let [whole, at] = [0, from]
  for (const each of broken) {
    if (each.from >= until) break
    whole += Math.max(0, each.from - at)
    at = Math.max(at, each.until)
  }
  return whole + Math.max(0, until - at)
}
