import { type CallMedia, type CallMediaOptions, createCallMedia } from '@ringwire/client/media'
import type { Call, CallClient, CallOptions, CallState, Unsubscribe } from '@ringwire/client/types'

/**
 * incoming: it rings here. calling: it rings at the other side. connecting: answered, no media yet. live: media has come.
 * over: `ended` says how, until it is dismissed or another call begins.
 */
export type Phase = 'idle' | 'incoming' | 'calling' | 'connecting' | 'live' | 'over'

export type OverState = Extract<CallState, { name: 'over' }>

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
  /** When media first came on this page, in ms since the epoch. */
  readonly since: number | undefined
  readonly ended: { readonly call: Call; readonly state: OverState } | undefined
  readonly devices: DeviceChoice
}

export interface LineOptions {
  /** For each call's media. `client` is filled in, and so are the devices that the user chose. */
  readonly media?: CallMediaOptions | undefined
  /** What a call that comes during another gets: rejected as busy, or left to ring until this one is over. */
  readonly busy?: 'reject' | 'hold' | undefined
}

const idle = { phase: 'idle', call: undefined, media: undefined, since: undefined, ended: undefined } as const
const camera = { width: { ideal: 1280 }, height: { ideal: 720 }, facingMode: 'user' }

function phaseOf({ state }: Call, since: number | undefined): Phase {
  if (state.name !== 'ringing') return since === undefined ? 'connecting' : 'live'
  if (state.direction === 'outgoing') return 'calling'
  return state.answering ? 'connecting' : 'incoming'
}

function rings({ state }: Call): boolean {
  return state.name === 'ringing' && state.direction === 'incoming' && !state.answering
}

/** The one call that a page is in, with its media. It lives outside of components, so they may come and go. */
export function createLine(client: CallClient) {
  let options: LineOptions = {}
  let state: LineState = { ...idle, devices: {} }
  const listeners = new Set<() => void>()

  function change(part: Partial<LineState>): void {
    const next = { ...state, ...part }
    state = next.call ? { ...next, phase: phaseOf(next.call, next.since) } : next
    for (const listener of [...listeners]) listener()
  }

  function hold(call: Call): void {
    call.on('state', (now) => {
      if (state.call !== call) return
      if (now.name !== 'over') return change({})
      change({ ...idle, phase: 'over', ended: { call, state: now } })
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
    const media = createCallMedia(call, { ...options.media, client })
    media.on('state', ({ name }) => {
      if (state.call !== call || name !== 'flowing' || state.since !== undefined) return
      change({ since: Date.now() })
    })
    change({ media })
    if (call.callType === 'video' && !withCamera) void media.setMuted('video', true)
    void open(media, withCamera).then(() => {
      // What is sent is there now; the media's own state says nothing of it.
      if (state.media === media) change({})
    })
  }

  /** A call goes on without devices: who has none can still see and hear, and `errors` of the media says why. */
  async function open(media: CallMedia, withCamera: boolean): Promise<void> {
    const { audioinput } = state.devices
    const audio = audioinput ? { deviceId: audioinput } : true
    const wish = withCamera ? { audio, video: cameraWish() } : { audio }
    await media.start(options.media?.media ?? wish).catch(() => undefined)
  }

  function cameraWish(): MediaTrackConstraints {
    const { videoinput } = state.devices
    return videoinput ? { ...camera, deviceId: videoinput } : camera
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
    /** From now on it takes the calls that come. */
    attach(): Unsubscribe {
      const ends = [client.on('incoming', came), client.on('restored', restored)]
      adopt()
      return () => {
        for (const end of ends) end()
      }
    },
    /** For this call and those that come. */
    chooseDevice(kind: MediaDeviceKind, id: string): void {
      change({ devices: { ...state.devices, [kind]: id } })
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
      const call = client.call(wish)
      hold(call)
      join(call)
      return call
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
    /** A camera that was not opened for this call is opened now. */
    async toggleCamera(): Promise<void> {
      const { media } = state
      if (!media) return
      const on = media.state.muted.video || media.state.local.getVideoTracks().length === 0
      await media.setMuted('video', !on)
      if (on && media.state.local.getVideoTracks().length === 0) await media.switchDevice('video', cameraWish())
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
