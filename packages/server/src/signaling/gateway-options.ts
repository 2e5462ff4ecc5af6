import type { Tokens } from '../auth/tokens.ts'
import type { Participant } from '../call/call.ts'
import type { Arrivals } from '../calls/arrivals.ts'
import type { Config } from '../config/config.ts'
import type { IceServersOf } from '../ice/ice-servers.ts'
import type { LocalLimits } from '../limits/limits.ts'
import type { Room } from '../observability/descriptors.ts'
import type { Journal } from '../observability/journal.ts'
import type { Clock, Timers } from '../ports/clock.ts'
import type { SessionLookup, SessionPushes, SessionSockets } from '../ports/sessions.ts'
import type { Online } from '../presence/online.ts'
import type { Presence } from '../presence/presence.ts'
import type { Recorder } from '../timeline/recorder.ts'
import type { Dispatch, SignalingSession } from './dispatch.ts'

/** What the service gives to the gateway. Each part of the gateway picks what it needs. */
export interface GatewayOptions {
  readonly config: Pick<
    Config,
    | 'allowedOrigins'
    | 'maxSockets'
    | 'maxUnsentMib'
    | 'pingIntervalMs'
    | 'pongTimeoutMs'
    | 'rebalancePerSecond'
    | 'probeTimeoutMs'
    | 'resumeWindowMs'
    | 'tokenTtlS'
    | 'tokenGraceMs'
    | 'wsRate'
  >
  /** This node, as the places of its sessions name it. */
  readonly node: string
  /** A session id that no other session has [ID2]. */
  readonly newSessionId: (participant: Participant) => string
  readonly tokens: Tokens
  /** Whether the token of a session was taken back since it connected [SRV2], or its product key is disabled [KEY1]. */
  readonly isRevoked: (session: Pick<SignalingSession, 'participant' | 'issuedAt' | 'key'>) => boolean
  readonly localLimits: LocalLimits
  readonly sessions: SessionSockets & SessionLookup & Pick<SessionPushes, 'append'>
  /** Resolves when everything that clients have got until now is saved; undefined if there is nothing to wait for. */
  readonly save: () => Promise<void> | undefined
  readonly arrivals: Arrivals
  readonly dispatch: Dispatch
  readonly presence: Pick<Presence, 'end'>
  readonly online: Pick<Online, 'opened' | 'closed'>
  readonly recorder: Pick<Recorder, 'record'>
  readonly iceServers: IceServersOf
  readonly isRelayOnly: (product: string) => boolean
  /** When TURN credentials that are made now run out; null if they do not. */
  readonly turnExpiry: (now: number) => number | null
  readonly clock: Clock
  readonly timers: Timers
  readonly state: () => 'starting' | 'ready' | 'draining'
  /** Whether one more socket may be opened [MET2]. */
  readonly roomForNewcomer: () => Room
  /** How many sockets each of the other nodes has that take clients [BAL1]. */
  readonly loads: () => readonly number[]
  readonly journal: Pick<
    Journal,
    'closing' | 'turnedAway' | 'full' | 'left' | 'resumed' | 'answered' | 'request' | 'rebalancing'
  >
  readonly onError: (error: unknown) => void
}
