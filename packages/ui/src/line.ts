import { type CallMedia, type CallMediaOptions, createCallMedia } from '@ringwire/client/media'
import type { Call, CallClient, CallOptions, CallState, Unsubscribe } from '@ringwire/client/types'
import { callWish, cameraWish, defaultCamera, sendsPicture } from './wish.ts'

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

/** Ids of the devices that the user chose; of this page alone. */
export interface DeviceChoice {
  readonly audioinput?: string
  readonly videoinput?: string
  readonly audiooutput?: string
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
  /** The camera was opened for this call. It may be off at the moment. */
  readonly hasCamera: boolean
}

export interface LineOptions {
  /**
   * For each call's media, with the devices that the user chose. No camera is opened for an audio call.
   */
  readonly media?: CallMediaOptions | undefined
  /** What a call that comes during another gets: rejected as busy, or left to ring until this one is over. */
  readonly busy?: 'reject' | 'hold' | undefined
}

const noCall = { call: undefined, media: undefined, since: undefined, hasCamera: false } as const
const idle = { ...noCall, phase: 'idle', ended: undefined } as const

function phaseOf({ state }: Call, since: number | undefined): Phase {
  if (state.name !== 'ringing') return since === undefined ? 'connecting' : 'live'
  if (state.direction === 'outgoing') return 'calling'
  return state.answering ? 'connecting' : 'incoming'
}

function rings({ state }: Call): boolean {
  return state.name === 'ringing' && state.direction === 'incoming' && !state.answering
}

/** Undefined where there is only one camera. */
async function cameraAfter(media: CallMedia, id: string | undefined): Promise<string | undefined> {
  const cameras = (await media.devices()).filter(({ kind }) => kind === 'videoinput')
  const next = cameras[(cameras.findIndex(({ deviceId }) => deviceId === id) + 1) % cameras.length]
  return next?.deviceId === id ? undefined : next?.deviceId
}

/** The one call that a page is in, with its media. It lives outside of components, so they may come and go. */
export function createLine(client: CallClient) {
  let options: LineOptions = {}
  let state: LineState = { ...idle, devices: {} }
  const listeners = new Set<() => void>()
  /** Providers that are mounted now, and how the line stops listening for them. */
  let attached = 0
  let ends: Unsubscribe[] = []

  function change(part: Partial<LineState>): void {
    const next = { ...state, ...part }
    state = next.call ? { ...next, phase: phaseOf(next.call, next.since) } : next
    for (const listener of [...listeners]) listener()
  }

  function hold(call: Call): void {
    call.on('state', (now) => {
      if (state.call !== call) return
      if (now.name !== 'over') return change({})
      const { since } = state
      change({ ...noCall, phase: 'over', ended: { call, state: now, since, endedAt: Date.now() } })
      const next = client.calls.find(rings)
      if (next) ring(next)
    })
    change({ ...idle, call })
  }

  function ring(call: Call): void {
    hold(call)
    void call.alerting()
  }

  function came(call: Call): void {
    if (!state.call) ring(call)
    else if (options.busy !== 'hold') void call.reject('busy')
  }

  /** Media closes itself when the call is over. */
  function join(call: Call, withCamera = call.callType === 'video'): void {
    const media = createCallMedia(call, options.media)
    media.on('state', ({ name, local, sharing }) => {
      if (state.media !== media) return
      // A camera that was allowed later is there now.
      const hasCamera = state.hasCamera || (!sharing && local.getVideoTracks().length > 0)
      // A peer without devices sends nothing. The call is live as soon as both sides are connected.
      const isConnected = name === 'flowing' || name === 'silent'
      const since = state.since ?? (isConnected ? Date.now() : undefined)
      if (since !== state.since || hasCamera !== state.hasCamera) change({ since, hasCamera })
    })
    change({ media })
    if (call.callType === 'video' && !withCamera) void media.setMuted('video', true)
    // One that was off before the page was loaded again stays closed.
    void open(media, withCamera && !media.state.muted.video)
  }

  /** A call goes on without devices: who has none can still see and hear, and `errors` of the media says why. */
  async function open(media: CallMedia, withCamera: boolean): Promise<void> {
    const wish = callWish(options.media?.media, state.devices, withCamera)
    await media.start(wish).catch(() => undefined)
    await openOthers(media, wish)
    // What is sent is there now; the media's own state says nothing of it.
    if (state.media === media)
      change({ hasCamera: state.hasCamera || (sendsPicture(wish) && !media.state.errors.video) })
  }

  /** A device that the user chose may be unplugged by now. Any other of its kind is better than none. */
  async function openOthers(media: CallMedia, wish: MediaStream | MediaStreamConstraints): Promise<void> {
    const { audioinput, videoinput, ...others } = state.devices
    const { audio, video } = media.state.errors
    const lost = { audio: audioinput && audio === 'NOT_FOUND', video: videoinput && video === 'NOT_FOUND' }
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
      .catch(() => undefined)
  }

  async function openCamera(media: CallMedia, wish: MediaTrackConstraints | MediaStreamTrack): Promise<void> {
    await media.switchDevice('video', wish)
    if (state.media === media) change({ hasCamera: true })
  }

  function chosen(kind: MediaDeviceKind, id: string | undefined): void {
    if (id) change({ devices: { ...state.devices, [kind]: id } })
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
      chosen(kind, id)
      const { media } = state
      if (!media || kind === 'audiooutput') return
      const of = kind === 'audioinput' ? 'audio' : 'video'
      // Where it cannot be opened, the one of before goes on.
      media.switchDevice(of, id).then(
        () => change({}),
        () => undefined,
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
      join(call, call.callType === 'video' && video !== false)
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
    /** The first time, it opens the camera: of a call without one, and of an audio call. */
    async toggleCamera(): Promise<void> {
      const { media, hasCamera } = state
      if (!media) return
      const on = media.state.muted.video || !hasCamera
      await media.setMuted('video', !on)
      if (on && !hasCamera) await openCamera(media, cameraWish(options.media?.media, state.devices))
    },
    /** The camera at the other side of a phone, or the next one of a machine that does not tell the sides. */
    async flipCamera(): Promise<void> {
      const { media } = state
      const track = media?.state.local.getVideoTracks()[0]
      if (!media || !track) return
      const { facingMode, deviceId } = track.getSettings()
      if (facingMode) {
        const other = facingMode === 'user' ? 'environment' : 'user'
        await openCamera(media, { ...defaultCamera, facingMode: { exact: other } })
        chosen('videoinput', media.state.local.getVideoTracks()[0]?.getSettings().deviceId)
      } else {
        const next = await cameraAfter(media, deviceId)
        if (!next) return
        chosen('videoinput', next)
        await openCamera(media, cameraWish(undefined, state.devices))
      }
    },
    async toggleScreen(): Promise<void> {
      const { media } = state
      if (media?.state.sharing) await media.stopScreen()
      else await media?.shareScreen()
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
