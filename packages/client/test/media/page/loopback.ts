// Both ends of a call in one page: real connections and devices, and a wire that the test holds in its hand.
import { type CallMedia, type CallMediaOptions, createCallMedia } from '../../../src/media/call-media.ts'
import { createPreview } from '../../../src/media/preview.ts'
import type { CallState } from '../../../src/types.ts'
import { createBetween } from './between.ts'
import { flowing, measureFlow, totals, until } from './flow.ts'
import { createStubCalls, type StubCall } from './stub-call.ts'

type Options = Partial<Record<'outgoing' | 'incoming', CallMediaOptions>>

function createPair(callType: string, options: Options = {}) {
  const { wire, callAt } = createStubCalls(callType)
  const errors: string[] = []
  const all: CallMedia[] = []

  function mediaOf(call: StubCall): CallMedia {
    const media = createCallMedia(call, options[call.direction] ?? {})
    media.on('error', (error) => errors.push(`${call.direction}: ${error.message} (${String(error.cause)})`))
    all.push(media)
    return media
  }

  const ringing: Record<'outgoing' | 'incoming', CallState> = {
    outgoing: {
      ...{ name: 'ringing', direction: 'outgoing', invited: true, delivered: true },
      ...{ alerting: false, expiresAt: undefined },
    },
    incoming: { name: 'ringing', direction: 'incoming', answering: false, expiresAt: 0 },
  }
  const callerCall = callAt('outgoing', ringing.outgoing)
  const calleeCall = callAt('incoming', ringing.incoming)
  return {
    ...{ wire, errors, callerCall, calleeCall },
    caller: mediaOf(callerCall),
    callee: mediaOf(calleeCall),
    /** Both accept; the callee hears it first, as by a service that acknowledges before it pushes. */
    accept(): void {
      calleeCall.become({ name: 'accepted' })
      callerCall.become({ name: 'accepted' })
    },
    /** The side's page is loaded again: what it had is gone, without a word. */
    reload(side: 'outgoing' | 'incoming', old: CallMedia): { call: StubCall; media: CallMedia } {
      old.close()
      const call = callAt(side)
      return { call, media: mediaOf(call) }
    },
    close: () => {
      for (const media of all) media.close()
    },
  }
}

/** A picture that always moves, of a size that no fake camera has. */
function drawnTrack(width: number, height: number): MediaStreamTrack {
  const canvas = document.createElement('canvas')
  Object.assign(canvas, { width, height })
  const pen = canvas.getContext('2d') as CanvasRenderingContext2D
  const [track] = canvas.captureStream(30).getVideoTracks()
  const draw = () => {
    pen.fillStyle = `hsl(${(performance.now() / 10) % 360} 80% 50%)`
    pen.fillRect(0, 0, width, height)
    if (track?.readyState === 'live') setTimeout(draw, 30)
  }
  draw()
  return track as MediaStreamTrack
}

/** A sound and a picture that no device makes. */
function ownStream(): MediaStream {
  const context = new AudioContext()
  const { stream } = context.createMediaStreamDestination()
  stream.addTrack(drawnTrack(320, 240))
  return stream
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 20))

const loopback = {
  ...{ createBetween, createPair, createStubCalls, createCallMedia, createPreview },
  ...{ flowing, measureFlow, totals, until, pause, drawnTrack, ownStream },
}
Object.assign(window, { loopback })

declare global {
  interface Window {
    loopback: typeof loopback
  }
}
