import type { MediaEnvironment } from '../../../src/media/types.ts'

/** Sound and pictures that a program makes, as `@roamhq/wrtc` takes them (`nonstandard`). */
export interface Engine {
  readonly RTCAudioSource: new () => {
    createTrack(): MediaStreamTrack
    onData(data: { samples: Int16Array; sampleRate: number }): void
  }
  readonly RTCVideoSource: new () => {
    createTrack(): MediaStreamTrack
    onFrame(frame: { width: number; height: number; data: Uint8Array }): void
  }
}

const sampleRate = 48_000
/** The engine takes sound in pieces of 10 ms. */
const soundMs = 10
const frameMs = 50
const [width, height] = [160, 120]

/** A tone of 440 Hz, and a grey picture whose brightness changes. */
export function createSources({ RTCAudioSource, RTCVideoSource }: Engine, { MediaStream }: MediaEnvironment) {
  const sound = new RTCAudioSource()
  const picture = new RTCVideoSource()
  const tracks = [sound.createTrack(), picture.createTrack()]
  const samples = new Int16Array((sampleRate * soundMs) / 1000)
  // I420: brightness of each pixel, then two colours of each four.
  const data = new Uint8Array((width * height * 3) / 2).fill(128)
  let at = 0
  let frames = 0

  function speak(): void {
    for (let i = 0; i < samples.length; i++) samples[i] = 8_000 * Math.sin((2 * Math.PI * 440 * at++) / sampleRate)
    sound.onData({ samples, sampleRate })
  }

  function show(): void {
    data.fill((frames++ * 8) % 256, 0, width * height)
    picture.onFrame({ width, height, data })
  }

  const timers = [setInterval(speak, soundMs), setInterval(show, frameMs)]
  return {
    stream: new MediaStream(tracks),
    stop(): void {
      for (const timer of timers) clearInterval(timer)
      for (const track of tracks) track.stop()
    },
  }
}
