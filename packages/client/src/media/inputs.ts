import { assertOpen, kinds, kindsOf, openDevices } from './devices.ts'
import { processed } from './processing.ts'
import { type Constraints, type Device, release } from './slots.ts'
import { apply, begin, install, type Sources } from './sources.ts'
import { MediaError, type MediaKind } from './types.ts'

/** Whether the wish is still the newest of its slot. */
type Turn = () => boolean
type Turns = Partial<Record<MediaKind, Turn>>

/** Only what is wanted of these kinds. */
export function pick(wish: MediaStreamConstraints, of: readonly MediaKind[]): MediaStreamConstraints {
  return Object.fromEntries(of.map((kind) => [kind, wish[kind]]))
}

export const isCameraOff = ({ muted }: Sources, kind: MediaKind): boolean => kind === 'video' && muted.video

/** Sends the track of a microphone or camera, unless its wish is no longer the newest. One without a wish is the application's. */
export async function use(
  of: Sources,
  kind: MediaKind,
  source: MediaStreamTrack,
  isCurrent: Turn,
  wish?: Constraints,
): Promise<void> {
  const own = wish !== undefined
  const slot = of.slots[kind]
  let sent = source
  if (own && isCurrent()) {
    source.enabled = !of.muted[kind]
    sent = await processed(slot, source, of.process)
  }
  const device: Device = { source, sent, own, wish }
  if (isCurrent()) await install(of, slot, device, () => ended(of, kind, device))
  else release(device)
}

/** A camera that is off is not opened: its constraints are remembered until it is switched on. */
export function openInputs(of: Sources, wish: MediaStreamConstraints): Promise<void> {
  const { slots } = of
  const turns: Turns = {}
  for (const kind of kindsOf(wish)) {
    const slot = slots[kind]
    const isCurrent = begin(of, slot)
    slot.wish = wish[kind]
    if (!isCameraOff(of, kind)) turns[kind] = isCurrent
    else {
      release(slot.device)
      slot.device = null
    }
  }
  const work = kinds.some((kind) => turns[kind]) ? openNow(of, wish, turns) : Promise.resolve()
  for (const kind of kinds) if (turns[kind]) slots[kind].opening = work
  of.updated()
  return work
}

async function openNow(of: Sources, wish: MediaStreamConstraints, turns: Turns): Promise<void> {
  const wanted = kinds.filter((kind) => turns[kind])
  const { tracks, errors } = await openDevices(of.environment, pick(wish, wanted), (kind) => !!turns[kind]?.())
  const uses = tracks.map(async (track) => {
    const kind = track.kind as MediaKind
    await use(of, kind, track, turns[kind] as Turn, wish[kind]).catch((error) => {
      errors[kind] = error
    })
  })
  await Promise.all(uses)
  let failure: MediaError | undefined
  for (const kind of wanted) {
    const error = errors[kind]
    const slot = of.slots[kind]
    const isCurrent = turns[kind] as Turn
    if (!error || !isCurrent()) continue
    const mayHelp = error.code === 'IN_USE' && slot.device?.own
    if (mayHelp && (await makeWay(of, kind, wish[kind], isCurrent))) continue
    if (!isCurrent()) continue
    failure ??= error
    slot.opening = undefined
    // One that was sent before is sent still.
    if (slot.device) slot.wish = slot.device.wish
    else {
      slot.code = error.code
      await apply(of, kind)
    }
  }
  of.updated()
  assertOpen(!of.closed)
  if (failure) throw failure
}

/** A phone opens one camera at a time: the old one makes way, and comes back if that does not help. */
async function makeWay(of: Sources, kind: MediaKind, wish: Constraints, isCurrent: Turn): Promise<boolean> {
  const slot = of.slots[kind]
  const { device } = slot
  slot.device = null
  release(device)
  for (const each of [wish, device?.wish]) {
    const [track] = (await openDevices(of.environment, { [kind]: each }, isCurrent)).tracks
    if (!track) continue
    const isUsed = use(of, kind, track, isCurrent, each).then(() => true)
    if (await isUsed.catch(() => false)) return each === wish
  }
  return false
}

/** The device was unplugged or taken away: any other of its kind is better than none. */
async function ended(of: Sources, kind: MediaKind, device: Device): Promise<void> {
  const slot = of.slots[kind]
  const { turn, opening } = slot
  slot.device = null
  let cause: unknown
  if (device.own) {
    release(device)
    if (opening) {
      // A later choice takes its place.
      await Promise.all([apply(of, kind), opening.catch(() => {})])
      if (slot.turn !== turn || slot.device) return
    }
    try {
      return await openInputs(of, { [kind]: Object.assign({}, slot.wish, { deviceId: undefined }) })
    } catch (error) {
      cause = error
      if (slot.code === 'NOT_FOUND') slot.code = 'DEVICE_LOST'
    }
  } else Object.assign(slot, { code: 'DEVICE_LOST', wish: undefined })
  if (of.closed) return
  const what = device.own ? 'device ended, and no other could be opened' : 'track that was given ended'
  of.failed(new MediaError('DEVICE_LOST', `The ${kind} ${what}`, cause))
  await apply(of, kind)
}

/**
 * A device that is being opened is not asked for twice: the prompt that allows it also fires the change of the permission. A
 * track that the application gave has no wish: nothing takes its place.
 */
export async function retryInputs(of: Sources, among: readonly MediaKind[]): Promise<void> {
  const { slots } = of
  const missing = among.filter((kind) => slots[kind].code && slots[kind].wish)
  const running = missing.map((kind) => slots[kind].opening)
  const rest = missing.filter((_, i) => !running[i])
  const wishes = Object.fromEntries(rest.map((kind) => [kind, slots[kind].wish]))
  await Promise.all([openInputs(of, wishes), ...running])
}
