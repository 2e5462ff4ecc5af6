import { assertOpen, isTrack } from './devices.ts'
import { type Device, release } from './slots.ts'
import { apply, begin, install, type Sources } from './sources.ts'
import { type MediaEnvironment, MediaError } from './types.ts'

/** The screen that is shared in place of the camera. */
export function createScreen(of: Sources) {
  const { screen } = of.slots
  /** The browser's picker, while it is open. */
  let picker: Promise<MediaStreamTrack> | undefined

  function pickScreen(wish: DisplayMediaStreamOptions): Promise<MediaStreamTrack> {
    picker ??= captureScreen(of.environment, wish).finally(() => {
      picker = undefined
    })
    return picker
  }

  async function stop(): Promise<void> {
    const { device } = screen
    begin(of, screen)
    screen.device = null
    if (device) await apply(of, 'video')
    else of.updated()
    release(device)
  }

  async function share(wish: DisplayMediaStreamOptions | MediaStreamTrack): Promise<void> {
    const own = !isTrack(wish)
    const isCurrent = begin(of, screen)
    const asked = own ? pickScreen(wish) : Promise.resolve(wish)
    screen.opening = asked
    of.updated()
    const source = await asked.catch((error) => {
      if (isCurrent()) screen.opening = undefined
      of.updated()
      throw error
    })
    const device: Device = { source, sent: source, own, wish: undefined }
    if (!isCurrent()) {
      // A newer call that waits for the same picker uses this screen.
      if (screen.opening !== asked) release(device)
      assertOpen(!of.closed)
      return
    }
    await install(of, screen, device, stop)
  }

  return { share, stop }
}

async function captureScreen(
  { mediaDevices }: MediaEnvironment,
  wish: DisplayMediaStreamOptions,
): Promise<MediaStreamTrack> {
  if (!mediaDevices?.getDisplayMedia) throw new MediaError('NOT_SUPPORTED', 'No getDisplayMedia')
  const stream = await mediaDevices.getDisplayMedia({ video: true, audio: false, ...wish })
  const [track] = stream.getVideoTracks()
  // Only the picture is sent: its sound would be recorded for nobody.
  for (const other of stream.getTracks()) if (other !== track) other.stop()
  if (!track) throw new MediaError('NOT_FOUND', 'No picture')
  return track
}
