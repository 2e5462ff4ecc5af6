import { expect } from 'bun:test'
import type { CallMediaOptions, MediaEnvironment } from '@ringwire/client/media'
import type { Call, CallClient, CallState } from '@ringwire/client/types'
import { createLine } from './line.ts'

/* Calls, clients and machines that a test moves. */

type Listener = (payload: never) => void

/** The events of a stand-in: a listener that is added twice hears twice, as in the client. */
export function events() {
  let all: { event: string; listener: Listener }[] = []
  return {
    on(event: string, listener: Listener) {
      const added = { event, listener }
      all.push(added)
      return () => {
        all = all.filter((each) => each !== added)
      }
    },
    emit(event: string, payload: unknown) {
      for (const each of all) if (each.event === event) each.listener(payload as never)
    },
  }
}

/** A call that the test moves; `asked` has what the line asked of it. */
export function standInCall(direction: 'incoming' | 'outgoing' = 'incoming', callType = 'video') {
  const { on, emit } = events()
  const asked: string[] = []
  const ask = (name: string) => async (reason?: string) => void asked.push(reason ? `${name} ${reason}` : name)
  const state = { name: 'ringing', direction, answering: false, alerting: false } as unknown as CallState
  const call = {
    ...{ callUuid: crypto.randomUUID(), direction, callType, state, on, invited: Promise.resolve() },
    peer: { userId: 'ben', role: 'agent', displayName: null },
    ...{ accept: ask('accept'), reject: ask('reject'), alerting: ask('alerting'), end: ask('end') },
    held: false,
    async hold() {
      asked.push('hold')
      call.held = true
    },
    async resume() {
      asked.push('resume')
      call.held = false
    },
    ...{ sendMedia: async () => {}, sendStats: async () => {}, claimSignals: () => () => {} },
  }
  return {
    call: call as unknown as Call,
    asked,
    become(next: object) {
      call.state = { ...call.state, ...next } as CallState
      emit('state', call.state)
    },
  }
}

export function standInClient(callType = 'video') {
  const { on, emit } = events()
  const calls: Call[] = []
  const outgoing = standInCall('outgoing', callType)
  return {
    client: { calls, on, call: () => outgoing.call, state: { name: 'online' } } as unknown as CallClient,
    outgoing,
    rings(callType = 'video') {
      const it = standInCall('incoming', callType)
      calls.push(it.call)
      emit('incoming', it.call)
      return it
    },
  }
}

export interface Attempt {
  readonly wish: MediaStreamConstraints
  fails(name: string): void
  opens(settings?: MediaTrackSettings): void
}

export function track(kind: string, settings: MediaTrackSettings): MediaStreamTrack {
  const stopped = { kind, enabled: true, readyState: 'live', contentHint: '', getSettings: () => settings }
  const it = Object.assign(new EventTarget(), stopped, {
    stop() {
      it.readyState = 'ended'
    },
  })
  return it as never
}

class Stream {
  tracks: MediaStreamTrack[] = []
  getTracks = () => [...this.tracks]
  getAudioTracks = () => this.tracks.filter(({ kind }) => kind === 'audio')
  getVideoTracks = () => this.tracks.filter(({ kind }) => kind === 'video')
  addTrack = (added: MediaStreamTrack) => void this.tracks.push(added)
  removeTrack(removed: MediaStreamTrack) {
    this.tracks = this.tracks.filter((each) => each !== removed)
  }
}

/** A machine whose prompts the test answers. Nothing is connected: only what is opened is looked at. */
export function machine(cameras: readonly string[] = []) {
  const attempts: Attempt[] = []
  const screens: PromiseWithResolvers<MediaStream>[] = []
  const opened: MediaStreamTrack[] = []
  let changed = Promise.withResolvers<void>()
  const mediaDevices = {
    getUserMedia(wish: MediaStreamConstraints) {
      const { promise, resolve, reject } = Promise.withResolvers<MediaStream>()
      attempts.push({
        wish,
        fails: (name) => reject(Object.assign(new Error(name), { name })),
        opens(settings = {}) {
          const tracks = Object.keys(wish).map((kind) => track(kind, settings))
          opened.push(...tracks)
          resolve({ getTracks: () => tracks } as never)
        },
      })
      changed.resolve()
      changed = Promise.withResolvers()
      return promise
    },
    getDisplayMedia() {
      const asked = Promise.withResolvers<MediaStream>()
      screens.push(asked)
      return asked.promise
    },
    enumerateDevices: async () => cameras.map((deviceId) => ({ kind: 'videoinput', deviceId })),
  }
  class RTCPeerConnection extends EventTarget {
    signalingState = 'stable'
    addTransceiver = () => ({ sender: { replaceTrack: async () => {} } })
    setLocalDescription = () => new Promise(() => {})
    getReceivers = () => []
    getTransceivers = () => []
    getStats = async () => new Map()
    close() {}
  }
  return {
    environment: { mediaDevices, MediaStream: Stream, RTCPeerConnection } as unknown as MediaEnvironment,
    ...{ attempts, screens, opened },
    async attempt(nth: number): Promise<Attempt> {
      while (attempts.length < nth) await changed.promise
      return attempts[nth - 1] as Attempt
    },
  }
}

/** A call that was placed here, of a machine that has opened what a call of the type opens. */
export async function inCall(callType: 'audio' | 'video', { cameras, ...media }: InCall = {}) {
  const there = machine(cameras)
  const { client, outgoing } = standInClient(callType)
  const line = createLine(client)
  line.configure({ media: { environment: there.environment, storage: null, ...media } })
  line.place({ userId: 'ben', role: 'agent', callType })
  ;(await there.attempt(1)).opens({ deviceId: cameras?.[0] ?? 'first' })
  await until(() => line.get().media?.state.slots.audio.name === 'live')
  return { ...there, line, outgoing, slots: () => line.get().media!.state.slots, media: line.get().media! }
}

export interface InCall extends Pick<CallMediaOptions, 'media' | 'process'> {
  readonly cameras?: readonly string[]
}

/** Everything that follows without a timer is done after some turns. */
export async function until(isTrue: () => boolean): Promise<void> {
  for (let turn = 0; turn < 200 && !isTrue(); turn++) await Promise.resolve()
  expect(isTrue()).toBe(true)
}
