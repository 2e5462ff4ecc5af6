import { expect, test } from 'bun:test'
import { openDevices } from './media/devices.ts'
import { createNativeEnvironment, readPush, viewOf, wakeWithDevice } from './react-native.ts'

/* The ways of react-native-webrtc 124, as its source has them; it runs on devices only. */

type Descriptions = { type: string; sdp: string } | null

/** Changes its configuration, and knows the last descriptions only. */
class NativeConnection extends EventTarget {
  localDescription: Descriptions = null
  remoteDescription: Descriptions = null
  readonly configuration: { iceServers: { urls?: string[] }[] }
  constructor(configuration: NativeConnection['configuration']) {
    super()
    this.configuration = configuration
    for (const server of configuration.iceServers) {
      const { urls = [] } = server
      delete server.urls
      server.urls = urls.map((url) => url.toLowerCase())
    }
  }
  async setLocalDescription(description?: Descriptions): Promise<void> {
    this.localDescription = description ?? { type: this.remoteDescription ? 'answer' : 'offer', sdp: 'made here' }
  }
  async setRemoteDescription(description: Descriptions): Promise<void> {
    this.remoteDescription = description
  }
}

class NativeStream {
  readonly tracks: readonly { kind: string; id: string; stop(): void }[]
  constructor(tracks: NativeStream['tracks'] = []) {
    this.tracks = tracks
  }
  getTracks = () => this.tracks
  getVideoTracks = () => this.tracks.filter(({ kind }) => kind === 'video')
  toURL = () => 'native-stream-1'
}

const track = (kind: string) => ({
  ...{ kind, id: `${kind}-1`, stopped: false },
  stop() {
    this.stopped = true
  },
})

/** A phone whose user allows some devices, and refuses the others. */
function phone(allowed: readonly string[]) {
  const opened: ReturnType<typeof track>[] = []
  const environment = createNativeEnvironment({
    RTCPeerConnection: NativeConnection,
    MediaStream: NativeStream,
    mediaDevices: Object.assign(new EventTarget(), {
      async getUserMedia(wish: Record<string, unknown>) {
        const kinds = ['audio', 'video'].filter((kind) => wish[kind])
        const given = kinds.filter((kind) => allowed.includes(kind)).map(track)
        // Only where nothing is allowed there is an error.
        if (given.length === 0) throw Object.assign(new Error('Permission denied.'), { name: 'SecurityError' })
        opened.push(...given)
        return new NativeStream(given)
      },
    }),
    permissions: {
      query: async ({ name }) => (allowed.includes(name === 'camera' ? 'video' : 'audio') ? 'granted' : 'denied'),
    },
  })
  return { environment, opened }
}

test('ICE servers of the client stay as they are', () => {
  const { environment } = phone([])
  const iceServers = [Object.freeze({ urls: ['turn:Example.com'] })]
  const connection = new environment.RTCPeerConnection({ iceServers })
  expect(iceServers).toEqual([{ urls: ['turn:Example.com'] }])
  expect((connection as unknown as NativeConnection).configuration.iceServers).toEqual([{ urls: ['turn:example.com'] }])
})

test('the descriptions in use are known from an answer on, and stay while a new offer is on its way', async () => {
  const { environment } = phone([])
  const connection = new environment.RTCPeerConnection()
  await connection.setLocalDescription()
  expect([connection.currentLocalDescription, connection.currentRemoteDescription]).toEqual([null, null])
  await connection.setRemoteDescription({ type: 'answer', sdp: 'theirs' })
  const inUse = [connection.localDescription, connection.remoteDescription]
  expect(inUse.map((description) => description?.type)).toEqual(['offer', 'answer'])
  await connection.setLocalDescription({ type: 'offer', sdp: 'again' })
  expect([connection.currentLocalDescription, connection.currentRemoteDescription]).toEqual(inUse)

  const callee = new environment.RTCPeerConnection()
  await callee.setRemoteDescription({ type: 'offer', sdp: 'theirs' })
  expect(callee.currentRemoteDescription).toBeNull()
  await callee.setLocalDescription()
  expect([callee.currentLocalDescription?.type, callee.currentRemoteDescription?.type]).toEqual(['answer', 'offer'])
})

test('a camera that was refused is NOT_ALLOWED, and the microphone is open', async () => {
  const { environment, opened } = phone(['audio'])
  const { tracks, errors } = await openDevices(environment, { audio: true, video: true }, () => true)
  expect(tracks.map(({ kind }) => kind)).toEqual(['audio'])
  expect([errors.audio, errors.video?.code]).toEqual([undefined, 'NOT_ALLOWED'])
  // The first one was opened beside the camera.
  expect(opened.map(({ stopped }) => stopped)).toEqual([true, false])
})

test('a stream without a picture has no view; the key of a view is that of its picture', () => {
  const stream = (...kinds: string[]) => new NativeStream(kinds.map(track)) as unknown as MediaStream
  expect(viewOf(stream('audio'))).toBeUndefined()
  expect(viewOf(stream('audio', 'video'))).toEqual({ key: 'video-1', streamURL: 'native-stream-1' })
})

test('the client wakes with the app, and with another network; not while the signal only changes', () => {
  let woken = 0
  let app: (state: string) => void = () => {}
  let network: (state: { type: string; isConnected: boolean; details?: unknown }) => void = () => {}
  let ended = 0
  const end = () => {
    ended++
  }
  const stop = wakeWithDevice(
    { wake: () => woken++ },
    {
      AppState: {
        addEventListener(_, listener) {
          app = listener
          return { remove: end }
        },
      },
      NetInfo: {
        addEventListener(listener) {
          network = listener
          return end
        },
      },
    },
  )
  const wifi = (strength: number, ipAddress = '10.0.0.2') => ({
    ...{ type: 'wifi', isConnected: true, details: { ipAddress, ssid: 'home', strength } },
  })
  const steps: [() => void, number][] = [
    [() => network(wifi(60)), 0],
    [() => network(wifi(40)), 0],
    [() => network(wifi(40, '10.0.0.3')), 1],
    [() => network({ type: 'none', isConnected: false, details: null }), 1],
    [() => network({ type: 'cellular', isConnected: true }), 2],
    [() => app('background'), 2],
    [() => app('active'), 3],
  ]
  for (const [step, expected] of steps) {
    step()
    expect(woken).toBe(expected)
  }
  stop()
  expect(ended).toBe(2)
})

const caller = { user_id: 'ann', role: 'customer', display_name: 'Ann' }
const wake = {
  ...{ type: 'call.wake', call_uuid: '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55', call_type: 'video' },
  ...{ expires_at: '2026-03-02T09:05:45.000Z', ring_ticket: 'a.b.c', caller },
}
const over = { ...wake, type: 'call.wake_cancelled', status: 'missed', end_reason: null }
/** As FCM carries it. */
const asText = (data: object) =>
  Object.fromEntries(
    Object.entries(data).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]),
  )

for (const [what, carried] of [
  ['a VoIP push', (data: object) => ({ aps: {}, ...data })],
  ['a message of FCM', asText],
] as const) {
  test(`[PUSH2] ${what} is read: a call that rings, and one that does not any more`, () => {
    expect(readPush(carried(wake))).toEqual({
      ...{ type: 'call.wake', callUuid: wake.call_uuid, callType: 'video', group: undefined, ringTicket: 'a.b.c' },
      caller: { userId: 'ann', role: 'customer', displayName: 'Ann' },
      expiresAt: new Date(wake.expires_at),
    })
    const ended = { type: 'call.wake_cancelled', callUuid: wake.call_uuid, status: 'missed', endReason: null }
    expect(readPush(carried(over))).toEqual(ended as ReturnType<typeof readPush>)
  })
}

test('a push of somebody else is none of ours', () => {
  for (const data of [
    undefined,
    null,
    'text',
    {},
    { type: 'news' },
    { ...wake, type: 'other' },
    { type: 'call.wake' },
  ]) {
    expect(readPush(data)).toBeUndefined()
  }
  expect(readPush({ ...wake, caller: '{' })).toBeUndefined()
})
