import { type MediaEnvironment, MediaError, type MediaErrorCode, type MediaKind } from './types.ts'

type Wish = string | MediaTrackConstraints | MediaStreamTrack

export interface CaptureOptions {
  environment: MediaEnvironment
  /** From the beginning. */
  muted: Readonly<Record<MediaKind, boolean>>
  /** What shall be sent of the kind has changed: the camera, the screen, or nothing. */
  changed(kind: MediaKind, track: MediaStreamTrack | null): Promise<void>
  /** The screen is no longer shared, because the user said so in the browser's own bar. */
  screenEnded(): void
  failed(error: Error): void
}

const codes: Record<string, MediaErrorCode> = {
  NotAllowedError: 'NOT_ALLOWED',
  SecurityError: 'NOT_ALLOWED',
  NotFoundError: 'NOT_FOUND',
  OverconstrainedError: 'NOT_FOUND',
  NotReadableError: 'IN_USE',
  AbortError: 'IN_USE',
  TypeError: 'NOT_SUPPORTED',
  NotSupportedError: 'NOT_SUPPORTED',
}

export function mediaError(error: unknown, what: string): MediaError {
  if (error instanceof MediaError) return error
  const name = error instanceof Error ? error.name : ''
  return new MediaError(codes[name] ?? 'FAILED', `${what}: ${name || 'unknown error'}`, error)
}

function isTrack(wish: unknown): wish is MediaStreamTrack {
  return typeof wish === 'object' && wish !== null && 'readyState' in wish && 'kind' in wish
}

function isStream(media: MediaStream | MediaStreamConstraints): media is MediaStream {
  return 'getTracks' in media
}

/** The kinds that will be sent, before any device is open. */
export function kindsOf(media: MediaStream | MediaStreamConstraints): MediaKind[] {
  const kinds = ['audio', 'video'] as const
  if (isStream(media)) return kinds.filter((kind) => media.getTracks().some((track) => track.kind === kind))
  return kinds.filter((kind) => Boolean(media[kind]))
}

/** Microphone, camera and screen: who opened them, who is muted, and what is sent of each kind. */
export function createCapture({ environment, changed, screenEnded, failed, ...initial }: CaptureOptions) {
  const { mediaDevices } = environment
  const devices: Record<MediaKind, MediaStreamTrack | null> = { audio: null, video: null }
  const muted: Record<MediaKind, boolean> = { ...initial.muted }
  /** Tracks that were opened here and are ours to stop. */
  const own = new Set<MediaStreamTrack>()
  let screen: MediaStreamTrack | null = null
  let closed = false

  function outgoing(kind: MediaKind): MediaStreamTrack | null {
    if (kind === 'video' && screen) return screen
    // A camera that is off sends nothing at all. A microphone sends silence, so that the peer's connection is seen alive.
    return kind === 'video' && muted.video ? null : devices[kind]
  }

  async function apply(kind: MediaKind): Promise<void> {
    const device = devices[kind]
    if (device) device.enabled = !muted[kind]
    await changed(kind, outgoing(kind))
  }

  function release(track: MediaStreamTrack | null): void {
    if (track && own.delete(track)) track.stop()
  }

  function keepOwn(tracks: MediaStreamTrack[]): void {
    for (const track of tracks) own.add(track)
    if (!closed) return
    for (const track of tracks) release(track)
    throw new MediaError('CLOSED', 'Media was closed while a device was being opened')
  }

  async function getUserMedia(constraints: MediaStreamConstraints): Promise<MediaStreamTrack[]> {
    if (!mediaDevices) throw new MediaError('NOT_SUPPORTED', 'There is no mediaDevices here; a page needs https')
    const stream = await mediaDevices.getUserMedia(constraints).catch((error: unknown) => {
      throw mediaError(error, 'getUserMedia')
    })
    const tracks = stream.getTracks()
    keepOwn(tracks)
    return tracks
  }

  async function use(kind: MediaKind, track: MediaStreamTrack): Promise<void> {
    const before = devices[kind]
    devices[kind] = track
    track.addEventListener('ended', () => {
      if (devices[kind] === track && !closed) void recover(kind)
    })
    await apply(kind)
    if (before !== track) release(before)
  }

  /** The device was unplugged or taken away: any other of its kind is better than none. */
  async function recover(kind: MediaKind): Promise<void> {
    try {
      await open(kind, {})
    } catch (error) {
      failed(new MediaError('DEVICE_LOST', `The ${kind} device ended, and no other could be opened`, error))
    }
  }

  async function open(kind: MediaKind, wish: Wish): Promise<void> {
    if (isTrack(wish)) return use(kind, wish)
    const constraints = typeof wish === 'string' ? { deviceId: { exact: wish } } : wish
    const [track] = await getUserMedia({ [kind]: constraints })
    if (track) await use(kind, track)
  }

  async function stopScreen(): Promise<void> {
    const before = screen
    if (!before) return
    screen = null
    await apply('video')
    release(before)
  }

  async function captureScreen(wish: DisplayMediaStreamOptions | MediaStreamTrack): Promise<MediaStreamTrack> {
    if (isTrack(wish)) return wish
    if (!mediaDevices?.getDisplayMedia) throw new MediaError('NOT_SUPPORTED', 'This browser cannot share its screen')
    const stream = await mediaDevices.getDisplayMedia({ video: true, audio: false, ...wish }).catch((error) => {
      throw mediaError(error, 'getDisplayMedia')
    })
    const tracks = stream.getTracks()
    keepOwn(tracks)
    const [track] = stream.getVideoTracks()
    // Only the picture is sent: its sound would be recorded for nobody.
    for (const other of tracks) if (other !== track) release(other)
    if (!track) throw new MediaError('NOT_FOUND', 'The shared screen has no picture')
    return track
  }

  return {
    muted: (): Record<MediaKind, boolean> => ({ ...muted }),
    isSharing: () => screen !== null,
    async open(media: MediaStream | MediaStreamConstraints): Promise<void> {
      const kinds = kindsOf(media)
      const tracks = isStream(media) ? media.getTracks() : kinds.length > 0 ? await getUserMedia(media) : []
      for (const kind of kinds) {
        const track = tracks.find((candidate) => candidate.kind === kind)
        if (track) await use(kind, track)
      }
    },
    switchDevice: (kind: MediaKind, wish: Wish): Promise<void> => open(kind, wish),
    async setMuted(kind: MediaKind, mute: boolean): Promise<void> {
      muted[kind] = mute
      await apply(kind)
    },
    async shareScreen(wish: DisplayMediaStreamOptions | MediaStreamTrack): Promise<void> {
      const track = await captureScreen(wish)
      const before = screen
      screen = track
      // Text shall stay readable when the bandwidth is small.
      if ('contentHint' in track && track.contentHint === '') track.contentHint = 'detail'
      track.addEventListener('ended', () => {
        if (screen === track && !closed) void stopScreen().then(screenEnded)
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
