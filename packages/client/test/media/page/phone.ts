// A small phone on the real client: it answers every call, and goes on with a call that it finds after a reload.
import { createCallClient } from '../../../src/client.ts'
import { type CallMedia, type CallMediaOptions, createCallMedia } from '../../../src/media/call-media.ts'
import { createTake, takeCapabilities } from '../../../src/take.ts'
import { carryMutes, createTransfers, transferCapabilities } from '../../../src/transfer.ts'
import type { Call } from '../../../src/types.ts'
import { arriving, bytesSent, flowing, measureFlow, totals, until } from './flow.ts'

const query = new URLSearchParams(location.search)
const options: CallMediaOptions = {
  earlyOffer: !query.has('late'),
  ...(query.has('relay') ? { configuration: { iceTransportPolicy: 'relay' } } : {}),
}

let socket: WebSocket | undefined
class Socket extends WebSocket {
  constructor(url: string, protocols: string[]) {
    super(url, protocols)
    socket = this
  }
}

const client = createCallClient({
  WebSocket: Socket,
  getToken: async () => {
    const token = await (await fetch(`/token${location.search}`)).json()
    // A client that knows nothing of the policy.
    if (query.has('unaware')) delete token.ice_transport_policy
    return token
  },
  can: [...(query.has('takes') ? takeCapabilities : []), ...(query.has('transfers') ? transferCapabilities : [])],
  ...(query.has('forget') ? {} : { storage: sessionStorage }),
})

const takes = createTake(client)
const transfers = createTransfers(client)
let ufragBefore: string | undefined
let connectionBefore: RTCPeerConnection | undefined
const ufrag = () =>
  /a=ice-ufrag:(\S+)/.exec(phone.media?.connection?.currentLocalDescription?.sdp ?? '')?.[1] ?? undefined

const phone = {
  client,
  transfers,
  call: undefined as Call | undefined,
  media: undefined as CallMedia | undefined,
  errors: [] as string[],
  /** When media first flowed, by this page's clock. */
  flowedAt: undefined as number | undefined,
  take(call: Call, before?: CallMedia): CallMedia {
    const media = createCallMedia(call, { client, ...options })
    if (before) carryMutes(before, media)
    phone.call = call
    phone.media = media
    media.on('error', (error) => phone.errors.push(`${error.message} (${String(error.cause)})`))
    media.on('state', ({ name }) => {
      if (name === 'flowing') phone.flowedAt ??= Date.now()
    })
    void media.start().catch((error) => {
      // A call may be over before its devices are open.
      if (error.code !== 'CLOSED') phone.errors.push(String(error))
    })
    return media
  },
  /** Goes on here with the call that is at another device. */
  async takeOver(): Promise<void> {
    await until(() => takes.calls.length > 0, 20_000)
    phone.take(takes.calls[0]!.take())
  },
  dial(userId: string, role: string, callType: string): void {
    phone.take(client.call({ userId, role, callType }))
  },
  /** The socket breaks; the client connects again by itself. */
  cut: () => socket?.close(3000),
  flowing: () => flowing(phone.media as CallMedia, 20_000),
  noteRestart(): void {
    ufragBefore = ufrag()
  },
  noteConnection(): void {
    connectionBefore = phone.media?.connection
  },
  isSameConnection: () => phone.media?.connection === connectionBefore,
  /** ICE has other credentials than at `noteRestart`, and its path is up. */
  restarted: () =>
    until(() => {
      const { connectionState, signalingState } = phone.media?.connection ?? {}
      return ufrag() !== ufragBefore && connectionState === 'connected' && signalingState === 'stable'
    }, 25_000),
  arriving: (kinds: readonly ('audio' | 'video')[]) => arriving(phone.media as CallMedia, kinds),
  measureFlow: (windows: number) => measureFlow(phone.media as CallMedia, windows),
  totals: () => totals(phone.media as CallMedia),
  pause: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms)),
  bytesSent: () => bytesSent(phone.media as CallMedia),
  until,
}

client.on('error', (error) => phone.errors.push(error.message))
transfers.on('moved', ({ call }) => phone.take(call, phone.media))
client.on('restored', (call) => {
  // The new call of a transfer is taken when it is answered.
  if (!transfers.origin(call) || call.state.name !== 'ringing') phone.take(call)
})
client.on('incoming', (call) => {
  if (query.has('silent')) {
    phone.call = call
    return
  }
  phone.take(call)
  void call.accept()
})
client.connect()

// Browsers give the screen only to a page that was clicked.
const share = document.createElement('button')
share.id = 'share'
share.textContent = 'Share'
share.onclick = () => void phone.media?.shareScreen().catch((error) => phone.errors.push(String(error)))
document.body.append(share)

Object.assign(window, { phone })

declare global {
  interface Window {
    phone: typeof phone
  }
}
