import { isStream, isTrack, kinds, kindsOf, permissionsFor } from './devices.ts'
import { isCameraOff, openInputs, pick, retryInputs, use } from './inputs.ts'
import { createScreen } from './screen.ts'
import { release, show, withoutDevice } from './slots.ts'
import { apply, begin, type CaptureOptions, createSources, type Sources } from './sources.ts'
import type { CallMediaState, MediaKind } from './types.ts'

type Wish = string | MediaTrackConstraints | MediaStreamTrack

/**
 * Microphone, camera and screen: which of them the SDK opened, which are muted, what is sent of each kind, and why
 * nothing is.
 */
export function createCapture(options: CaptureOptions) {
  const of = createSources(options)
  const { slots } = of
  const screen = createScreen(of)
  /** Given while they were disabled, which muted their kind: no other track of the application is enabled here. */
  const asleep = new WeakSet<MediaStreamTrack>()

  async function openTracks(stream: MediaStream): Promise<void> {
    for (const kind of kindsOf(stream)) {
      const track = stream.getTracks().find((candidate) => candidate.kind === kind) as MediaStreamTrack
      // One that was switched off in a preview begins so.
      if (!track.enabled) {
        of.muted[kind] = true
        asleep.add(track)
      }
      await use(of, kind, track, begin(of, slots[kind]))
    }
  }

  return {
    /** Also one that is muted. */
    device: (kind: MediaKind): MediaStreamTrack | null => slots[kind].device?.sent ?? null,
    state: () => stateOf(of),
    open: (media: MediaStream | MediaStreamConstraints): Promise<void> =>
      isStream(media) ? openTracks(media) : openOnce(of, media),
    retry: (): Promise<void> => retryInputs(of, kinds),
    /** Asks again for what is allowed: nobody is prompted who did not ask. */
    async mend(): Promise<void> {
      const states = await permissionsFor(of.environment, kinds)
      const allowed = kinds.filter((_, i) => states[i] === 'granted')
      if (!of.closed) await retryInputs(of, allowed).catch(() => {})
    },
    switchDevice: (kind: MediaKind, wish: Wish): Promise<void> => {
      if (isTrack(wish)) return use(of, kind, wish, begin(of, slots[kind]))
      const chosen = typeof wish === 'string' ? { deviceId: { exact: wish } } : wish
      return openInputs(of, { [kind]: { ...withoutDevice(slots[kind].wish), ...chosen } })
    },
    async setMuted(kind: MediaKind, mute: boolean): Promise<void> {
      of.muted[kind] = mute
      // At once: the page may be gone before the sender has heard of it.
      of.updated()
      const { device, wish, opening } = slots[kind]
      if (isCameraOff(of, kind) && (!device || device.own)) return switchOff(of)
      if (kind === 'video' && !mute && !device && wish && !opening) return openInputs(of, { video: wish })
      if (device && !mute && asleep.delete(device.source)) device.source.enabled = true
      await apply(of, kind)
    },
    /** The call was put on hold, or goes on. */
    async refresh(): Promise<void> {
      await Promise.all(kinds.map((kind) => apply(of, kind)))
    },
    shareScreen: screen.share,
    stopScreen: screen.stop,
    close(): void {
      of.closed = true
      for (const slot of Object.values(slots)) {
        begin(of, slot)
        release(slot.device)
        Object.assign(slot, { device: null, code: undefined, wish: undefined })
      }
    },
  }
}

export type Capture = ReturnType<typeof createCapture>

function stateOf({
  slots,
  muted,
  held,
}: Sources): Pick<CallMediaState, 'muted' | 'held' | 'sharing' | 'errors' | 'slots'> {
  return {
    muted: { ...muted },
    held: held?.() ?? false,
    sharing: slots.screen.device !== null,
    errors: Object.fromEntries(kinds.map((kind) => [kind, slots[kind].code]).filter(([, code]) => code)),
    slots: { audio: show(slots.audio), video: show(slots.video), screen: show(slots.screen) },
  }
}

/** The same again, as by a second click on "Accept", opens nothing twice. */
async function openOnce(of: Sources, media: MediaStreamConstraints): Promise<void> {
  const work: (Promise<unknown> | undefined)[] = []
  const rest = kindsOf(media).filter((kind) => {
    const { wish, opening, device } = of.slots[kind]
    const isThere = (opening || device?.own) && JSON.stringify(wish) === JSON.stringify(media[kind])
    if (isThere) work.push(opening)
    return !isThere
  })
  await Promise.all([openInputs(of, pick(media, rest)), ...work])
}

/** The light of the camera goes out; what was chosen is opened again when it is switched on. */
async function switchOff(of: Sources): Promise<void> {
  const slot = of.slots.video
  const { device } = slot
  begin(of, slot)
  slot.code = undefined
  slot.device = null
  const deviceId = device?.source.getSettings?.().deviceId
  if (device) slot.wish = Object.assign(deviceId ? { deviceId } : {}, device.wish)
  await apply(of, 'video')
  release(device)
}
