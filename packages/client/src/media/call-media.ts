import { createListeners } from '../listeners.ts'
import type { Call, Unsubscribe } from '../types.ts'
import { createCapture, kindsOf, mediaError } from './capture.ts'
import { createNegotiation } from './negotiation.ts'
import { createRecovery } from './recovery.ts'
import { createSenders } from './senders.ts'
import { watchFlow } from './stats.ts'
import {
  type CallMedia,
  type CallMediaEvents,
  type CallMediaOptions,
  type CallMediaState,
  type MediaEnvironment,
  MediaError,
  type MediaKind,
  type MediaStats,
} from './types.ts'

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
} from './types.ts'

/** While nothing flows yet, so that `connected` is told without delay. */
const eagerLookMs = 100
/** Old servers are better than a call that waits for new ones. */
const freshServersMs = 2000
/** A callee that was answered before this page listened waits so long for the offer, then makes its own. */
const offerWaitMs = 1000

function browserEnvironment(): MediaEnvironment {
  const { RTCPeerConnection, MediaStream, navigator } = globalThis
  return { RTCPeerConnection, MediaStream, mediaDevices: navigator?.mediaDevices }
}

function defaultMedia(call: Pick<Call, 'callType'>): MediaStreamConstraints {
  return call.callType === 'video' ? { audio: true, video: true } : { audio: true }
}

function isSame(one: CallMediaState, other: CallMediaState): boolean {
  const flags = ({ muted, receiving }: CallMediaState) => [muted.audio, muted.video, receiving.audio, receiving.video]
  return one.name === other.name && one.sharing === other.sharing && `${flags(one)}` === `${flags(other)}`
}

/** The media of one call: nothing happens before `start()`. */
export function createCallMedia(call: Call, options: CallMediaOptions = {}): CallMedia {
  const { client, configuration = {}, statsIntervalMs = 1000, earlyOffer = true } = options
  const environment = options.environment ?? browserEnvironment()
  const local = new environment.MediaStream()
  const remote = new environment.MediaStream()
  const listeners = createListeners<CallMediaEvents>()
  const subscriptions: Unsubscribe[] = []
  let started = false
  let offered = false
  let reported = false
  let hadOffer = false
  let waitForOffer: ReturnType<typeof setTimeout> | undefined
  let stopWatching = () => {}

  let state: CallMediaState = {
    name: 'idle',
    local,
    remote,
    muted: { audio: false, video: false },
    sharing: false,
    receiving: { audio: false, video: false },
  }

  function change(part: Partial<CallMediaState>): void {
    const next = { ...state, ...part }
    if (state.name === 'closed' || isSame(state, next)) return
    state = next
    listeners.emit('state', state)
  }

  const isOver = () => state.name === 'closed'
  const isAnswered = () => call.state.name === 'accepted' || call.state.name === 'connected'
  const isPolite = () => call.direction === 'incoming'
  const isOnline = () => client === undefined || client.state.name === 'online'
  const failed = (error: unknown) => {
    if (!isOver())
      listeners.emit('error', error instanceof Error ? error : new MediaError('FAILED', 'Media failed', error))
  }
  const unsent = (sending: Promise<void>) => sending.catch(failed)

  function rtcConfiguration(): RTCConfiguration {
    const iceServers = (options.iceServers ?? client?.iceServers ?? []).map((server) => ({ ...server }))
    return { ...configuration, iceServers }
  }

  const senders = createSenders({
    stream: local,
    receives: call.callType === 'video' ? ['audio', 'video'] : ['audio'],
    failed,
  })
  const capture = createCapture({
    environment,
    async changed(kind, track) {
      for (const old of local.getTracks()) if (old.kind === kind && old !== track) local.removeTrack(old)
      if (track) local.addTrack(track)
      await senders.place(kind, track)
    },
    screenEnded: () => change({ sharing: false }),
    failed,
  })
  const recovery = createRecovery({
    restartAfterMs: options.restartAfterMs ?? 2500,
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
    equip: senders.equip,
    attach: senders.attach,
    settled: senders.complete,
    sendOffer: (sdp) => void unsent(call.sendOffer(sdp)),
    sendAnswer: (sdp) => void unsent(call.sendAnswer(sdp)),
    sendCandidate: (candidate) => void unsent(call.sendCandidate({ candidate: '', ...candidate })),
    failed: (error) => failed(new MediaError('NEGOTIATION_FAILED', 'A description could not be made or taken', error)),
  })

  function open(): RTCPeerConnection {
    stopWatching()
    for (const track of remote.getTracks()) remote.removeTrack(track)
    const connection = new environment.RTCPeerConnection(rtcConfiguration())
    const isCurrent = () => negotiation.connection() === connection && !isOver()
    connection.addEventListener('track', ({ track }) => {
      if (!isCurrent()) return
      for (const old of remote.getTracks()) if (old.kind === track.kind) remote.removeTrack(old)
      remote.addTrack(track)
      listeners.emit('remote', remote)
    })
    connection.addEventListener('connectionstatechange', () => {
      if (!isCurrent()) return
      const { connectionState } = connection
      if (connectionState === 'disconnected' || connectionState === 'failed') interrupted()
      recovery.follow(connectionState)
    })
    stopWatching = watchFlow(connection, {
      looked: (stats) => {
        if (isCurrent()) looked(connection, stats)
      },
      intervalMs: () => (state.name === 'flowing' ? statsIntervalMs : Math.min(eagerLookMs, statsIntervalMs)),
    })
    interrupted()
    recovery.opened()
    return connection
  }

  function interrupted(): void {
    if (state.name === 'flowing') change({ name: 'interrupted', receiving: { audio: false, video: false } })
  }

  function looked(connection: RTCPeerConnection, stats: MediaStats): void {
    const { audio, video } = stats.inbound
    const receiving = { audio: audio.packets > 0, video: video.packets > 0 }
    const arrives = receiving.audio || receiving.video
    if (state.name === 'flowing') change({ receiving })
    else if (arrives && connection.connectionState === 'connected') {
      change({ name: 'flowing', receiving })
      // The service takes it twice as once, but once is enough.
      if (!reported) unsent(call.connected())
      reported = true
    }
    if (state.name === 'flowing') listeners.emit('stats', stats)
  }

  async function restart(fresh: boolean): Promise<void> {
    if (client && !options.iceServers) {
      const old = new Promise<void>((resolve) => setTimeout(resolve, freshServersMs))
      await Promise.race([client.freshIceServers().then(() => undefined, failed), old])
    }
    if (isOver()) return
    configure()
    offered = true
    await negotiation.offer({ restart: true, fresh })
  }

  function configure(): void {
    const connection = negotiation.connection()
    if (connection && connection.signalingState !== 'closed') connection.setConfiguration(rtcConfiguration())
  }

  /** The caller offers; a callee does so only where no offer comes. */
  function proceed(): void {
    if (!started || isOver()) return
    if (call.state.name === 'over') close()
    else if (isAnswered()) {
      recovery.begin()
      if (call.direction === 'outgoing') offerOnce()
      else if (!hadOffer && waitForOffer === undefined) {
        waitForOffer = setTimeout(() => {
          if (!hadOffer) offerOnce()
        }, offerWaitMs)
      }
    } else if (earlyOffer && call.direction === 'outgoing') {
      // The service has to know the call first, and may give it another name.
      call.invited.then(
        () => {
          if (call.direction === 'outgoing' && call.state.name !== 'over') offerOnce()
        },
        () => undefined,
      )
    }
  }

  function offerOnce(): void {
    if (offered || isOver()) return
    offered = true
    void negotiation.offer({})
  }

  function resynced(restored: boolean): void {
    if (isAnswered()) {
      recovery.begin()
      if (restored && !offered) offerOnce()
      else recovery.resync()
    } else if (call.direction === 'outgoing' && offered) void negotiation.offer({ restart: true })
  }

  function listen(): void {
    subscriptions.push(
      call.on('offer', (sdp) => {
        hadOffer = true
        void negotiation.receiveOffer(sdp)
      }),
      call.on('answer', (sdp) => void negotiation.receiveAnswer(sdp)),
      call.on('candidate', ({ ...candidate }) => void negotiation.receiveCandidate(candidate)),
      call.on('state', proceed),
      call.on('resynced', ({ restored }) => resynced(restored)),
    )
    if (client) {
      subscriptions.push(
        client.on('iceServers', configure),
        client.on('state', ({ name }) => {
          if (name === 'online') recovery.online()
        }),
      )
    }
    const { mediaDevices } = environment
    const announce = () => void devices().then((list) => listeners.emit('devices', list), failed)
    mediaDevices?.addEventListener?.('devicechange', announce)
    subscriptions.push(() => mediaDevices?.removeEventListener?.('devicechange', announce))
  }

  async function devices(): Promise<readonly MediaDeviceInfo[]> {
    return (await environment.mediaDevices?.enumerateDevices()) ?? []
  }

  function close(): void {
    if (isOver()) return
    recovery.stop()
    clearTimeout(waitForOffer)
    stopWatching()
    for (const unsubscribe of subscriptions.splice(0)) unsubscribe()
    negotiation.close()
    capture.close()
    for (const stream of [local, remote]) for (const track of stream.getTracks()) stream.removeTrack(track)
    change({ name: 'closed', sharing: false, receiving: { audio: false, video: false } })
  }

  /** What the application asks for: its failure is a MediaError. */
  async function asked(what: string, work: () => Promise<void>): Promise<void> {
    if (isOver()) throw new MediaError('CLOSED', `${what}: the media of this call is closed`)
    await work().catch((error: unknown) => {
      throw mediaError(error, what)
    })
    change({ muted: capture.muted(), sharing: capture.isSharing() })
  }

  return {
    get state() {
      return state
    },
    get connection() {
      return negotiation.connection()
    },
    on: listeners.on,
    start: (media = options.media ?? defaultMedia(call)) =>
      asked('start', async () => {
        senders.want(kindsOf(media))
        if (!started) {
          started = true
          change({ name: 'connecting' })
          listen()
          proceed()
        }
        await capture.open(media)
      }),
    setMuted: (kind: MediaKind, muted) => asked('setMuted', () => capture.setMuted(kind, muted)),
    switchDevice: (kind, wish) => asked('switchDevice', () => capture.switchDevice(kind, wish)),
    shareScreen: (wish = {}) => asked('shareScreen', () => capture.shareScreen(wish)),
    stopScreen: () => asked('stopScreen', capture.stopScreen),
    devices,
    restart: () => asked('restart', () => restart(false)),
    close,
  }
}
