import { assertOpen, isStream, isTrack, kinds, kindsOf, openDevices, permissionsFor } from './devices.ts'
import { type Constraints, createSlot, type Device, hint, release, type Slot, show, withoutDevice } from './slots.ts'
import {
  type CallMediaOptions,
  type CallMediaState,
  type MediaEnvironment,
  MediaError,
  type MediaKind,
} from './types.ts'

type Wish = string | MediaTrackConstraints | MediaStreamTrack

export interface CaptureOptions {
  environment: MediaEnvironment
  /** From the beginning. */
  muted: Readonly<Record<MediaKind, boolean>>
  /** What shall be sent of the kind has changed: the camera, the screen, or nothing. */
  changed(kind: MediaKind, track: MediaStreamTrack | null, isScreen: boolean): Promise<void>
  /** `state()` is another one. */
  updated(): void
  failed(error: Error): void
  process: CallMediaOptions['process']
}

/** The time that `process` may take, in ms: perhaps it loads a model first. */
const processMs = 15_000

function pick(wish: MediaStreamConstraints, of: readonly MediaKind[]): MediaStreamConstraints {
  return Object.fromEntries(of.map((kind) => [kind, wish[kind]]))
}

/** Microphone, camera and screen: who opened them, who is muted, what is sent of each kind, and why nothing is. */
export function createCapture({ environment, changed, updated, failed, ...options }: CaptureOptions) {
  const { mediaDevices } = environment
  const slots = { audio: createSlot(), video: createSlot(), screen: createSlot() }
  const muted: Record<MediaKind, boolean> = { ...options.muted }
  /** Given while they were disabled, which muted their kind: no other track of the application is enabled here. */
  const asleep = new WeakSet<MediaStreamTrack>()
  /** What the browser's picker gives, while the picker is open. */
  let picker: Promise<MediaStreamTrack> | undefined
  let closed = false

  const isOff = (kind: MediaKind) => kind === 'video' && muted.video

  /** The newest wish of the slot; the answer says whether it still is. */
  function begin(slot: Slot): () => boolean {
    const turn = ++slot.turn
    slot.abandon?.()
    slot.opening = slot.abandon = undefined
    return () => slot.turn === turn && !closed
  }

  function outgoing(kind: MediaKind): MediaStreamTrack | null {
    if (kind === 'video' && slots.screen.device) return slots.screen.device.sent
    const { device } = slots[kind]
    // A microphone of ours that is muted sends silence, so that the peer's connection is seen alive.
    const isSilent = muted[kind] && (kind === 'video' || !device?.own)
    return isSilent ? null : (device?.sent ?? null)
  }

  async function apply(kind: MediaKind): Promise<void> {
    const { device } = slots[kind]
    if (device?.own) device.source.enabled = device.sent.enabled = !muted[kind]
    await changed(kind, outgoing(kind), kind === 'video' && slots.screen.device !== null)
    updated()
  }

  /** Where it fails nothing is sent: a picture without the blur that was asked for is worse than none. */
  async function processed(slot: Slot, source: MediaStreamTrack): Promise<MediaStreamTrack> {
    let isOver = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const work = async () => {
      const track = (await options.process?.(source)) ?? source
      if (isOver) track.stop()
      return track
    }
    const limit = new Promise<never>((_, reject) => {
      slot.abandon = () => {
        isOver = true
        source.stop()
        reject(new MediaError('PROCESS_TIMEOUT', 'process'))
      }
      timer = setTimeout(slot.abandon, processMs)
    })
    try {
      return await Promise.race([work(), limit])
    } catch (error) {
      source.stop()
      throw error instanceof MediaError ? error : new MediaError('FAILED', 'process failed', error)
    } finally {
      clearTimeout(timer)
    }
  }

  /** The device is sent from now on, in place of the one before it; `ended` hears when it is gone by itself. */
  async function install(slot: Slot, device: Device, ended: () => Promise<void>): Promise<void> {
    const { source, sent, own, wish } = device
    const before = slot.device
    // The text of a screen shall stay readable when the bandwidth is small.
    if (own) hint(sent, slot === slots.screen ? 'detail' : 'motion')
    Object.assign(slot, { device, wish, code: undefined, opening: undefined, abandon: undefined })
    const lost = async () => {
      if (slot.device === device) await ended()
    }
    source.addEventListener('ended', () => void lost())
    await apply(source.kind as MediaKind)
    if (before?.source !== source) release(before)
    // No event tells of one that ended before.
    if (source.readyState === 'ended') await lost()
  }

  async function use(kind: MediaKind, source: MediaStreamTrack, isCurrent: () => boolean, wish?: Constraints) {
    const own = wish !== undefined
    const slot = slots[kind]
    let sent = source
    if (own && isCurrent()) {
      source.enabled = !muted[kind]
      sent = await processed(slot, source)
    }
    const device: Device = { source, sent, own, wish }
    if (isCurrent()) await install(slot, device, () => ended(kind, device))
    else release(device)
  }

  /** A phone opens one camera at a time: the old one makes way, and comes back if that does not help. */
  async function makeWay(kind: MediaKind, wish: Constraints, isCurrent: () => boolean): Promise<boolean> {
    const slot = slots[kind]
    const { device } = slot
    slot.device = null
    release(device)
    for (const each of [wish, device?.wish]) {
      const [track] = (await openDevices(environment, { [kind]: each }, isCurrent)).tracks
      if (!track) continue
      const isUsed = use(kind, track, isCurrent, each).then(() => true)
      if (await isUsed.catch(() => false)) return each === wish
    }
    return false
  }

  async function openNow(
    wish: MediaStreamConstraints,
    turns: Partial<Record<MediaKind, () => boolean>>,
  ): Promise<void> {
    const wanted = kinds.filter((kind) => turns[kind])
    const isCurrent = (kind: MediaKind) => turns[kind]?.() === true
    const { tracks, errors } = await openDevices(environment, pick(wish, wanted), isCurrent)
    const uses = tracks.map(async (track) => {
      const kind = track.kind as MediaKind
      await use(kind, track, () => isCurrent(kind), wish[kind]).catch((error) => {
        errors[kind] = error
      })
    })
    await Promise.all(uses)
    let failure: MediaError | undefined
    for (const kind of wanted) {
      const error = errors[kind]
      const slot = slots[kind]
      if (!error || !isCurrent(kind)) continue
      const mayHelp = error.code === 'IN_USE' && slot.device?.own
      if (mayHelp && (await makeWay(kind, wish[kind], () => isCurrent(kind)))) continue
      if (!isCurrent(kind)) continue
      failure ??= error
      slot.opening = undefined
      // One that was sent before is sent still.
      if (slot.device) slot.wish = slot.device.wish
      else {
        slot.code = error.code
        await apply(kind)
      }
    }
    updated()
    assertOpen(!closed)
    if (failure) throw failure
  }

  /** A camera that is off is not opened: what was asked for is remembered until it is switched on. */
  function open(wish: MediaStreamConstraints): Promise<void> {
    const turns: Partial<Record<MediaKind, () => boolean>> = {}
    for (const kind of kindsOf(wish)) {
      const slot = slots[kind]
      const isCurrent = begin(slot)
      slot.wish = wish[kind]
      if (!isOff(kind)) turns[kind] = isCurrent
      else {
        release(slot.device)
        slot.device = null
      }
    }
    const work = kinds.some((kind) => turns[kind]) ? openNow(wish, turns) : Promise.resolve()
    for (const kind of kinds) if (turns[kind]) slots[kind].opening = work
    updated()
    return work
  }

  /** The device was unplugged or taken away: any other of its kind is better than none. */
  async function ended(kind: MediaKind, device: Device): Promise<void> {
    const slot = slots[kind]
    const { turn, opening } = slot
    slot.device = null
    let cause: unknown
    if (device.own) {
      release(device)
      if (opening) {
        // What was chosen meanwhile takes its place.
        await Promise.all([apply(kind), opening.catch(() => undefined)])
        if (slot.turn !== turn || slot.device) return
      }
      try {
        return await open({ [kind]: Object.assign({}, slot.wish, { deviceId: undefined }) })
      } catch (error) {
        cause = error
        if (slot.code === 'NOT_FOUND') slot.code = 'DEVICE_LOST'
      }
    } else Object.assign(slot, { code: 'DEVICE_LOST', wish: undefined })
    if (closed) return
    const what = device.own ? 'device ended, and no other could be opened' : 'track that was given ended'
    failed(new MediaError('DEVICE_LOST', `The ${kind} ${what}`, cause))
    await apply(kind)
  }

  /**
   * A device that is being opened is not asked for twice: the prompt that allows it also fires the change of the permission. A track that
   * the application gave has no wish: nothing takes its place.
   */
  async function retry(of: readonly MediaKind[]): Promise<void> {
    const missing = of.filter((kind) => slots[kind].code && slots[kind].wish)
    const running = missing.map((kind) => slots[kind].opening)
    const rest = missing.filter((_, i) => !running[i])
    await Promise.all([open(Object.fromEntries(rest.map((kind) => [kind, slots[kind].wish]))), ...running])
  }

  async function setMuted(kind: MediaKind, mute: boolean): Promise<void> {
    muted[kind] = mute
    // At once: the page may be gone before the sender has heard of it.
    updated()
    const slot = slots[kind]
    const { device, wish, opening } = slot
    const goesOff = isOff(kind) && (!device || device.own)
    if (goesOff) {
      // The light goes out; what was chosen is opened again when the camera is switched on.
      begin(slot)
      slot.code = undefined
      slot.device = null
      const deviceId = device?.source.getSettings?.().deviceId
      if (device) slot.wish = Object.assign(deviceId ? { deviceId } : {}, device.wish)
    } else if (kind === 'video' && !mute && !device && wish && !opening) return open({ video: wish })
    else if (device && !mute && asleep.delete(device.source)) device.source.enabled = true
    await apply(kind)
    if (goesOff) release(device)
  }

  async function stopScreen(): Promise<void> {
    const { screen } = slots
    const { device } = screen
    begin(screen)
    screen.device = null
    if (device) await apply('video')
    else updated()
    release(device)
  }

  async function captureScreen(wish: DisplayMediaStreamOptions): Promise<MediaStreamTrack> {
    if (!mediaDevices?.getDisplayMedia) throw new MediaError('NOT_SUPPORTED', 'No getDisplayMedia')
    const stream = await mediaDevices.getDisplayMedia({ video: true, audio: false, ...wish })
    const [track] = stream.getVideoTracks()
    // Only the picture is sent: its sound would be recorded for nobody.
    for (const other of stream.getTracks()) if (other !== track) other.stop()
    if (!track) throw new MediaError('NOT_FOUND', 'No picture')
    return track
  }

  function pickScreen(wish: DisplayMediaStreamOptions): Promise<MediaStreamTrack> {
    picker ??= captureScreen(wish).finally(() => {
      picker = undefined
    })
    return picker
  }

  async function shareScreen(wish: DisplayMediaStreamOptions | MediaStreamTrack): Promise<void> {
    const { screen } = slots
    const own = !isTrack(wish)
    const isCurrent = begin(screen)
    const asked = own ? pickScreen(wish) : Promise.resolve(wish)
    screen.opening = asked
    updated()
    const source = await asked.catch((error) => {
      if (isCurrent()) screen.opening = undefined
      updated()
      throw error
    })
    const device: Device = { source, sent: source, own, wish: undefined }
    if (!isCurrent()) {
      // A newer call that waits for the same picker uses this screen.
      if (screen.opening !== asked) release(device)
      assertOpen(!closed)
      return
    }
    await install(screen, device, stopScreen)
  }

  const errors = () => Object.fromEntries(kinds.map((kind) => [kind, slots[kind].code]).filter(([, code]) => code))

  return {
    /** Also one that is muted. */
    device: (kind: MediaKind): MediaStreamTrack | null => slots[kind].device?.sent ?? null,
    state: (): Pick<CallMediaState, 'muted' | 'sharing' | 'errors' | 'slots'> => ({
      muted: { ...muted },
      sharing: slots.screen.device !== null,
      errors: errors(),
      slots: { audio: show(slots.audio), video: show(slots.video), screen: show(slots.screen) },
    }),
    async open(media: MediaStream | MediaStreamConstraints): Promise<void> {
      if (isStream(media)) {
        for (const kind of kindsOf(media)) {
          const track = media.getTracks().find((candidate) => candidate.kind === kind) as MediaStreamTrack
          // One that was switched off in a preview begins so.
          if (!track.enabled) {
            muted[kind] = true
            asleep.add(track)
          }
          await use(kind, track, begin(slots[kind]))
        }
        return
      }
      const work: (Promise<unknown> | undefined)[] = []
      const rest = kindsOf(media).filter((kind) => {
        const { wish, opening, device } = slots[kind]
        // The same again, as by a second click on "Accept", opens nothing twice.
        const isThere = (opening || device?.own) && JSON.stringify(wish) === JSON.stringify(media[kind])
        if (isThere) work.push(opening)
        return !isThere
      })
      await Promise.all([open(pick(media, rest)), ...work])
    },
    retry: (): Promise<void> => retry(kinds),
    /** Asks again for what is allowed: nobody is prompted who did not ask. */
    async mend(): Promise<void> {
      const states = await permissionsFor(environment, kinds)
      if (!closed) await retry(kinds.filter((_, i) => states[i] === 'granted')).catch(() => undefined)
    },
    switchDevice: (kind: MediaKind, wish: Wish): Promise<void> => {
      if (isTrack(wish)) return use(kind, wish, begin(slots[kind]))
      const chosen = typeof wish === 'string' ? { deviceId: { exact: wish } } : wish
      return open({ [kind]: { ...withoutDevice(slots[kind].wish), ...chosen } })
    },
    setMuted,
    shareScreen,
    stopScreen,
    close(): void {
      closed = true
      for (const slot of Object.values(slots)) {
        begin(slot)
        release(slot.device)
        Object.assign(slot, { device: null, code: undefined, wish: undefined })
      }
    },
  }
}

export type Capture = ReturnType<typeof createCapture>
