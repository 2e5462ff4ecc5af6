import type { CallClient, Unsubscribe } from '../types.ts'

export type MediaKind = 'audio' | 'video'

/** Why media could not be had. */
export const mediaErrorCodes = {
  /** The user, or the page's policy, said no. */
  NOT_ALLOWED: 'NOT_ALLOWED',
  /** The device does not exist. */
  NOT_FOUND: 'NOT_FOUND',
  /** Another program has the device. */
  IN_USE: 'IN_USE',
  /** This environment cannot do it: no getUserMedia, no getDisplayMedia, a page that is not secure. */
  NOT_SUPPORTED: 'NOT_SUPPORTED',
  /** The device ended and no other of its kind could be opened. */
  DEVICE_LOST: 'DEVICE_LOST',
  /** `process` gave no track within 15 s. */
  PROCESS_TIMEOUT: 'PROCESS_TIMEOUT',
  /** The call has its media part already, made with other options: one call has one. */
  ALREADY_EXISTS: 'ALREADY_EXISTS',
  /** A description could not be made or taken; media starts anew by itself. */
  NEGOTIATION_FAILED: 'NEGOTIATION_FAILED',
  /** `close()` was called, or the call is over. */
  CLOSED: 'CLOSED',
  /** Anything else; `cause` holds it. */
  FAILED: 'FAILED',
} as const
export type MediaErrorCode = keyof typeof mediaErrorCodes

/** Every promise of CallMedia that fails is rejected with one of these. */
export class MediaError extends Error {
  override readonly name = 'MediaError'
  readonly code: MediaErrorCode

  constructor(code: MediaErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}

/**
 * The state of a microphone, a camera or a screen. `empty`: there is none, or the camera is off. `opening`: the SDK is
 * opening it; the former track is sent until it is open. `live`: it is there; `own` if the SDK opened it, and not the
 * application; `facingMode` is the side of a phone that the camera is on, where it tells, also if `process` made what is
 * sent. `lost`: it could not be opened, or it ended; nothing of the kind is sent.
 */
export type SlotState =
  | { readonly name: 'empty' }
  | { readonly name: 'opening' }
  | { readonly name: 'live'; readonly own: boolean; readonly facingMode?: string | undefined }
  | { readonly name: 'lost'; readonly code: MediaErrorCode }

/** `blocked`: the browser plays nothing with sound until the user has done something. `playing`: anything else. */
export type PlaybackState = 'playing' | 'blocked'

/** An element that plays what the peer sends. */
export interface Playback {
  readonly state: PlaybackState
  /** Plays, in the click of a button. Any click or key in the page does it as well while it is blocked. */
  resume(): Promise<void>
  /** Takes the stream out of the element. */
  detach(): void
}

/** Immutable: a change is a new object, so it can be the snapshot of an external store. */
export interface CallMediaState {
  /**
   * `idle`: not started. `connecting`: no media has come yet. `flowing`: packets arrive. `silent`: connected, and none has
   * come for 2 s, or ever. `interrupted`: the connection is lost; it is being restarted. `closed`: for good.
   */
  readonly name: 'idle' | 'connecting' | 'flowing' | 'silent' | 'interrupted' | 'closed'
  /** The sent stream; the same object for the whole call. Empty until the devices are open. */
  readonly local: MediaStream
  /** The received stream; the same object for the whole call, also when the peer's page is loaded again. */
  readonly remote: MediaStream
  readonly muted: Readonly<Record<MediaKind, boolean>>
  /** Why a requested kind is not sent. Empty where all are, and until it is known. */
  readonly errors: Readonly<Partial<Record<MediaKind, MediaErrorCode>>>
  /** The screen is sent in place of the camera. */
  readonly sharing: boolean
  readonly slots: Readonly<Record<MediaKind | 'screen', SlotState>>
  /** Of all elements of `attach`: `blocked` if one of them is. */
  readonly playback: PlaybackState
  /** This side has put the call on hold with `call.hold()`: nothing is sent but `holdMusic`, and nothing is played. */
  readonly held: boolean
  /** Whether packets of the kind arrived in the last interval: false for a camera that the peer switched off. */
  readonly receiving: Readonly<Record<MediaKind, boolean>>
  /**
   * The way of the media, of both directions: `poor` where more than 8 % of a kind are lost or a round trip takes more than
   * 500 ms, and `good` again below 4 % and 350 ms, all smoothed over 4 s. `unknown` for the first 2 s, and while nothing flows.
   */
  readonly quality: 'good' | 'poor' | 'unknown'
  /** See `CallMedia.securityCode`. */
  readonly securityCode: string | undefined
}

export interface FlowStats {
  readonly bitsPerSecond: number
  /** In the interval. */
  readonly packets: number
  /** 0 to 1, of the packets of the interval; undefined where nothing is known. Outbound: as the peer reports it. */
  readonly loss: number | undefined
}

export interface MediaStats {
  readonly intervalMs: number
  readonly roundTripMs: number | undefined
  /** Whether a TURN server carries the media. */
  readonly path: 'direct' | 'relay' | undefined
  readonly inbound: Readonly<Record<MediaKind, FlowStats>>
  readonly outbound: Readonly<Record<MediaKind, FlowStats>>
  /** Loudness of the sound from the peer, 0 to 1. */
  readonly audioLevel: number | undefined
  /** Of what is received; of several streams the worse. */
  readonly jitterMs: number | undefined
  /** Of the picture that is received, in the interval. */
  readonly framesDropped: number | undefined
  /** The types of the candidates that are used: host, srflx, prflx, relay. */
  readonly candidateTypes: { readonly local: string; readonly remote: string } | undefined
  /** Of what is received, of the sound where there is any: as audio/opus. */
  readonly codec: string | undefined
  /** The size and rate of the received picture. */
  readonly picture: { readonly width: number; readonly height: number; readonly framesPerSecond: number } | undefined
}

export interface CallMediaEvents {
  /** `media.state` changed. */
  state: CallMediaState
  /** The remote stream has other tracks than before. */
  remote: MediaStream
  /** `media.state.quality` became one of the two. */
  quality: 'good' | 'poor'
  /** `media.securityCode` changed. Undefined: the connection that it belonged to was replaced or closed. */
  securityCode: string | undefined
  /** Once every `statsIntervalMs`, while media flows or is silent. */
  stats: MediaStats
  /** The devices of this machine changed, or which of them the page may use. */
  devices: readonly MediaDeviceInfo[]
  /** Something failed that nobody asked for; media goes on as far as it can. */
  error: Error
}

export interface CallMediaOptions {
  /** For ICE servers, fresh ones before a restart, and to know when the connection is back. Default: the call's own client. */
  readonly client?: Pick<CallClient, 'iceServers' | 'freshIceServers' | 'state' | 'on'> &
    Partial<Pick<CallClient, 'iceTransportPolicy'>>
  /**
   * What to send: constraints for getUserMedia, or a stream of the application's own, whose tracks stay the
   * application's to stop. Default: audio, and video where the call's type is 'video'. `{}` sends nothing.
   */
  readonly media?: MediaStream | MediaStreamConstraints
  /** Instead of the client's. */
  readonly iceServers?: readonly RTCIceServer[]
  /**
   * Makes the track that is sent instead of that of a microphone or camera that was opened here: with a blurred
   * background, without noise. Both are stopped here. If it fails, or takes longer than 15 s, the kind is not sent
   * (`FAILED`, `PROCESS_TIMEOUT`).
   */
  readonly process?: (track: MediaStreamTrack) => MediaStreamTrack | Promise<MediaStreamTrack>
  /**
   * The sound that the peer hears while this side has the call on hold; else it hears nothing. The track stays the
   * application's: it goes on when nobody listens, and is stopped by nobody here.
   */
  readonly holdMusic?: MediaStreamTrack
  /**
   * Anything else for the RTCPeerConnection, as `iceTransportPolicy`; that of the client goes before it. Its `iceServers` are
   * added to those of the client.
   */
  readonly configuration?: RTCConfiguration
  /**
   * The caller's offer goes out while it still rings and waits at the service for the accept, which saves a round trip.
   * Default: true.
   */
  readonly earlyOffer?: boolean
  /**
   * Keeps what is muted, and a hold, for the page that is loaded again, by the call's uuid. Default: sessionStorage, where there is one.
   * `null` keeps nothing.
   */
  readonly storage?: MediaStorage | null
  /** Default: 1000. */
  readonly statsIntervalMs?: number
  /** How long a connection may be interrupted before ICE is restarted. Default: 1000. */
  readonly restartAfterMs?: number
  /** How long a connection may take before ICE is restarted. Default: 6000. */
  readonly connectTimeoutMs?: number
  /** Default: the browser's own. */
  readonly environment?: MediaEnvironment
}

/** The part of Web Storage that media uses. It answers at once: what is muted has to be known before a device is open. */
export interface MediaStorage {
  getItem(key: string): string | null
  setItem(key: string, value: string): void
  removeItem(key: string): void
}

/** The parts of the browser, so that another implementation can stand in. */
export interface MediaEnvironment {
  readonly RTCPeerConnection: new (configuration?: RTCConfiguration) => RTCPeerConnection
  readonly MediaStream: new (tracks?: MediaStreamTrack[]) => MediaStream
  readonly mediaDevices: MediaDevices | undefined
  /** Without it, only `retryDevices()` asks again for devices that were refused. */
  readonly permissions?: Pick<Permissions, 'query'> | undefined
}

/** The media of one call. */
export interface CallMedia {
  readonly state: CallMediaState
  /** The connection of now; a peer that begins anew gets another one. Undefined before the first. */
  readonly connection: RTCPeerConnection | undefined
  /**
   * Twelve groups of five digits, as "01234 …". Both people see the same code, unless somebody sits between them and reads
   * their media [SAS1]. Undefined until the two sides are connected, and in a page that is not secure (no `crypto.subtle`).
   * It outlasts an ICE restart. A new connection, as after the peer's page was loaded again, has another code.
   */
  readonly securityCode: string | undefined
  on<E extends keyof CallMediaEvents>(event: E, listener: (payload: CallMediaEvents[E]) => void): Unsubscribe

  /**
   * Opens the devices and connects as soon as the call allows it. Resolves when the devices are open. Rejects if one of
   * them cannot be opened (`state.errors`): the other one is sent, and media of the peer is still received. Call it again
   * for other devices.
   */
  start(media?: MediaStream | MediaStreamConstraints): Promise<void>
  /**
   * Asks again for what could not be had, in the click of a button: the browser may prompt. By itself that is done when the
   * user allows it, or when a device appears.
   */
  retryDevices(): Promise<void>
  /** Audio: silence is sent. Video: nothing is sent. */
  setMuted(kind: MediaKind, muted: boolean): Promise<void>
  /** Sends another device: its id, constraints, or a track of the application's own. Nothing is negotiated anew. */
  switchDevice(kind: MediaKind, wish: string | MediaTrackConstraints | MediaStreamTrack): Promise<void>
  /** Sends the screen in place of the camera. A track of the application's own may stand for the screen. */
  shareScreen(wish?: DisplayMediaStreamOptions | MediaStreamTrack): Promise<void>
  stopScreen(): Promise<void>
  /** The devices of this machine; their labels are empty until one was opened. */
  devices(): Promise<readonly MediaDeviceInfo[]>
  /**
   * The element plays what the peer sends, from now until `detach()` or the end of the call. If the browser refuses to
   * play before the user has done something, `state.playback` is `blocked`.
   */
  attach(element: HTMLMediaElement): Playback
  /** Plays what is blocked, in the click of a button. */
  resume(): Promise<void>
  /** Chooses the speaker of an element (setSinkId). NOT_SUPPORTED where the browser has no choice of outputs. */
  setOutput(element: HTMLMediaElement, deviceId: string): Promise<void>
  /** Restarts ICE at once, with fresh ICE servers. */
  restart(): Promise<void>
  /** Stops what was opened here. Done by itself when the call is over. */
  close(): void
}
