import type { CallMedia, CallMediaOptions, CallMediaState, MediaError } from '@ringwire/client/media'
import { isCameraOn } from './camera.ts'
import type { LineStates } from './line-state.ts'
import { callWish, cameraWish, type DeviceChoice, sendsPicture } from './wish.ts'

const isAway = (code: string | undefined) => code === 'NOT_FOUND' || code === 'IN_USE'

/** Of the devices that the user chose those that are unplugged, or in use by another program. */
export function lostOf({ audioinput, videoinput }: DeviceChoice, { audio, video }: CallMediaState['errors']) {
  return { audio: !!audioinput && isAway(audio), video: !!videoinput && isAway(video) }
}

/** The application does not look at the promise of a device: `errors` and `slots` of the media say the same. */
const ignore = () => {}

/** Microphone, camera, screen and hold of the call, and which devices the user chose. `given`: what the application sends. */
export function createLineDevices(states: LineStates, given: () => CallMediaOptions['media']) {
  const { get, change } = states
  /** The user's last choice of each kind; an earlier one that opens late is not remembered. */
  const latest: { -readonly [Kind in keyof DeviceChoice]: DeviceChoice[Kind] } = {}

  function remember(kind: MediaDeviceKind, id: string | undefined): void {
    change({ devices: { ...get().devices, [kind]: id || undefined } })
  }

  return {
    /** A call goes on without devices: a user who has none still gets sound and picture, and `errors` of the media says why. */
    async open(media: CallMedia, withCamera: boolean): Promise<void> {
      const wish = callWish(given(), get().devices, withCamera)
      await media.start(wish).catch(ignore)
      await openOthers(media, wish, states, given)
    },
    /** For this call and those that come. */
    chooseDevice(kind: MediaDeviceKind, id: string): void {
      latest[kind] = id
      const { media } = get()
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
    async toggleMicrophone(): Promise<void> {
      const { media } = get()
      await media?.setMuted('audio', !media.state.muted.audio)
    },
    /** Also cancels a camera that is being opened. Of a call that never had one it opens the camera. */
    async toggleCamera(): Promise<void> {
      const { media } = get()
      if (!media) return
      const on = !isCameraOn(media.state)
      const unmuted = media.setMuted('video', !on)
      // Known at once: a camera that the call had before is being opened now.
      if (on && !isCameraOn(media.state)) await media.switchDevice('video', cameraWish(given(), get().devices))
      await unmuted
    },
    /** The camera at the other side of a phone, or the next one of a machine that does not tell the sides. */
    async flipCamera(): Promise<void> {
      const { media } = get()
      if (media) await flip(media, get, remember)
    },
    async toggleHold(): Promise<void> {
      const { call } = get()
      await (call?.held ? call.resume() : call?.hold())
    },
    /** A second press while the browser asks what to share does nothing. */
    async toggleScreen(): Promise<void> {
      const { media } = get()
      if (media?.state.sharing) await media.stopScreen()
      else if (media?.state.slots.screen.name !== 'opening') await media?.shareScreen()
    },
  }
}

type Wish = MediaStream | MediaStreamConstraints

/** A device that the user chose may be unplugged or in use by now. Any other of its kind is better than none. */
async function openOthers(
  media: CallMedia,
  wish: Wish,
  { get, change }: LineStates,
  given: () => CallMediaOptions['media'],
): Promise<void> {
  const lost = lostOf(get().devices, media.state.errors)
  if (!lost.audio && !lost.video) return
  const gone = { ...(lost.audio && { audioinput: undefined }), ...(lost.video && { videoinput: undefined }) }
  const devices = { ...get().devices, ...gone }
  change({ devices })
  const again = callWish(given(), devices, sendsPicture(wish))
  if ('getTracks' in again) return
  const missing = { ...(lost.audio && { audio: again.audio }), ...(lost.video && { video: again.video }) }
  await media.start(missing).catch(ignore)
}

async function flip(
  media: CallMedia,
  get: LineStates['get'],
  remember: (kind: 'videoinput', id: string | undefined) => void,
): Promise<void> {
  const sent = () => media.state.local.getVideoTracks()[0]
  const track = sent()
  if (!track) return
  const cameras = (await media.devices()).filter(({ kind }) => kind === 'videoinput').map(({ deviceId }) => deviceId)
  // A track that the application made of the camera's does not tell its device.
  const idOf = (track: MediaStreamTrack | undefined) => cameras.find((id) => id && id === track?.getSettings().deviceId)
  const now = idOf(track) ?? get().devices.videoinput
  const { video } = media.state.slots
  const other = video.name === 'live' && video.facingMode === 'environment' ? 'user' : 'environment'
  try {
    // Size and all else stay as they are.
    await media.switchDevice('video', { facingMode: { exact: other } })
    remember('videoinput', idOf(sent()))
  } catch (error) {
    if ((error as MediaError).code !== 'NOT_FOUND') throw error
    // The one after this in the list of the machine. If nothing tells which one is open, it is most likely the first.
    const next = cameras[(Math.max(0, cameras.indexOf(now ?? '')) + 1) % cameras.length]
    if (next === undefined || cameras.length < 2) return
    await media.switchDevice('video', next)
    remember('videoinput', next)
  }
}
