import type { Call, RingwireErrorShape, Unsubscribe } from '../types.ts'
import { createAsked, setOutput } from './asked.ts'
import { createCapture } from './capture.ts'
import {
  assertOpen,
  browserEnvironment,
  devicesOf,
  kindsOf,
  mediaError,
  removeTracks,
  watchDevices,
} from './devices.ts'
import { createKeptMutes, pageStorage } from './kept-mutes.ts'
import { createMediaState } from './media-state.ts'
import { createNegotiation } from './negotiation.ts'
import { createOpening } from './opening.ts'
import { createPlaybacks } from './playback.ts'
import { createReception, isConnected, passing } from './reception.ts'
import { createRecovery } from './recovery.ts'
import { createReports } from './reports.ts'
import { securityCodeOf } from './security-code.ts'
import { createSenders } from './senders.ts'
import { watchFlow } from './stats.ts'
import { createTelling } from './telling.ts'
import { type CallMedia, type CallMediaOptions, MediaError, type MediaKind } from './types.ts'

export type {
  CallMedia,
  CallMediaEvents,
  CallMediaOptions,
  CallMediaState,
  FlowStats,
  MediaEnvironment,
  MediaErrorCode,
  MediaKind,
  MediaStats,
  MediaStorage,
  Playback,
  PlaybackState,
  SlotState,
} from './types.ts'
// biome-ignore lint/performance/noBarrelFile: errors are told apart by it
export { MediaError } from './types.ts'

/** While nothing flows yet, so that `connected` goes out without delay. */
const eagerLookMs = 100
/** Old servers are better than a call that waits for new ones. */
const freshServersMs = 2000

function defaultMedia(call: Pick<Call, 'callType'>): MediaStreamConstraints {
  return call.callType === 'video' ? { audio: true, video: true } : { audio: true }
}

/** A call, or what an application puts in its place. */
type Optional = 'client' | 'claimSignals' | 'held' | 'hold' | 'resume'
type CallOfMedia = Omit<Call, Optional> & Partial<Pick<Call, Optional>>

/** The media part of each call that has one. */
const parts = new WeakMap<CallOfMedia, { readonly media: CallMedia; readonly options: CallMediaOptions }>()

function isSame(a: CallMediaOptions, b: CallMediaOptions): boolean {
  return (Object.keys({ ...a, ...b }) as (keyof CallMediaOptions)[]).every((name) => a[name] === b[name])
}

/**
 * The media of one call: nothing happens before `start()`. A call has one media part: until it is closed, the same options
 * give it again, and others throw ALREADY_EXISTS.
 */
export function createCallMedia(call: CallOfMedia, options: CallMediaOptions = {}): CallMedia {
  const part = parts.get(call)
  if (part && part.media.state.name !== 'closed') {
    if (isSame(part.options, options)) return part.media
    throw new MediaError('ALREADY_EXISTS', 'The call has a media part with other options.')
  }
  const media = createPart(call, options)
  parts.set(call, { media, options })
  return media
}

function createPart(call: CallOfMedia, options: CallMediaOptions): CallMedia {
  const { configuration = {}, statsIntervalMs = 1000, earlyOffer = true } = options
  const client = options.client ?? call.client
  const environment = options.environment ?? browserEnvironment()
  const local = new environment.MediaStream()
  const remote = new environment.MediaStream()
  const shown = createMediaState(local, remote)
  const { change } = shown
  const asked = createAsked(shown.isClosed)
  const subscriptions: Unsubscribe[] = []
  let started = false
  let stopWatching = () => {}

  const isHeld = () => call.held ?? false
  const isPolite = () => call.direction === 'incoming'
  const isOnline = () => (client?.state.name ?? 'online') === 'online'
  const failed = (error: unknown) => shown.emit('error', error instanceof Error ? error : mediaError(error, 'media'))

  /** The next restart makes good any loss on the way; only a signal that can never arrive is worth a word. */
  function signal(sending: Promise<void>): void {
    sending.catch((error: RingwireErrorShape) => {
      if (!passing.has(error.code)) failed(error)
    })
  }

  function rtcConfiguration(): RTCConfiguration {
    const iceServers = [...(options.iceServers ?? client?.iceServers ?? []), ...(configuration.iceServers ?? [])]
    // No candidate pool: in a connection that is milliseconds old Chromium may gather from it for ever and find nothing.
    const policy = client?.iceTransportPolicy
    return { ...configuration, iceServers, ...(policy && { iceTransportPolicy: policy }) }
  }

  const senders = createSenders({
    stream: local,
    receives: () => (call.callType === 'video' ? ['audio', 'video'] : ['audio']),
    failed,
  })
  const kept = createKeptMutes(options.storage === undefined ? pageStorage() : options.storage, () => call.callUuid)
  const { held: wasHeld, ...muted } = kept.load()
  const capture = createCapture({
    environment,
    muted,
    held: isHeld,
    holdMusic: options.holdMusic,
    async changed(kind, track, isScreen) {
      removeTracks(local, (old) => old.kind === kind && old !== track)
      if (track) local.addTrack(track)
      await senders.place(kind, track, isScreen)
    },
    updated,
    failed,
    process: options.process,
  })
  const tell = createTelling({
    state: shown.get,
    has: (kind) => !!capture.device(kind),
    hasMusic: !!options.holdMusic,
    send: (flags) => void call.sendMedia(flags),
  })
  const playbacks = createPlaybacks(remote, { failed, updated: () => change({ playback: playbacks.state() }) })
  const recovery = createRecovery({
    restartAfterMs: options.restartAfterMs ?? 1000,
    connectTimeoutMs: options.connectTimeoutMs ?? 6000,
    after(ms, run) {
      const timer = setTimeout(run, ms)
      return () => clearTimeout(timer)
    },
    isOnline,
    isPolite,
    restart: ({ fresh }) => void restart(fresh),
  })
  const negotiation = createNegotiation({
    open,
    isPolite,
    senders,
    settled(connection) {
      // The last picture of the old connection stays until there is a new one.
      const received = new Set(connection.getReceivers().map(({ track }) => track))
      removeTracks(remote, (track) => !received.has(track))
      senders.complete()
    },
    sendOffer: (sdp) => signal(call.sendOffer(sdp)),
    sendAnswer: (sdp) => signal(call.sendAnswer(sdp)),
    sendCandidate: (candidate) => signal(call.sendCandidate({ candidate: '', ...candidate })),
    failed: (error) => failed(new MediaError('NEGOTIATION_FAILED', 'Negotiation failed', error)),
  })

  const reports = createReports({ send: (stats) => void call.sendStats(stats), now: () => performance.now() })
  const reception = createReception(call, shown, failed)
  const opening = createOpening({
    call,
    earlyOffer,
    recovery,
    negotiation,
  })

  // Last: a part that cannot be made claims nothing.
  const releaseSignals = call.claimSignals?.()
  change(capture.state())

  function updated(): void {
    if (shown.isClosed()) return
    change(capture.state())
    kept.save({ ...shown.get().muted, held: isHeld() })
    if (call.state.name !== 'ringing') tell()
    // A page that captures may play sound.
    if (shown.get().playback === 'blocked') playbacks.retry()
  }

  /** It was put on hold, or goes on: the peer hears so first [HOLD1]. */
  function held(): void {
    updated()
    for (const track of remote.getTracks()) track.enabled = !isHeld()
    capture.refresh().catch(failed)
  }

  function open(): RTCPeerConnection {
    stopWatching()
    const connection = new environment.RTCPeerConnection(rtcConfiguration())
    const isCurrent = () => negotiation.connection() === connection && !shown.isClosed()
    connection.addEventListener('track', ({ track }) => {
      if (!isCurrent()) return
      removeTracks(remote, ({ kind }) => kind === track.kind)
      track.enabled = !isHeld()
      remote.addTrack(track)
      playbacks.retry()
      shown.emit('remote', remote)
    })
    connection.addEventListener('connectionstatechange', () => {
      if (!isCurrent()) return
      const { connectionState } = connection
      if (connectionState === 'connected') void showSecurityCode(connection, isCurrent)
      else reception.interrupted()
      recovery.follow(connectionState)
    })
    stopWatching = watchFlow(connection, {
      looked: (stats) => {
        if (!isCurrent()) return
        const { audio, video } = stats.inbound
        const sends = call.peerState.media
        recovery.looked(audio.packets + video.packets > 0, sends?.audio || sends?.video)
        if (stats.outbound.video.packets > 0) senders.flowing()
        reception.looked(stats)
        reports.looked(stats)
      },
      intervalMs: () => (isConnected(shown.get().name) ? statsIntervalMs : Math.min(eagerLookMs, statsIntervalMs)),
    })
    reception.interrupted()
    change({ securityCode: undefined })
    recovery.opened()
    return connection
  }

  async function showSecurityCode(connection: RTCPeerConnection, isCurrent: () => boolean): Promise<void> {
    const securityCode = await securityCodeOf(connection)
    if (isCurrent()) change({ securityCode })
  }

  async function restart(fresh: boolean): Promise<void> {
    if (client && !options.iceServers) {
      const old = new Promise((resolve) => setTimeout(resolve, freshServersMs))
      await Promise.race([client.freshIceServers().catch(failed), old])
    }
    if (shown.isClosed()) return
    configure()
    opening.opened()
    await negotiation.offer({ restart: true, fresh })
  }

  function configure(): void {
    const connection = negotiation.connection()
    if (connection && connection.signalingState !== 'closed') connection.setConfiguration(rtcConfiguration())
  }

  function proceed(): void {
    if (call.state.name === 'over') {
      kept.forget()
      reports.end()
      close()
    } else {
      updated()
      opening.proceed()
    }
  }

  function listen(): void {
    subscriptions.push(
      call.on('offer', (sdp) => {
        opening.opened()
        void negotiation.receiveOffer(sdp)
      }),
      call.on('answer', (sdp) => void negotiation.receiveAnswer(sdp)),
      call.on('candidate', ({ ...candidate }) => void negotiation.receiveCandidate(candidate)),
      call.on('state', proceed),
      call.on('held', held),
      call.on('resynced', ({ restored }) => opening.resynced(restored)),
    )
    if (client) {
      subscriptions.push(
        client.on('iceServers', configure),
        client.on('state', ({ name }) => {
          if (name === 'online') recovery.online()
        }),
      )
    }
    subscriptions.push(
      watchDevices(environment, () => {
        void capture.mend()
        devicesOf(environment).then((list) => shown.emit('devices', list), failed)
      }),
    )
  }

  function close(): void {
    if (shown.isClosed()) return
    recovery.stop()
    opening.close()
    stopWatching()
    for (const unsubscribe of subscriptions.splice(0)) unsubscribe()
    negotiation.close()
    capture.close()
    playbacks.close()
    releaseSignals?.()
    for (const stream of [local, remote]) removeTracks(stream, () => true)
    const receiving = { audio: false, video: false }
    change({ ...capture.state(), name: 'closed', receiving, quality: 'unknown', securityCode: undefined })
  }

  return {
    get state() {
      return shown.get()
    },
    get connection() {
      return negotiation.connection()
    },
    get securityCode() {
      return shown.get().securityCode
    },
    on: shown.on,
    start: (media = options.media ?? defaultMedia(call)) =>
      asked('start', async () => {
        senders.want(kindsOf(media))
        if (!started) {
          started = true
          change({ name: 'connecting' })
          listen()
          if (wasHeld) void call.hold?.()
          proceed()
        }
        // The call may be over already: no device is opened for it.
        assertOpen(!shown.isClosed())
        await capture.open(media)
      }),
    retryDevices: () => asked('retryDevices', capture.retry),
    setMuted: (kind: MediaKind, muted) => asked('setMuted', () => capture.setMuted(kind, muted)),
    switchDevice: (kind, wish) => asked('switchDevice', () => capture.switchDevice(kind, wish)),
    shareScreen: (wish = {}) => asked('shareScreen', () => capture.shareScreen(wish)),
    stopScreen: () => asked('stopScreen', capture.stopScreen),
    devices: () => devicesOf(environment),
    attach(element) {
      const playback = playbacks.attach(element)
      if (shown.isClosed()) playback.detach()
      return playback
    },
    resume: () => asked('resume', playbacks.resume),
    setOutput: (element, deviceId) => asked('setOutput', () => setOutput(element, deviceId)),
    restart: () => asked('restart', () => restart(false)),
    close,
  }
}
