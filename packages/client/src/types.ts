// Over 350 lines: it is all that an application sees of the client, and most of it is documentation.
import type { Capability } from '@ringwire/protocol/capabilities'
import type { EndReason } from '@ringwire/protocol/end-reasons'
import type { ErrorCode, LimitName } from '@ringwire/protocol/errors'
import type { CallStatus, IceServer } from '@ringwire/protocol/rest'

/** Ends a subscription. Calling it twice does nothing. */
export type Unsubscribe = () => void

export interface Participant {
  readonly userId: string
  readonly role: string
}

export interface Peer {
  /** Null for a group that is called, until one of its members has answered [GROUP1]. */
  readonly userId: string | null
  readonly role: string
  /** Null where this side does not know it yet: a callee that has not answered, of a call that was made without a `displayName`. */
  readonly displayName: string | null
}

/** The participant of this client. */
export interface Self extends Participant {
  readonly displayName: string
}

/** The answer of `POST /v1/call/session-token` to the application's backend, as it came. */
export interface SessionToken {
  readonly token: string
  readonly expires_at: string
  /** Needed where the client was not given a `url`. */
  readonly ws_url?: string
  readonly ice_servers?: readonly IceServer[]
  /** The product only lets media through its TURN server [PRIV1]. */
  readonly ice_transport_policy?: 'relay' | undefined
}

/** The part of `fetch`'s Response that the client reads; that of the token backend, as it came. */
export interface TokenResponse {
  readonly ok: boolean
  readonly status: number
  /** Its `Date` tells the time, where the page may read it, until the service has told its own. */
  readonly headers?: { get(name: string): string | null }
  text(): Promise<string>
}

/** Why a token is needed: none is held, the held one runs out, or the service refused it (4401). */
export type TokenReason = 'first' | 'expiring' | 'refused'

/** The SDK's own codes, beside those of the protocol. */
export const clientErrorCodes = {
  /** No reply in time. The request may still take effect. */
  TIMEOUT: 'TIMEOUT',
  /** The connection is closed for good, or was before the request was sent: it had no effect. */
  CONNECTION_CLOSED: 'CONNECTION_CLOSED',
  /** It was sent, and the session that would know what became of it is gone. */
  UNKNOWN_OUTCOME: 'UNKNOWN_OUTCOME',
  /** `getToken` failed, gave something that is not a token, or gave the token of another participant. */
  TOKEN_FAILED: 'TOKEN_FAILED',
  /** Thrown at once: a function of the SDK was called with something that it does not take; `field` says what. */
  INVALID_ARGUMENT: 'INVALID_ARGUMENT',
  /** The call is over on this side. */
  CALL_OVER: 'CALL_OVER',
  /** A REST request could not be made or was answered by something else. */
  REQUEST_FAILED: 'REQUEST_FAILED',
  /** Thrown at once: `call()` before `connect()`. */
  NOT_STARTED: 'NOT_STARTED',
  /** Thrown at once: something else negotiates the media of this call already. */
  SIGNALS_CLAIMED: 'SIGNALS_CLAIMED',
  /** The promise that a listener returned was rejected; `cause` holds the reason. */
  LISTENER_FAILED: 'LISTENER_FAILED',
} as const
export type ClientErrorCode = keyof typeof clientErrorCodes

/** A failed request: a value to look at, by its code. */
export interface RingwireErrorShape extends Error {
  readonly name: 'RingwireError'
  readonly code: ErrorCode | ClientErrorCode
  /** Whether the same request may succeed later unchanged. */
  readonly retryable: boolean
  /** How long to wait before that, where the service says so. */
  readonly retryAfterMs: number | undefined
  /** RATE_LIMITED: which limit was reached. */
  readonly limit: LimitName | undefined
  /** CALL_GLARE: the call that waits to be answered. */
  readonly callUuid: string | undefined
  /** INVALID_PAYLOAD, CALL_TYPE_INVALID, INVALID_ARGUMENT: the field that is wrong. */
  readonly field: string | undefined
  /** CALL_INVALID_STATE: the status of the call that forbids it. */
  readonly status: string | undefined
  /** TOKEN_FAILED: the HTTP status of the token backend, where it is known. */
  readonly httpStatus: number | undefined
}

/** Why the client is in its state. */
export type WhyCode =
  /** idle: `connect()` was not called. */
  | 'not_started'
  /** connecting: `connect()` was called. */
  | 'started'
  /** online: the service took the token. */
  | 'authenticated'
  /** waiting, connecting, closed: the socket was closed; `closeCode` and `reason` are the service's (1006: the network's). */
  | 'socket_closed'
  /** The same by 4409: another page has this session, or the participant has too many of them. */
  | 'replaced'
  /** waiting, connecting: nothing came any more, or no `auth.ok` in time. */
  | 'silent'
  /** waiting, connecting: there is no token that can be used; `error` says what came instead. closed: for good. */
  | 'token_failed'
  /** closed: `close()` was called. */
  | 'client_closed'
  /** closed: what answered is a service without extended mode. */
  | 'not_extended'

export interface Why {
  readonly code: WhyCode
  /** For people who look at logs; it holds no token. The code itself where that says it all. */
  readonly message: string
  /** `socket_closed` and `replaced`: the WebSocket close code, and the reason that came with it. */
  readonly closeCode?: number
  readonly reason?: string
  /** `token_failed`, and where the service said why it closed the socket. The event `error` has it, too. */
  readonly error?: RingwireErrorShape | undefined
}

/**
 * The state of the connection, and `why`. Immutable: a change is a new object, so it can be the snapshot of an external
 * store.
 */
export type ConnectionState =
  /** `connect()` was not called. */
  | { readonly name: 'idle'; readonly why: Why }
  /**
   * Asking for a token, or on the way to `auth.ok`. `attempt` counts from 1 since the last stable connection. `why`, from
   * the second on: how the previous attempt ended.
   */
  | { readonly name: 'connecting'; readonly attempt: number; readonly why: Why }
  /** `recovered`: the previous session goes on without a gap [RES1]. */
  | {
      readonly name: 'online'
      readonly sessionId: string
      readonly recovered: boolean
      readonly self: Self
      readonly why: Why
    }
  /** There is no socket, and the next attempt is at `retryAt` (ms since the epoch), or sooner when the network comes. */
  | { readonly name: 'waiting'; readonly attempt: number; readonly retryAt: number; readonly why: Why }
  /** For good. `connect()` begins a new session. */
  | { readonly name: 'closed'; readonly why: Why }

/** Reasons of the SDK's own for a call that is over. The dot keeps them apart from those of the service and of clients. */
export const ownReasons = {
  /** It is no longer there after a recovery: it ended while this client was away. The history knows why. */
  lost: 'sdk.lost',
  /** Another session of the same user has its place now: it goes on there, or has ended there. */
  elsewhere: 'sdk.elsewhere',
  /** The invite failed; `error` says why. */
  failed: 'sdk.failed',
  /** The other one's invite was first and `onGlare` is 'error'; `error.callUuid` is the call that waits. */
  glare: 'sdk.glare',
  /** The client was closed. */
  closed: 'sdk.closed',
} as const

/** The service's reasons for the end of a call, and the SDK's. A client may give another one. */
export type OverReason = EndReason | (typeof ownReasons)[keyof typeof ownReasons]

export type Direction = 'outgoing' | 'incoming'

/** Immutable, as ConnectionState is. */
export type CallState =
  | {
      readonly name: 'ringing'
      readonly direction: 'outgoing'
      /** False until the service has the invite. */
      readonly invited: boolean
      /** Whether any session of the callee was reached; undefined until the service has the invite. */
      readonly delivered: boolean | undefined
      /** A phone of the callee really rings [EXT5]. */
      readonly alerting: boolean
      /** When the call is missed, ms since the epoch by this device's clock; undefined until the service has it. */
      readonly expiresAt: number | undefined
    }
  | {
      readonly name: 'ringing'
      readonly direction: 'incoming'
      /** `accept()` was called, and the service has not replied yet. A time-out does not end it: a reply does. */
      readonly answering: boolean
      readonly expiresAt: number
    }
  /** Answered; media may start. */
  | { readonly name: 'accepted' }
  /** One side has reported that its media is connected. */
  | { readonly name: 'connected' }
  | {
      readonly name: 'over'
      /** The call's final status; undefined where it is not known (a reason of `ownReasons`). 'accepted': elsewhere. 'ringing': it goes on at other members of the group. */
      readonly status: CallStatus | undefined
      /** The service's reason (`hangup`, `declined`, `answered_elsewhere` …), one of `ownReasons`, or what a client gave. */
      readonly reason: OverReason | (string & {})
      /** Who did it; null: nobody, or not known. */
      readonly by: Participant | null
      readonly error: RingwireErrorShape | undefined
    }

export interface SessionDescription<T extends 'offer' | 'answer' = 'offer' | 'answer'> {
  readonly type: T
  readonly sdp: string
}

/** The value of RTCIceCandidate.toJSON(). */
export interface IceCandidate {
  readonly candidate: string
  readonly sdpMid?: string | null
  readonly sdpMLineIndex?: number | null
  readonly usernameFragment?: string | null
}

/** The media that a side sends at this moment [MEDIA1]. */
export interface CallMediaFlags {
  readonly audio: boolean
  readonly video: boolean
  readonly screen: boolean
}

/** How the media is at this side [STAT1]; what is not known is left out. */
export interface CallStats {
  /** Round trip, and jitter of what is received, in ms: 0 to 60,000. */
  readonly rtt_ms?: number
  readonly jitter_ms?: number
  /** Share of the packets that did not arrive, 0 to 1. */
  readonly loss?: number
  /** Bits per second that are received. */
  readonly bitrate?: number
  /** Of the received picture, since the last report. */
  readonly frames_dropped?: number
  /** Types of the candidates that are used: host, srflx, prflx, relay. */
  readonly candidate_pair?: { readonly local: string; readonly remote: string }
  /** As audio/opus. */
  readonly codec?: string
}

/** The state of the other side. Immutable, as CallState is. Instants are ms since the epoch by this device's clock. */
export interface PeerState {
  /** It lost its connection to the service, and the call ends at `endsAt` unless it comes back [PEER1]. */
  readonly away: { readonly since: number; readonly endsAt: number } | null
  /** Its last word about the media that it sends; null if there was none. */
  readonly media: CallMediaFlags | null
  /** It has put the call on hold: it sends nothing but music, and plays nothing [HOLD1]. */
  readonly held: boolean
}

export interface CallEvents {
  /** `call.state` changed. */
  state: CallState
  /**
   * From the peer. Signals that come before anybody listens to one of the three are kept and given in order, in a
   * microtask after the first of them has a listener: add all three at once.
   */
  offer: SessionDescription<'offer'>
  answer: SessionDescription<'answer'>
  candidate: IceCandidate
  /** `call.peerState` changed, or the peer's name is known now. */
  peer: PeerState
  /** `call.held` changed. */
  held: boolean
  /** A phone of the callee really rings. */
  alerting: Participant
  /** The other side reported that its media is connected. */
  status: { readonly status: 'connected'; readonly by: Participant }
  /**
   * The call goes on, but signals may have been lost with the old session, or with the peer's: media has to restart ICE (on
   * both sides an offer does it). `restored`: this client did not know the call, because its page was loaded again.
   */
  resynced: { readonly restored: boolean }
  /** The peer's invite was first. The call goes on as the one that waited, or is over if `onGlare` is 'error'. */
  glare: RingwireErrorShape
}

/**
 * One call as this client sees it. The object stays the same for the whole call. Every request gives a promise: it is
 * resolved when the service has committed it, and rejected with a RingwireError. You may ignore the promise: a rejection
 * never becomes an unhandled rejection.
 */
export interface Call {
  /** Chosen here for an outgoing call. It changes at most once, before `accepted`: where the call takes another [INV7, UUID1] or after glare. */
  readonly callUuid: string
  /** `incoming` after glare: the call of the peer was taken. */
  readonly direction: Direction
  /** Another object once the callee that answered has told its name. */
  readonly peer: Peer
  readonly peerState: PeerState
  readonly callType: string
  /** Undefined where the token's is meant and not known yet. */
  readonly contextType: string | undefined
  readonly contextId: string | undefined
  /** The group that is called [GROUP1], at the caller and at a member at whom it rings. */
  readonly group: string | undefined
  /** The caller's own data. Undefined after a reload, which does not keep it. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined
  readonly state: CallState
  /** The client whose call it is. Not enumerable, so that a call can still be printed. */
  readonly client: CallClient
  /** Outgoing: resolved when the service has the invite (or the waiting call was taken after glare). Incoming: resolved. */
  readonly invited: Promise<void>

  on<E extends keyof CallEvents>(event: E, listener: (payload: CallEvents[E]) => void): Unsubscribe

  /**
   * Answers. Without a reply in time the promise is rejected with TIMEOUT, but the client goes on asking while the call rings:
   * `state.answering` stays true until the reply comes. Calling it again in the meantime does no harm.
   */
  accept(): Promise<void>
  /** A reason matches [a-z0-9_]{1,64}. `busy` silences this session only. */
  reject(reason?: string): Promise<void>
  cancel(reason?: string): Promise<void>
  /** Ends the call in whatever state: rejects or cancels it while it rings. It is over at once on this side. */
  end(reason?: string): Promise<void>
  /** Media is connected here. */
  connected(): Promise<void>
  /** The phone really rings here. */
  alerting(): Promise<void>

  /** Whether this side has put the call on hold. */
  readonly held: boolean
  /**
   * Puts the call on hold [HOLD1]. The peer hears of it, and the media part sends and plays nothing until `resume()`. Its devices
   * stay open. The media part keeps the hold for the page that is loaded again. A call that rings cannot be put on hold.
   */
  hold(): Promise<void>
  /** Goes on with a call that `hold()` put on hold. */
  resume(): Promise<void>
  /** Tells the peer what is sent from here; the client repeats it where it may have been lost. */
  sendMedia(flags: CallMediaFlags): Promise<void>
  /** How the media is here, for the backend of the application: at most every 30 s, and at the end. The media part does it. */
  sendStats(stats: CallStats): Promise<void>
  sendOffer(sdp: SessionDescription<'offer'>): Promise<void>
  sendAnswer(sdp: SessionDescription<'answer'>): Promise<void>
  /** Null, the end of candidates, is not sent. */
  sendCandidate(candidate: IceCandidate | null): Promise<void>
  /**
   * For code that negotiates the media of the call: of two at once, each would answer the peer's offers. Throws
   * SIGNALS_CLAIMED until the earlier claim is released; the returned function releases this one. `createCallMedia` claims.
   */
  claimSignals(): Unsubscribe
}

/** Whom to call: somebody, or a group, at whose members it rings [GROUP1]. */
export type Callee = { readonly role: string } & (
  | { readonly userId: string; readonly group?: undefined }
  | { readonly group: string; readonly userId?: undefined }
)

export type CallOptions = Callee & CallWish

export interface CallWish {
  /** Default: 'audio'. Matches [a-z0-9_-]{1,32} [INV1]. */
  readonly callType?: string
  /** Default: the token's. */
  readonly contextType?: string
  readonly contextId?: string
  /** At most 1 KiB of JSON; the callee gets it. */
  readonly metadata?: Readonly<Record<string, unknown>>
  /** May only shorten the ring timeout. */
  readonly ringTimeoutMs?: number
  /** The value of `peer.displayName` for the callee until it answers, and tells its own. */
  readonly displayName?: string | undefined
  /**
   * When the callee's own invite was first: 'accept' (default) takes that call, as both want to talk; 'error' ends this
   * one with CALL_GLARE, and the other one is announced by 'incoming'.
   */
  readonly onGlare?: 'accept' | 'error'
}

/** A live call of this session that waits to be gone on with, or ended. Nothing is switched on before that. */
export interface RestorableCall {
  readonly callUuid: string
  readonly peer: Peer
  readonly group: string | undefined
  readonly callType: string
  readonly direction: Direction
  /** The invite, in ms since the epoch by this device's clock. */
  readonly startedAt: number
  /** Goes on with it: it is one of `calls` from now on. Make its media in the same turn: a new connection is then offered at once. */
  resume(): Call
  /** Hangs up. */
  end(): Promise<void>
}

export interface ClientEvents {
  /** `client.state` changed. */
  state: ConnectionState
  /** A call rings here. */
  incoming: Call
  /**
   * A live call of this session that this page did not know, because it was loaded again a moment ago: it goes on. Any
   * other one is in `restorable`.
   */
  restored: Call
  /** `client.restorable` changed. */
  restorable: readonly RestorableCall[]
  /** `client.calls` changed. */
  calls: readonly Call[]
  /** `client.iceServers` changed. */
  iceServers: readonly IceServer[]
  /**
   * Something failed that nobody asked for: there is no token that can be used, the service refused the connection,
   * storage refused. Also what rejected the promise of a listener of the client or of a call: the RingwireError as it is,
   * anything else as the `cause` of LISTENER_FAILED. The client goes on, unless its state is `closed`.
   */
  error: RingwireErrorShape
}

export interface CallClient {
  readonly state: ConnectionState
  /** Calls that are not over, oldest first. The array is replaced when it changes. */
  readonly calls: readonly Call[]
  /**
   * Live calls of this session that this page did not know, and did not just leave: its tab was opened again or duplicated,
   * or what runs here was started again. The array is replaced when it changes.
   */
  readonly restorable: readonly RestorableCall[]
  /** From the token, or newer. */
  readonly iceServers: readonly IceServer[]
  /** Came with `iceServers`. `relay`: media only goes through a TURN server, and `createCallMedia` sees to it [PRIV1]. */
  readonly iceTransportPolicy: 'relay' | undefined

  /** For useSyncExternalStore: `(listener) => client.on('state', listener)` and `() => client.state`. */
  on<E extends keyof ClientEvents>(event: E, listener: (payload: ClientEvents[E]) => void): Unsubscribe

  /**
   * Connects, and stays connected until `close()`. Does nothing while it does so already. Throws INVALID_ARGUMENT where the
   * runtime has no WebSocket.
   */
  connect(): void
  /**
   * Invites. Throws INVALID_ARGUMENT without `role` and either `userId` or `group`, or with a wrong `callType`, and NOT_STARTED before
   * `connect()`. Works offline: the invite goes out when the connection is back, unless its time runs out. Of a client
   * that is closed the call is over at once, with CONNECTION_CLOSED.
   */
  call(options: CallOptions): Call
  /** A call of `calls` by its uuid. */
  find(callUuid: string): Call | undefined
  /**
   * Something outside changed (React Native: AppState, NetInfo): connects at once where it waits, or makes sure that the
   * socket is alive. Browsers do it by themselves on online, visibilitychange and pageshow.
   */
  wake(): void
  /**
   * `iceServers`, from a new token if the held one ends within a minute: its TURN credentials last longer than itself
   * [ICE1]. Rejected with TOKEN_FAILED where there is none.
   */
  freshIceServers(): Promise<readonly IceServer[]>
  /**
   * Hangs up what this session holds (a call that rings here goes on ringing elsewhere), says goodbye with 1000 and ends
   * the session. `connect()` begins another.
   */
  close(): void
}

/** The part of WebSocket that the client uses. */
export interface WebSocketLike {
  readonly readyState: number
  onopen: ((event: never) => void) | null
  onmessage: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  send(text: string): void
  close(code?: number, reason?: string): void
}
export type WebSocketConstructor = new (url: string, protocols: string[]) => WebSocketLike

/** sessionStorage, or anything like it; may answer with promises, as React Native's AsyncStorage does. */
export interface SessionStorage {
  getItem(key: string): string | null | Promise<string | null>
  setItem(key: string, value: string): void | Promise<void>
  removeItem(key: string): void | Promise<void>
}

export interface CallClientOptions {
  /**
   * Asks the application's backend for a session token: gives it, or the backend's response as it came. Called again when
   * the held one has 60 s left or less, or a fifth of its life, or was refused; never while an earlier call is on its way, but
   * for one that takes three times `connectTimeoutMs`. The client tries a failed call again after a growing pause. An
   * error whose `retryable` is false closes the client instead.
   */
  readonly getToken: (reason: TokenReason) => Promise<SessionToken | TokenResponse>
  /** The WebSocket URL, as `wss://calls.example.com/v1/ws`. Default: the token's `ws_url`. */
  readonly url?: string
  /** Default: the global one. */
  readonly WebSocket?: WebSocketConstructor
  /**
   * The capabilities of the parts of the SDK that this client is used with; each part names its own. Default: nothing
   * beside.
   */
  readonly can?: readonly Capability[]
  /** Keeps the session over a reload of the page. */
  readonly storage?: SessionStorage
  /** Default: 'ringwire'. Two clients in one storage need two. */
  readonly storageKey?: string
  /** For the reply to a request, in ms. Default: 10 000. */
  readonly requestTimeoutMs?: number
  /** From the start of a connection to `auth.ok`, in ms. Default: 10 000. */
  readonly connectTimeoutMs?: number
  /** After this time without any message the client asks the service for one, in ms. Default: 25 000. */
  readonly heartbeatMs?: number
  /**
   * Without an answer to that, or to any other request, the socket counts as dead, in ms. A request may wait 3 s for the
   * holder of a place [PLACE4] and 5 s for a store that is away, while the socket still relays. Default: 10 000.
   */
  readonly heartbeatTimeoutMs?: number
  /** Bounds of the pause before an attempt, which is random between 0 and min(max, base · 2^attempt). Default: 500 and 15 000. */
  readonly reconnectBaseMs?: number
  readonly reconnectMaxMs?: number
}
