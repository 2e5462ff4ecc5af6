import type { CallMediaOptions } from '@ringwire/client/media'

/** Ids of the devices that the user chose; only for this page. */
export interface DeviceChoice {
  readonly audioinput?: string | undefined
  readonly videoinput?: string | undefined
  readonly audiooutput?: string | undefined
}

type Given = CallMediaOptions['media']

export const defaultCamera: MediaTrackConstraints = {
  width: { ideal: 1280 },
  height: { ideal: 720 },
  facingMode: 'user',
}

function isStream(given: Given): given is MediaStream {
  return given !== undefined && 'getTracks' in given
}

/**
 * The device that the user chose wins over the one that the application named, and over the side that it faces. As a mere
 * wish it could lose to the size of the picture.
 */
function withDevice(constraints: MediaTrackConstraints, deviceId: string | undefined): MediaTrackConstraints {
  if (!deviceId) return constraints
  const { facingMode: _, ...others } = constraints
  return { ...others, deviceId: { exact: deviceId } }
}

export function sendsPicture(wish: MediaStream | MediaStreamConstraints): boolean {
  return isStream(wish) ? wish.getVideoTracks().length > 0 : Boolean(wish.video)
}

/** The picture of the camera button: the application's own, or the camera that the user chose. */
export function cameraWish(given: Given, { videoinput }: DeviceChoice): MediaTrackConstraints | MediaStreamTrack {
  if (isStream(given)) {
    const track = given.getVideoTracks().find(({ readyState }) => readyState !== 'ended')
    return track ?? withDevice(defaultCamera, videoinput)
  }
  const video = given?.video
  return withDevice(typeof video === 'object' ? video : defaultCamera, videoinput)
}

/**
 * The media that a call sends. The application's stream goes before the user's devices, because its tracks may be no
 * device at all. Without a camera only the sound of either is sent.
 */
export function callWish(
  given: Given,
  devices: DeviceChoice,
  withCamera: boolean,
): MediaStream | MediaStreamConstraints {
  if (isStream(given)) return withCamera ? given : new MediaStream(given.getAudioTracks())
  const { audio, video } = given ?? { audio: true, video: true }
  const wish: MediaStreamConstraints = {}
  if (audio) wish.audio = devices.audioinput ? withDevice(audio === true ? {} : audio, devices.audioinput) : audio
  if (video && withCamera) wish.video = cameraWish(given, devices) as MediaTrackConstraints
  return wish
}
