import NetInfo from '@react-native-community/netinfo'
import { type Call, createCallClient } from '@ringwire/client'
import { type CallMedia, createCallMedia } from '@ringwire/client/media'
import { answerTicket, type Ticket } from '@ringwire/client/push'
import { createNativeEnvironment, type Wake, wakeWithDevice } from '@ringwire/client/react-native'
import { AppState } from 'react-native'
import CallKeep, { CONSTANTS } from 'react-native-callkeep'
import * as webrtc from 'react-native-webrtc'
import { getToken, service } from './backend.ts'

const environment = createNativeEnvironment(webrtc)
export const client = createCallClient({ getToken })

/** A call on the system's screen. The phone was woken for it and has only its ticket, or the client has it. */
interface Shown {
  ticket?: Ticket
  call?: Call
  media?: CallMedia
  /** The user has answered. */
  answered?: boolean
}

/** By the uuid that the system knows. It stays, also where the call takes another one. */
const shown = new Map<string, Shown>()

function shownOf(uuid: string): Shown {
  const known = shown.get(uuid)
  if (known) return known
  const made: Shown = {}
  shown.set(uuid, made)
  return made
}

export const mediaOf = (call: Call) => [...shown.values()].find((it) => it.call === call)?.media

/** Once, when the app starts. */
export function startPhone(): void {
  void CallKeep.setup({
    ios: { appName: 'Ringwire', supportsVideo: true },
    android: {
      alertTitle: 'Calls',
      alertDescription: 'The app shows its calls as the phone does.',
      cancelButton: 'No',
      okButton: 'Yes',
      additionalPermissions: [],
      selfManaged: false,
    },
  })
  wakeWithDevice(client, { AppState, NetInfo })
  client.on('incoming', (call) => {
    const { callUuid, peer, callType } = call
    if (!shown.has(callUuid)) show(callUuid, peer.userId ?? peer.role, peer.displayName, callType)
    void call.alerting()
    follow(callUuid, call)
  })
  // The app was started again in a call: the user has answered it already.
  client.on('restorable', (calls) => {
    for (const it of calls) join(it.callUuid, follow(it.callUuid, it.resume()))
  })
  client.on('error', (error) => console.warn(error.code))
  listenToSystem()
  client.connect()
}

export function dial(userId: string, role: string, callType: 'audio' | 'video'): void {
  const call = client.call({ userId, role, callType })
  CallKeep.startCall(call.callUuid, userId, userId, 'generic', callType === 'video')
  join(call.callUuid, follow(call.callUuid, call))
}

/** A push has woken the phone. On iOS the native part has shown the call already: see README.md. */
export async function ring({ callUuid, caller, callType, ringTicket }: Wake): Promise<void> {
  const it = shownOf(callUuid)
  if (it.ticket || it.call) return
  it.ticket = answerTicket(ringTicket, { url: service })
  show(callUuid, caller.userId, caller.displayName, callType)
  try {
    const alerted = await it.ticket.alerting()
    // Connected while it rings, the client hears that another device was faster.
    const ring = alerted.ringing ? await it.ticket.connect(client) : alerted
    if (ring.ringing) follow(callUuid, ring.call)
    else leave(callUuid, ring.status)
  } catch {
    leave(callUuid, null)
  }
}

/** The system takes a call that it shows already for the same one. */
function show(uuid: string, handle: string, name: string | null, callType: string): void {
  shownOf(uuid)
  CallKeep.displayIncomingCall(uuid, handle, name ?? handle, 'generic', callType === 'video')
}

/** The client has the call: it follows the system's buttons, and the screen follows the call. */
function follow(uuid: string, call: Call): Call {
  const it = shownOf(uuid)
  if (it.call === call) return call
  it.call = call
  call.on('state', (state) => {
    if (state.name === 'over') leave(uuid, state.status ?? null)
    else if (state.name === 'connected' && call.direction === 'outgoing') {
      CallKeep.reportConnectedOutgoingCallWithUUID(uuid)
    }
  })
  if (it.answered) answer(uuid, call)
  return call
}

function join(uuid: string, call: Call): void {
  const media = createCallMedia(call, { environment })
  shownOf(uuid).media = media
  media.start().catch(({ code }) => {
    if (code !== 'CLOSED') console.warn(`No camera or microphone: ${code}`)
  })
}

function answer(uuid: string, call: Call): void {
  join(uuid, call)
  void call.accept()
  CallKeep.setCurrentCallActive(uuid)
}

const { ANSWERED_ELSEWHERE, DECLINED_ELSEWHERE, REMOTE_ENDED, UNANSWERED } = CONSTANTS.END_CALL_REASONS

/** Takes the call from the screen, once, and says why. */
export function leave(uuid: string, status: string | null): void {
  if (!shown.delete(uuid)) return
  const reasons: Record<string, number> = {
    accepted: ANSWERED_ELSEWHERE,
    connected: ANSWERED_ELSEWHERE,
    rejected: DECLINED_ELSEWHERE,
    missed: UNANSWERED,
    cancelled: UNANSWERED,
  }
  CallKeep.reportEndCallWithUUID(uuid, reasons[status ?? ''] ?? REMOTE_ENDED)
}

/** The buttons of the system's screen, of a headset and of a car. */
function listenToSystem(): void {
  CallKeep.addEventListener('answerCall', ({ callUUID }) => {
    const it = shownOf(callUUID)
    it.answered = true
    if (it.call) answer(callUUID, it.call)
  })
  CallKeep.addEventListener('endCall', ({ callUUID }) => {
    const { call, ticket } = shown.get(callUUID) ?? {}
    if (call) void call.end()
    else void ticket?.reject().catch(() => {})
    shown.delete(callUUID)
  })
  CallKeep.addEventListener('didPerformSetMutedCallAction', ({ callUUID, muted }) => {
    void shown.get(callUUID)?.media?.setMuted('audio', muted)
  })
  CallKeep.addEventListener('didToggleHoldCallAction', ({ callUUID, hold }) => {
    const call = shown.get(callUUID)?.call
    void (hold ? call?.hold() : call?.resume())
  })
  // CallKit owns the sound of the phone: the engine begins and ends when it says so.
  CallKeep.addEventListener('didActivateAudioSession', () => webrtc.RTCAudioSession.audioSessionDidActivate())
  CallKeep.addEventListener('didDeactivateAudioSession', () => webrtc.RTCAudioSession.audioSessionDidDeactivate())
}
