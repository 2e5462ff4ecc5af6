import { isStream, kinds, kindsOf, openDevices, permissionsFor } from './devices.ts'
import {
  type CallMediaOptions,
  type CallMediaState,
  type MediaEnvironment,
  MediaError,
  type MediaKind,
  type SlotState,
} from './types.ts'

type Wish = string | MediaTrackConstraints | MediaStreamTrack

export interface CaptureOptions {
  environment: MediaEnvironment
  /** From the beginning. */
  muted: Readonly<Record<MediaKind, boolean>>
  /** What shall be sent of the kind has changed: the camera, the screen, or nothing. */
  changed(kind: MediaKind, track: MediaStreamTrack | null): Promise<void>
  /** `state()` is another one. */
  updated(): void
  failed(error: Error): void
  process: CallMediaOptions['process']
}

/** What is opened or given, and what is sent of it. */
interface Device {
  readonly source: MediaStreamTrack
  readonly sent: MediaStreamTrack
}

function isTrack(wish: unknown): wish is MediaStreamTrack {
  return typeof wish === 'object' && wish !== null && 'readyState' in wish
}

/** How the encoder shall spend its bits, unless the application has said so. */
function hint(track: MediaStreamTrack, as: 'motion' | 'detail'): void {
  if (track.kind === 'video' && track.contentHint === '') track.contentHint = as
}

/** Microphone, camera and screen: who opened them, who is muted, what is sent of each kind, and why nothing is. */
export function createCapture({ environment, changed, updated, failed, ...options }: CaptureOptions) {
  const { mediaDevices } = environment
  const devices: Record<MediaKind, Device | null> = { audio: null, video: null }
  const muted: Record<MediaKind, boolean> = { ...options.muted }
  const errors: { -readonly [K in keyof CallMediaState['errors']]: CallMediaState['errors'][K] } = {}
  /** What was last asked for of each kind. */
  const wishes: { [K in MediaKind]?: MediaTrackConstraints | boolean | undefined } = {}
  /** Tracks that were opened here and are ours to stop. */
  const own = new Set<MediaStreamTrack>()
  let screen: MediaStreamTrack | undefined
  let closed = false
  let retrying: { readonly kinds: readonly MediaKind[]; readonly done: Promise<void> } | undefined

  function outgoing(kind: MediaKind): MediaStreamTrack | null {
    if (kind === 'video' && screen) return screen
    // A camera that is off sends nothing at all. A microphone sends silence, so that the peer's connection is seen alive.
    return kind === 'video' && muted.video ? null : (devices[kind]?.sent ?? null)
  }

  async function apply(kind: MediaKind): Promise<void> {
    const device = devices[kind]
    if (device) device.source.enabled = device.sent.enabled = !muted[kind]
    await changed(kind, outgoing(kind))
    updated()
  }

  function release(track: MediaStreamTrack | undefined): void {
    if (track && own.delete(track)) track.stop()
  }

  function releaseDevice(device: Device | null): void {
    release(device?.source)
    release(device?.sent)
  }

  function keepOwn(tracks: MediaStreamTrack[]): void {
    for (const track of tracks) own.add(track)
    if (!closed) return
    for (const track of tracks) release(track)
    throw new MediaError('CLOSED', 'The media of this call is closed')
  }

  /** Where it fails nothing is sent: a picture without the blur that was asked for is worse than none. */
  async function processed(source: MediaStreamTrack): Promise<MediaStreamTrack> {
    if (!options.process || !own.has(source)) return source
    try {
      const sent = await options.process(source)
      keepOwn([sent])
      return sent
    } catch (error) {
      release(source)
      throw error instanceof MediaError ? error : new MediaError('FAILED', 'process failed', error)
    }
  }

  async function use(kind: MediaKind, source: MediaStreamTrack): Promise<void> {
    source.enabled = !muted[kind]
    const device = { source, sent: await processed(source) }
    const before = devices[kind]
    hint(device.sent, 'motion')
    devices[kind] = device
    delete errors[kind]
    source.addEventListener('ended', () => {
      if (devices[kind] === device && !closed) void recover(kind)
    })
    await apply(kind)
    if (before?.source !== source) releaseDevice(before)
  }

  async function open(wish: MediaStreamConstraints): Promise<void> {
    const wanted = kindsOf(wish)
    if (wanted.length === 0) return
    for (const kind of wanted) wishes[kind] = wish[kind]
    const opened = await openDevices(environment, wish)
    keepOwn(opened.tracks)
    const uses = opened.tracks.map(async (track) => {
      const kind = track.kind as MediaKind
      await use(kind, track).catch((error) => {
        opened.errors[kind] = error
      })
    })
    await Promise.all(uses)
    for (const kind of wanted) {
      const error = opened.errors[kind]
      // One that was sent before is sent still.
      if (error && !devices[kind]) errors[kind] = error.code
    }
    updated()
    const [error] = Object.values(opened.errors)
    if (error) throw error
  }

  /** The device was unplugged or taken away: any other of its kind is better than none. */
  async function recover(kind: MediaKind): Promise<void> {
    const wish = Object.assign({}, wishes[kind], { deviceId: undefined })
    releaseDevice(devices[kind])
    devices[kind] = null
    try {
      await open({ [kind]: wish })
    } catch (error) {
      if (closed) return
      if (errors[kind] === 'NOT_FOUND') errors[kind] = 'DEVICE_LOST'
      failed(new MediaError('DEVICE_LOST', `The ${kind} device ended, and no other could be opened`, error))
      await apply(kind)
    }
  }

  /**
   * One at a time: the prompt that allows a device also tells that it is allowed. What is asked for already is not asked for
   * twice; another kind has its turn after that.
   */
  async function retry(of: readonly MediaKind[]): Promise<void> {
    const missing = () => of.filter((kind) => errors[kind])
    const running = retrying
    if (running && missing().every((kind) => running.kinds.includes(kind))) return running.done
    const before = running?.done.catch(() => undefined)
    const mine = {
      kinds: missing(),
      done: Promise.resolve(before)
        .then(() => open(Object.fromEntries(missing().map((kind) => [kind, wishes[kind] ?? true]))))
        .finally(() => {
          if (retrying === mine) retrying = undefined
        }),
    }
    retrying = mine
    return mine.done
  }

  async function stopScreen(): Promise<void> {
    const before = screen
    if (!before) return
    screen = undefined
    await apply('video')
    release(before)
  }

  async function captureScreen(wish: DisplayMediaStreamOptions | MediaStreamTrack): Promise<MediaStreamTrack> {
    if (isTrack(wish)) return wish
    if (!mediaDevices?.getDisplayMedia) throw new MediaError('NOT_SUPPORTED', 'No getDisplayMedia here')
    const stream = await mediaDevices.getDisplayMedia({ video: true, audio: false, ...wish })
    const tracks = stream.getTracks()
    keepOwn(tracks)
    const [track] = stream.getVideoTracks()
    // Only the picture is sent: its sound would be recorded for nobody.
    for (const other of tracks) if (other !== track) release(other)
    if (!track) throw new MediaError('NOT_FOUND', 'The screen has no picture')
    return track
  }

  function slot(kind: MediaKind): SlotState {
    const device = devices[kind]
    if (device) return { name: 'live', own: own.has(device.source) }
    const code = errors[kind]
    return code ? { name: 'lost', code } : { name: 'empty' }
  }

  return {
    /** Also one that is off. */
    device: (kind: MediaKind): MediaStreamTrack | null => devices[kind]?.sent ?? null,
    state: (): Pick<CallMediaState, 'muted' | 'sharing' | 'errors' | 'slots'> => ({
      slots: {
        audio: slot('audio'),
        video: slot('video'),
        screen: screen ? { name: 'live', own: own.has(screen) } : { name: 'empty' },
      },
      muted: { ...muted },
      sharing: screen !== undefined,
      errors: { ...errors },
    }),
    async open(media: MediaStream | MediaStreamConstraints): Promise<void> {
      if (!isStream(media)) return open(media)
      for (const kind of kindsOf(media)) {
        const track = media.getTracks().find((candidate) => candidate.kind === kind)
        if (!track) continue
        // One that was switched off in a preview begins so.
        if (!track.enabled) muted[kind] = true
        await use(kind, track)
      }
    },
    retry: (): Promise<void> => retry(kinds),
    /** Asks again for what is allowed: nobody is prompted who did not ask. */
    async mend(): Promise<void> {
      const states = await permissionsFor(environment, kinds)
      if (!closed) await retry(kinds.filter((_, i) => states[i] === 'granted')).catch(() => undefined)
    },
    switchDevice: (kind: MediaKind, wish: Wish): Promise<void> => {
      if (isTrack(wish)) return use(kind, wish)
      return open({ [kind]: typeof wish === 'string' ? { deviceId: { exact: wish } } : wish })
    },
    async setMuted(kind: MediaKind, mute: boolean): Promise<void> {
      muted[kind] = mute
      // At once: the page may be gone before the sender has heard of it.
      updated()
      await apply(kind)
    },
    async shareScreen(wish: DisplayMediaStreamOptions | MediaStreamTrack): Promise<void> {
      const track = await captureScreen(wish)
      const before = screen
      screen = track
      // Text shall stay readable when the bandwidth is small.
      hint(track, 'detail')
      track.addEventListener('ended', () => {
        if (screen === track && !closed) void stopScreen()
      })
      await apply('video')
      release(before)
    },
    stopScreen,
    close(): void {
      closed = true
      for (const track of [...own]) release(track)
    },
  }
}

export type Capture = ReturnType<typeof createCapture>
