import { createListeners } from '../listeners.ts'
import type { Unsubscribe } from '../types.ts'
import { createCapture } from './capture.ts'
import { browserEnvironment, kinds, watchDevices } from './devices.ts'
import type { CallMediaOptions, CallMediaState, MediaKind } from './types.ts'

/** Immutable: a change is a new object. */
export interface PreviewState {
  /** The devices that are open; the same object until `close()`. It can be the `media` of a call. */
  readonly stream: MediaStream
  /** The devices of this machine; their labels are empty until one was opened. */
  readonly devices: readonly MediaDeviceInfo[]
  readonly enabled: Readonly<Record<MediaKind, boolean>>
  /** Loudness of the microphone, 0 to 1, ten times a second. 0 where the browser waits for a gesture before it measures. */
  readonly audioLevel: number
  /** Why a requested kind is not there. */
  readonly errors: CallMediaState['errors']
}

export type PreviewOptions = Pick<CallMediaOptions, 'environment' | 'process'>

/** Microphone and camera before a call. Every promise that fails is rejected with a MediaError; nobody has to look at it. */
export interface Preview {
  readonly state: PreviewState
  on(event: 'state', listener: (state: PreviewState) => void): Unsubscribe
  /** Opens the devices: rejects where one of them cannot be (`state.errors`), and shows what can. Default: both. */
  start(constraints?: MediaStreamConstraints): Promise<void>
  /** Asks again for devices that could not be had, with the same constraints: in a click, for the browser may prompt. */
  retryDevices(): Promise<void>
  switchDevice(kind: MediaKind, deviceId: string): Promise<void>
  /**
   * A camera that is not enabled is closed, and its track leaves the stream; it is opened again when it is enabled. A call
   * that is given the stream while the microphone is not enabled begins muted.
   */
  setEnabled(kind: MediaKind, enabled: boolean): Promise<void>
  /** Stops the devices; of a stream that a call was given not before that is over. */
  close(): void
}

const levelMs = 100

/** The level of a microphone, ten times a second. Gives the stop. */
function watchLevel(track: MediaStreamTrack, heard: (level: number) => void): () => void {
  const context = new AudioContext()
  const analyser = context.createAnalyser()
  // 170 ms at 48 kHz: every sound between two looks is in one of them.
  analyser.fftSize = 8192
  const samples = new Float32Array(analyser.fftSize)
  context.createMediaStreamSource(new MediaStream([track])).connect(analyser)
  const timer = setInterval(() => {
    if (context.state === 'suspended') void context.resume().catch(() => {})
    analyser.getFloatTimeDomainData(samples)
    const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length
    heard(Math.round(Math.min(1, Math.sqrt(power)) * 100) / 100)
  }, levelMs)
  return () => {
    clearInterval(timer)
    void context.close().catch(() => {})
  }
}

function quiet(promise: Promise<void>): Promise<void> {
  promise.catch(() => {})
  return promise
}

/** The devices of this machine before a call; nothing is opened before `start()`. */
export function createPreview({ environment = browserEnvironment(), process }: PreviewOptions = {}): Preview {
  const listeners = createListeners<{ state: PreviewState }>()
  const stream = new environment.MediaStream()
  let closed = false
  let stopLevel = () => {}
  let state: PreviewState = { stream, devices: [], enabled: { audio: true, video: true }, audioLevel: 0, errors: {} }

  function change(part: Partial<PreviewState>): void {
    if (closed) return
    state = { ...state, ...part }
    listeners.emit('state', state)
  }

  const capture = createCapture({
    environment,
    process,
    muted: { audio: false, video: false },
    async changed(kind) {
      const device = capture.device(kind)
      const [before] = stream.getTracks().filter((track) => track.kind === kind)
      if (before === device) return
      if (before) stream.removeTrack(before)
      if (device) stream.addTrack(device)
      if (kind !== 'audio') return
      stopLevel()
      const isMeasured = device && globalThis.AudioContext
      stopLevel = isMeasured ? watchLevel(device, showLevel) : () => {}
      showLevel(0)
    },
    updated() {
      const { muted, errors } = capture.state()
      change({ errors, enabled: { audio: !muted.audio, video: !muted.video } })
    },
    // `errors` says it.
    failed() {},
  })

  function showLevel(audioLevel: number): void {
    if (audioLevel !== state.audioLevel) change({ audioLevel })
  }

  async function list(): Promise<void> {
    change({ devices: (await environment.mediaDevices?.enumerateDevices().catch(() => undefined)) ?? [] })
  }

  const unwatch = watchDevices(environment, () => {
    void capture.mend()
    void list()
  })

  return {
    get state() {
      return state
    },
    on: listeners.on,
    // Browsers only name the devices once one is open.
    start: (constraints = Object.fromEntries(kinds.map((kind) => [kind, true]))) =>
      quiet(capture.open(constraints).finally(list)),
    retryDevices: () => quiet(capture.retry().finally(list)),
    switchDevice: (kind, deviceId) => quiet(capture.switchDevice(kind, deviceId)),
    setEnabled: (kind, enabled) => quiet(capture.setMuted(kind, !enabled)),
    close(): void {
      if (closed) return
      stopLevel()
      unwatch()
      capture.close()
      for (const track of stream.getTracks()) stream.removeTrack(track)
      change({ audioLevel: 0, errors: {} })
      closed = true
    },
  }
}
