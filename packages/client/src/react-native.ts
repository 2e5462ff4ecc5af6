/** What React Native has in place of a browser: the classes of `react-native-webrtc`, and news of the app and the network. */
import type { CallWake, CallWakeCancelled } from '@ringwire/protocol/push'
import type { CallStatus } from '@ringwire/protocol/rest'
import { isObject, parseJson } from './json.ts'
import type { MediaEnvironment } from './media/types.ts'
import type { CallClient, Participant, Unsubscribe } from './types.ts'

/** The part of `react-native-webrtc` that media needs: `import * as webrtc from 'react-native-webrtc'`. */
export interface NativeWebRTC {
  readonly RTCPeerConnection: unknown
  readonly MediaStream: unknown
  readonly mediaDevices: unknown
  readonly permissions: { query(descriptor: { name: string }): Promise<unknown> }
}

type Peer = MediaEnvironment['RTCPeerConnection']
type Description = RTCSessionDescription | null

/**
 * The `environment` of `createCallMedia`, made of the classes of `react-native-webrtc`. No global is registered. It makes good
 * where these classes leave the standard: they change the configuration that they are given, do not know the descriptions in
 * use, leave out a device that was refused without an error, and tell a permission by its bare word.
 */
export function createNativeEnvironment(webrtc: NativeWebRTC): MediaEnvironment {
  return {
    RTCPeerConnection: peerConnectionOf(webrtc.RTCPeerConnection as Peer),
    MediaStream: webrtc.MediaStream as MediaEnvironment['MediaStream'],
    mediaDevices: mediaDevicesOf(webrtc.mediaDevices as MediaDevices),
    permissions: {
      query: async (descriptor) => ({ state: await webrtc.permissions.query(descriptor) }) as PermissionStatus,
    },
  }
}

function peerConnectionOf(Native: Peer): Peer {
  return class extends Native {
    #local: Description = null
    #remote: Description = null

    constructor({ iceServers = [], ...rest }: RTCConfiguration = {}) {
      super({ ...rest, iceServers: iceServers.map((server) => ({ ...server })) })
    }

    override get currentLocalDescription(): Description {
      return this.#local
    }

    override get currentRemoteDescription(): Description {
      return this.#remote
    }

    override async setLocalDescription(description?: RTCLocalSessionDescriptionInit): Promise<void> {
      await super.setLocalDescription(description)
      this.#settle(this.localDescription)
    }

    override async setRemoteDescription(description: RTCSessionDescriptionInit): Promise<void> {
      await super.setRemoteDescription(description)
      this.#settle(this.remoteDescription)
    }

    /** With an answer, both descriptions are in use. */
    #settle(last: Description): void {
      if (last?.type !== 'answer') return
      this.#local = this.localDescription
      this.#remote = this.remoteDescription
    }
  }
}

function mediaDevicesOf(native: MediaDevices): MediaDevices {
  return Object.assign(Object.create(native), {
    async getUserMedia(wish: MediaStreamConstraints = {}) {
      const stream = await native.getUserMedia(wish)
      const tracks = stream.getTracks()
      const isMissing = (kind: 'audio' | 'video') => wish[kind] && !tracks.some((track) => track.kind === kind)
      if (!isMissing('audio') && !isMissing('video')) return stream
      for (const track of tracks) track.stop()
      throw Object.assign(new Error('A device was refused.'), { name: 'NotAllowedError' })
    },
  })
}

/** What `RTCView` shows of a stream. It looks for the picture once, so `key` has to change with it. */
export interface StreamView {
  readonly key: string
  readonly streamURL: string
}

/** Undefined while the stream has no picture. */
export function viewOf(stream: MediaStream): StreamView | undefined {
  const [picture] = stream.getVideoTracks()
  return picture && { key: picture.id, streamURL: (stream as MediaStream & { toURL(): string }).toURL() }
}

/** The part of React Native's AppState, and of `@react-native-community/netinfo`, that tells when to look. */
export interface DeviceNews {
  readonly AppState: { addEventListener(event: 'change', listener: (state: string) => void): { remove(): void } }
  readonly NetInfo: { addEventListener(listener: (network: Network) => void): () => void }
}

interface Network {
  readonly type: string
  readonly isConnected: boolean | null
  readonly details?: unknown
}

/**
 * Calls `client.wake()` when the app comes to the front, and when the device has a network again or another one: the client
 * connects at once, or makes sure that its socket is alive.
 */
export function wakeWithDevice(client: Pick<CallClient, 'wake'>, { AppState, NetInfo }: DeviceNews): Unsubscribe {
  let network: string | undefined
  const app = AppState.addEventListener('change', (state) => {
    if (state === 'active') client.wake()
  })
  const endNetwork = NetInfo.addEventListener(({ type, isConnected, details }) => {
    const before = network
    // The address and the name of a Wi-Fi are in its details; its strength, which changes all the time, does not count.
    const { ipAddress, ssid } = Object(details) as Record<string, unknown>
    network = JSON.stringify([type, isConnected, ipAddress, ssid])
    // The first one says what is so already.
    if (before !== undefined && before !== network && isConnected) client.wake()
  })
  return () => {
    app.remove()
    endNetwork()
  }
}

/** A call rings, and this device was woken for it [PUSH2]. */
export interface Wake {
  readonly type: 'call.wake'
  readonly callUuid: string
  readonly callType: string
  readonly caller: Participant & { readonly displayName: string }
  /** The group that is called [GROUP1]. */
  readonly group: string | undefined
  /** When it stops ringing. */
  readonly expiresAt: Date
  /** For `answerTicket` of `@ringwire/client/push`. */
  readonly ringTicket: string
}

/** The call that this device was woken for does not ring any more. */
export interface WakeCancelled {
  readonly type: 'call.wake_cancelled'
  readonly callUuid: string
  readonly status: CallStatus
  readonly endReason: string | null
}

/** Reads a push of Ringwire: `data` of an FCM message, or the payload of a VoIP push. Undefined: it is from somebody else. */
export function readPush(data: unknown): Wake | WakeCancelled | undefined {
  if (!isObject(data) || typeof data.call_uuid !== 'string') return undefined
  if (data.type === 'call.wake_cancelled') {
    const { type, call_uuid: callUuid, status, end_reason } = data as unknown as CallWakeCancelled
    // FCM carries text only.
    return { type, callUuid, status, endReason: end_reason === 'null' ? null : end_reason }
  }
  const caller = typeof data.caller === 'string' ? parseJson(data.caller) : data.caller
  if (data.type !== 'call.wake' || !isObject(caller)) return undefined
  const { type, call_uuid, call_type, callee_group, expires_at, ring_ticket } = data as unknown as CallWake
  const { user_id: userId, role, display_name: displayName } = caller as unknown as CallWake['caller']
  return {
    ...{ type, callUuid: call_uuid, callType: call_type, group: callee_group, ringTicket: ring_ticket },
    caller: { userId, role, displayName },
    expiresAt: new Date(expires_at),
  }
}
