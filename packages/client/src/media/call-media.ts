import { createAsked, setOutput } from './asked.ts'
import { restart } from './connecting.ts'
import { createPart } from './create-part.ts'
import { assertOpen, devicesOf, kindsOf } from './devices.ts'
import { close, listen, proceed } from './following.ts'
import type { CallOfMedia, Part } from './part.ts'
import { type CallMedia, type CallMediaOptions, MediaError, type MediaKind } from './types.ts'

export type {
  CallMedia,
  CallMediaEvents,
  CallMediaOptions,
  CallMediaState,
  FlowStats,
  MediaEnvironment,
  MediaErrorCode,
  MediaKind,
  MediaStats,
  MediaStorage,
  Playback,
  PlaybackState,
  SlotState,
} from './types.ts'
// biome-ignore lint/performance/noBarrelFile: errors are told apart by it
export { MediaError } from './types.ts'

/** The media part of each call that has one. */
const parts = new WeakMap<CallOfMedia, { readonly media: CallMedia; readonly options: CallMediaOptions }>()

function isSame(a: CallMediaOptions, b: CallMediaOptions): boolean {
  return (Object.keys({ ...a, ...b }) as (keyof CallMediaOptions)[]).every((name) => a[name] === b[name])
}

/**
 * The media of one call: nothing happens before `start()`. A call has one media part: until it is closed, the same options
 * give it again, and others throw ALREADY_EXISTS.
 */
export function createCallMedia(call: CallOfMedia, options: CallMediaOptions = {}): CallMedia {
  const part = parts.get(call)
  if (part && part.media.state.name !== 'closed') {
    if (isSame(part.options, options)) return part.media
    throw new MediaError('ALREADY_EXISTS', 'The call has a media part with other options.')
  }
  const media = mediaOf(createPart(call, options))
  parts.set(call, { media, options })
  return media
}

function defaultMedia({ callType }: CallOfMedia): MediaStreamConstraints {
  return callType === 'video' ? { audio: true, video: true } : { audio: true }
}

async function start(part: Part, media: Parameters<CallMedia['start']>[0]): Promise<void> {
  const { call, shown } = part
  const what = media ?? part.options.media ?? defaultMedia(call)
  part.senders.want(kindsOf(what))
  if (!part.started) {
    part.started = true
    shown.change({ name: 'connecting' })
    listen(part)
    if (part.wasHeld) void call.hold?.()
    proceed(part)
  }
  // The call may be over already: no device is opened for it.
  assertOpen(!shown.isClosed())
  await part.capture.open(what)
}

/** What the application sees of it. */
function mediaOf(part: Part): CallMedia {
  const { shown, capture, playbacks } = part
  const asked = createAsked(shown.isClosed)
  return {
    get state() {
      return shown.get()
    },
    get connection() {
      return part.negotiation.connection()
    },
    get securityCode() {
      return shown.get().securityCode
    },
    on: shown.on,
    start: (media) => asked('start', () => start(part, media)),
    retryDevices: () => asked('retryDevices', capture.retry),
    setMuted: (kind: MediaKind, muted) => asked('setMuted', () => capture.setMuted(kind, muted)),
    switchDevice: (kind, wish) => asked('switchDevice', () => capture.switchDevice(kind, wish)),
    shareScreen: (wish = {}) => asked('shareScreen', () => capture.shareScreen(wish)),
    stopScreen: () => asked('stopScreen', capture.stopScreen),
    devices: () => devicesOf(part.environment),
    attach(element) {
      const playback = playbacks.attach(element)
      if (shown.isClosed()) playback.detach()
      return playback
    },
    resume: () => asked('resume', playbacks.resume),
    setOutput: (element, deviceId) => asked('setOutput', () => setOutput(element, deviceId)),
    restart: () => asked('restart', () => restart(part, false)),
    close: () => close(part),
  }
}
