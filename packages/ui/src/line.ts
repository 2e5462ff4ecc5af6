import {
  type CallMedia,
  type CallMediaOptions,
  type CallMediaState,
  createCallMedia,
  type MediaError,
} from '@ringwire/client/media'
import type { Call, CallClient, CallOptions, CallState, Unsubscribe } from '@ringwire/client/types'
import { isCameraOn } from './camera.ts'
import { callWish, cameraWish, type DeviceChoice, sendsPicture } from './wish.ts'

/**
 * incoming: it rings here. calling: it rings at the other side. connecting: answered, no media yet. live: media has come.
 * over: `ended` says how, until it is dismissed or another call begins.
 */
export type Phase = 'idle' | 'incoming' | 'calling' | 'connecting' | 'live' | 'over'

export type OverState = Extract<CallState, { name: 'over' }>

export interface EndedCall {
  readonly call: Call
  readonly state: OverState
  /** When it went live on this page, in ms since the epoch. Undefined for a call that never did. */
  readonly since: number | undefined
  /** In ms since the epoch. */
  readonly endedAt: number
}

/** Immutable: a change is a new object. */
export interface LineState {
  readonly phase: Phase
  readonly call: Call | undefined
  readonly media: CallMedia | undefined
  /** When the two sides were first connected on this page, in ms since the epoch. */
  readonly since: number | undefined
  readonly ended: EndedCall | undefined
  readonly devices: DeviceChoice
}

export interface LineOptions {
  /**
   * For each call's media, with the devices that the user chose. No camera is opened for an audio call.
   */
  readonly media?: CallMediaOptions | undefined
  /** What a call that comes during another gets: rejected as busy, or left to ring until this one is over. */
  readonly busy?: 'reject' | 'hold' | undefined
}

const noCall = { call: undefined, media: undefined, since: undefined } as const
const idle = { ...noCall, phase: 'idle', ended: undefined } as const

function phaseOf({ state }: Call, since: number | undefined): Phase {
  if (state.name !== 'ringing') return since === undefined ? 'connecting' : 'live'
  if (state.direction === 'outgoing') return 'calling'
  return state.answering ? 'connecting' : 'incoming'
}

function rings({ state }: Call): boolean {
  return state.name === 'ringing' && state.direction === 'incoming' && !state.answering
}

const isAway = (code: string | undefined) => code === 'NOT_FOUND' || code === 'IN_USE'

/** Of the devices that the user chose those that are unplugged, or in use by another program. */
export function lostOf({ audioinput, videoinput }: DeviceChoice, { audio, video }: CallMediaState['errors']) {
  return { audio: !!audioinput && isAway(audio), video: !!videoinput && isAway(video) }
}

/** The application does not look at the promise of a device: `errors` and `slots` of the media say the same. */
const ignore = () => undefined

/** The one call that a page is in, with its media. It lives outside of components, so they may come and go. */
export function createLine(client: CallClient) {
  let options: LineOptions = {}
  let state: LineState = { ...idle, devices: {} }
  const listeners = new Set<() => void>()
  /** Providers that are mounted now, and how the line stops listening for them. */
  let attached = 0
  let ends: Unsubscribe[] = []
  /** What the user chose last of each kind; an earlier one that opens late is not remembered. */
  const latest: { -readonly [Kind in keyof DeviceChoice]: DeviceChoice[Kind] } = {}

  function change(part: Partial<LineState>): void {
    const next = { ...state, ...part }
    state = next.call ? { ...next, phase: phaseOf(next.call, next.since) } : next
    for (const listener of [...listeners]) listener()
  }

  function hold(call: Call): void {
    call.on('state', (now) => {
      if (state.call !== call) return
      if (now.name !== 'over') {
        change({})
        // Accept was refused: the dialog is back, and nothing may be open behind it.
        if (state.phase === 'incoming') closeMedia()
        return
      }
      const { since } = state
      change({ ...noCall, phase: 'over', ended: { call, state: now, since, endedAt: Date.now() } })
      const next = client.calls.find(rings)
      if (next) ring(next)
    })
    change({ ...idle, call })
  }

  function closeMedia(): void {
    state.media?.close()
    change({ media: undefined })
  }

  function ring(call: Call): void {
    hold(call)
    void call.alerting()
  }

  function came(call: Call): void {
    if (!state.call) ring(call)
    else if (options.busy !== 'hold') void call.reject('busy')
  }

  /** Media closes itself when the call is over. `answer`: whether the user who accepts wants the camera. */
  function join(call: Call, answer?: boolean): void {
    const media = createCallMedia(call, options.media)
    media.on('state', ({ name }) => {
      // A peer without devices sends nothing. The call is live as soon as both sides are connected.
      const isConnected = name === 'flowing' || name === 'silent'
      if (state.media === media && isConnected && state.since === undefined) change({ since: Date.now() })
    })
    change({ media })
    const isVideo = call.callType === 'video'
    if (isVideo && answer !== undefined) void media.setMuted('video', !answer)
    // A camera that was off before the page was loaded again stays closed.
    void open(media, isVideo && !media.state.muted.video)
  }

  /** A call goes on without devices: who has none can still see and hear, and `errors` of the media says why. */
  async function open(media: CallMedia, withCamera: boolean): Promise<void> {
    const wish = callWish(options.media?.media, state.devices, withCamera)
    await media.start(wish).catch(ignore)
    await openOthers(media, wish)
  }

  /** A device that the user chose may be unplugged or in use by now. Any other of its kind is better than none. */
  async function openOthers(media: CallMedia, wish: MediaStream | MediaStreamConstraints): Promise<void> {
    const { audioinput, videoinput, ...others } = state.devices
    const lost = lostOf(state.devices, media.state.errors)
    if (!lost.audio && !lost.video) return
    const devices = {
      ...others,
      ...(audioinput && !lost.audio && { audioinput }),
      ...(videoinput && !lost.video && { videoinput }),
    }
    change({ devices })
    const again = callWish(options.media?.media, devices, sendsPicture(wish))
    if ('getTracks' in again) return
    await media
      .start({ ...(lost.audio && { audio: again.audio }), ...(lost.video && { video: again.video }) })
      .catch(ignore)
  }

  function remember(kind: MediaDeviceKind, id: string | undefined): void {
    const { [kind]: _, ...others } = state.devices
    change({ devices: id ? { ...others, [kind]: id } : others })
  }

  /** The camera after this one in the list of the machine; nothing where there is only one. */
  async function openNextCamera(media: CallMedia, cameras: readonly string[], now: string | undefined): Promise<void> {
    // Where nothing tells which one is open, it is most likely the first.
    const next = cameras[(Math.max(0, cameras.indexOf(now ?? '')) + 1) % cameras.length]
    if (next === undefined || cameras.length < 2) return
    await media.switchDevice('video', next)
    remember('videoinput', next)
  }

  function begin(wish: CallOptions): Call {
    const call = client.call(wish)
    hold(call)
    join(call)
    return call
  }

  /** What is there already: the page may have connected before the components came. */
  function adopt(): void {
    if (state.call) return
    const found = client.calls.find((call) => call.state.name !== 'over')
    if (!found) return
    if (rings(found)) ring(found)
    else restored(found)
  }

  function restored(call: Call): void {
    if (state.call) return
    hold(call)
    join(call)
  }

  return {
    get: (): LineState => state,
    subscribe(listener: () => void): Unsubscribe {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    configure(next: LineOptions): void {
      options = next
    },
    /** From now on it takes the calls that come, once each, however many providers attach it. */
    attach(): Unsubscribe {
      if (attached++ === 0) ends = [client.on('incoming', came), client.on('restored', restored)]
      adopt()
      return () => {
        if (--attached === 0) for (const end of ends.splice(0)) end()
      }
    },
    /** For this call and those that come. */
    chooseDevice(kind: MediaDeviceKind, id: string): void {
      latest[kind] = id
      const { media } = state
      if (!media || kind === 'audiooutput') {
        remember(kind, id)
        return
      }
      const of = kind === 'audioinput' ? 'audio' : 'video'
      media.switchDevice(of, id).then(
        () => {
          if (latest[kind] === id) remember(kind, id)
        },
        // The earlier device goes on, and the menu shows it again.
        () => change({}),
      )
    },
    /** Calls, unless there is a call already. */
    place(wish: CallOptions): Call {
      if (state.call) return state.call
      return begin(wish)
    },
    /** Calls the person of the last call. */
    callAgain(): void {
      if (state.call || !state.ended) return
      const { peer, callType, contextType, contextId, metadata } = state.ended.call
      const { userId, role, displayName } = peer
      const context = {
        ...(contextType && { contextType }),
        ...(contextId && { contextId }),
        ...(metadata && { metadata }),
      }
      begin({ userId, role, callType, ...(displayName && { displayName }), ...context })
    },
    accept({ video }: { video?: boolean } = {}): void {
      const { call, phase } = state
      if (!call || phase !== 'incoming') return
      join(call, video !== false)
      void call.accept()
    },
    decline: (reason?: string): void => {
      if (state.phase === 'incoming') void state.call?.reject(reason)
    },
    hangUp: (): void => void state.call?.end(),
    /** Takes the end of the last call away. */
    dismiss(): void {
      if (state.phase === 'over') change(idle)
    },
    /** A call of before that is not yet on this page. */
    resume: restored,
    async toggleMicrophone(): Promise<void> {
      const { media } = state
      await media?.setMuted('audio', !media.state.muted.audio)
    },
    /** Also cancels a camera that is being opened. Of a call that never had one it opens the camera. */
    async toggleCamera(): Promise<void> {
      const { media } = state
      if (!media) return
      const on = !isCameraOn(media.state)
      const unmuted = media.setMuted('video', !on)
      // Known at once: a camera that the call had before is being opened now.
      if (on && !isCameraOn(media.state)) {
        await media.switchDevice('video', cameraWish(options.media?.media, state.devices))
      }
      await unmuted
    },
    /** The camera at the other side of a phone, or the next one of a machine that does not tell the sides. */
    async flipCamera(): Promise<void> {
      const { media } = state
      const track = media?.state.local.getVideoTracks()[0]
      if (!media || !track) return
      const cameras = (await media.devices())
        .filter(({ kind }) => kind === 'videoinput')
        .map(({ deviceId }) => deviceId)
      // A track that the application made of the camera's does not tell its device.
      const idOf = (sent: MediaStreamTrack | undefined) =>
        cameras.find((id) => id !== '' && id === sent?.getSettings().deviceId)
      const now = idOf(track) ?? state.devices.videoinput
      const { video } = media.state.slots
      const other = video.name === 'live' && video.facingMode === 'environment' ? 'user' : 'environment'
      try {
        // Size and all else stay as they are.
        await media.switchDevice('video', { facingMode: { exact: other } })
        remember('videoinput', idOf(media.state.local.getVideoTracks()[0]))
      } catch (error) {
        if ((error as MediaError).code !== 'NOT_FOUND') throw error
        await openNextCamera(media, cameras, now)
      }
    },
    /** A second press while the browser asks what to share does nothing. */
    async toggleScreen(): Promise<void> {
      const { media } = state
      if (media?.state.sharing) await media.stopScreen()
      else if (media?.state.slots.screen.name !== 'opening') await media?.shareScreen()
    },
  }
}

export type Line = ReturnType<typeof createLine>

const lines = new WeakMap<CallClient, Line>()

/** One for each client, so that a provider that is mounted again goes on with the call. */
export function lineOf(client: CallClient): Line {
  const known = lines.get(client) ?? createLine(client)
  lines.set(client, known)
  return known
}
