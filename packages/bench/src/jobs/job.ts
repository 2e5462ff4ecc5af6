// What the main process asks of a generator process, and what comes back.
import type { Load } from '../proc.ts'
import type { AnySystem } from '../systems.ts'
import type { ProductKey } from '../tokens.ts'

export interface Target {
  system: AnySystem
  port: number
  pid: number
  core: number | null
  /** Further nodes of the same service. */
  morePorts?: number[]
  /** Processes on the server's core that do a part of its work, such as a proxy. */
  morePids?: number[]
}

/**
 * Which nodes the two of a pair are on, where there are several. `together`: on one, the pairs on each in turn. `apart`: on
 * two. `mixed`: every node of the caller with every node of the callee, as a load balancer spreads them.
 */
export type Spread = 'together' | 'apart' | 'mixed'

/** Candidates between pairs, both ways. */
export interface RelayJob {
  kind: 'relay'
  target: Target
  pairs: number
  firstPair: number
  spread?: Spread
}

/** Clients that connect, authenticate and stay. */
export interface ConnectJob {
  kind: 'connect'
  target: Target
  first: number
  count: number
  concurrency: number
}

/** Extended sessions that lose their sockets while the job is prepared, and are resumed when it runs. */
export interface ResumeJob extends Omit<ConnectJob, 'kind'> {
  kind: 'resume'
}

/** Whole calls, one after another on each pair. */
export interface CallJob {
  kind: 'call'
  target: Target
  calls: number
  pairs: number
  /** The number of calls that begin each second, on each pair in turn. Without it each begins when the previous one is over. */
  perSecond?: number
  firstPair?: number
  spread?: Spread
  /** For this time after the last answer, in ms, the work of the server still belongs to the calls. */
  aftermathMs?: number
}

/** Calls of people who are not connected, and are registered at a push service: how long until the push arrives there. */
export interface WakeJob {
  kind: 'wake'
  target: Target
  pairs: number
  /** The number of calls that begin each second, on each pair in turn. */
  perSecond: number
  /** The push service. */
  receiver: string
}

/** Whole calls over a slow network, one after another on each pair. */
export interface DistantCallJob {
  kind: 'distant-call'
  target: Target
  pairs: number
  firstPair: number
}

/** The steps of a call that somebody waits for. */
export const STEPS = ['inviteToRinging', 'acceptToAccepted', 'offerToAnswer', 'wholeSetup'] as const
export type Step = (typeof STEPS)[number] | 'roundTrip'
/** Milliseconds, one for each call. */
export type Times = Record<Step, number[]>

/** Requests over keep-alive HTTP connections. */
export interface TokenJob {
  kind: 'token'
  target: Target
  connections: number
}

/** Invites of one caller, one after another: how long until the callee's phone rings. */
export interface RingJob {
  kind: 'ring'
  target: Target
  pair: number
  spread: Spread
}

/** Invites of a group whose members are on all nodes in turn, one a run: how long until each of them heard it ring. */
export interface GroupJob {
  kind: 'group'
  target: Target
  size: number
}

/** The invites of a `RingJob` on one node, while people of another product invite, whose backend decides on that. */
export interface HookJob {
  kind: 'hook'
  target: Target
  pair: number
  /** Nobody else invites without it. */
  others?: { key: ProductKey; callers: number; perSecond: number }
}

/** One-row inserts over one connection, one after another. */
export interface CommitJob {
  kind: 'commit'
  url: string
}

/** Calls whose people send candidates at a steady pace. */
export interface TalkJob {
  kind: 'talk'
  target: Target
  pairs: number
}

const SOCKET_FLOODS = ['arrays', 'queue', 'messages', 'pongs', 'busy', 'reconnects'] as const
const HTTP_FLOODS = ['health', 'history', 'headers', 'upgrades'] as const
export const FLOODS = [...SOCKET_FLOODS, ...HTTP_FLOODS] as const
export type SocketFloodName = (typeof SOCKET_FLOODS)[number]
export type HttpFloodName = (typeof HTTP_FLOODS)[number]
export type FloodName = (typeof FLOODS)[number]

/** What an enemy sends while others talk. */
export interface FloodJob {
  kind: 'flood'
  target: Target
  flood: FloodName
}

export type Job =
  | RelayJob
  | ConnectJob
  | ResumeJob
  | CallJob
  | WakeJob
  | DistantCallJob
  | TokenJob
  | RingJob
  | GroupJob
  | HookJob
  | CommitJob
  | TalkJob
  | FloodJob

/** How long one run of a prepared job lasts; connecting and calling end when they are done. */
export interface Shape {
  /** Messages in flight per pair, over both directions. */
  window: number
  warmupMs: number
  measureMs: number
  /** Messages a second of all pairs together, each at its time, whether or not others have arrived; `window` is not used. */
  perSecond?: number
}

export interface Result {
  /** Messages, connections, calls or answers within the measured interval. */
  count: number
  load: Load
  /** Over the whole run, with warm-up and drain; the job has checked that both are equal. */
  sent: number
  received: number
  /** Bytes on the wire of one relayed message. */
  clientFrameBytes: number
  serverFrameBytes: number
  /** By the microsecond; only filled if one thing waits for the previous one. */
  latencies: number[]
  /** Each latency in microseconds, where they may be long. */
  samples?: number[]
  /** Of the calls over a slow network. */
  times?: Times
  /** How long whole calls took, without what the server did after the last one. */
  callSeconds?: number
  /** Connections of a flood that were refused or closed. */
  refused?: number
  /** How late messages with a time of their own left, by the microsecond. */
  lateness?: number[]
  /** Share of the measured interval in which this generator found nothing to do. */
  generatorIdle: number
}

export function plainResult(count: number, load: Load): Result {
  return {
    count,
    load,
    sent: count,
    received: count,
    clientFrameBytes: 0,
    serverFrameBytes: 0,
    latencies: [],
    generatorIdle: 1 - load.generatorShare,
  }
}

/** A job in three steps, so that clients stay connected while other systems have their turn. */
export interface Prepared {
  run(shape: Shape): Promise<Result>
  release(): Promise<void>
}

export type Command =
  | { step: 'prepare'; id: number; job: Job }
  | { step: 'run'; id: number; shape: Shape }
  | { step: 'release'; id: number }

export type Reply =
  | { step: 'prepared' }
  | { step: 'result'; result: Result }
  | { step: 'released' }
  | { step: 'failed'; message: string }
