// Everything that this page does about calls. The rest of the page shows it.

import { createCallClient } from '@ringwire/client'
import { type CallMedia, createCallMedia } from '@ringwire/client/media'
import type { MediaKind, MediaStats } from '@ringwire/client/media/types'
import type { Call, CallState, ConnectionState, SessionToken, WebSocketConstructor } from '@ringwire/client/types'
import type { CallType, Peer } from './backend.ts'
import { keepMuted, loadMuted } from './muted.ts'
import { createReception, type Reception } from './reception.ts'

/** incoming: it rings here; calling: it rings at the other side; connecting: answered; live: media has come. */
export type Phase = 'incoming' | 'calling' | 'connecting' | 'live'
export type Over = Extract<CallState, { name: 'over' }>

/** The call that this page is in. A change is a new object. */
export type Line = {
  readonly call: Call
  readonly phase: Phase
  readonly media: CallMedia | undefined
  /** When media first came, in ms since the epoch. */
  readonly since: number | undefined
  readonly reception: Reception
}

export type PhoneOptions = {
  getToken(): Promise<SessionToken>
  WebSocket: WebSocketConstructor
  relayOnly: boolean
  onState(state: ConnectionState): void
  onLine(line: Line | undefined): void
  onOver(line: Line, state: Over): void
  /** The service has committed that this page hung up. */
  onHungUp(): void
  onStats(stats: MediaStats): void
  onNote(note: string): void
}

/** Twice as often as the SDK does by itself: a picture that stands still is to be told soon. */
const statsIntervalMs = 500

const camera = { width: { ideal: 1280 }, height: { ideal: 720 }, facingMode: 'user' }

export function createPhone(options: PhoneOptions) {
  // With `storage` a page that is loaded again goes on with its call.
  const client = createCallClient({
    getToken: options.getToken,
    WebSocket: options.WebSocket,
    storage: sessionStorage,
  })
  let line: Line | undefined

  function show(change: Partial<Line> = {}): void {
    if (!line) return
    const next = { ...line, ...change }
    line = { ...next, phase: phaseOf(next) }
    options.onLine(line)
  }

  /** One call at a time is enough for a demo; the SDK can hold several. */
  function hold(call: Call): void {
    line = { call, phase: 'connecting', media: undefined, since: undefined, reception: 'all' }
    call.on('state', (state) => {
      if (line?.call !== call) return
      if (state.name !== 'over') {
        // Its uuid may have changed [INV6, INV7].
        if (line.media) keepMuted(call.callUuid, line.media.state.muted)
        return show()
      }
      const ended = line
      line = undefined
      options.onLine(undefined)
      options.onOver(ended, state)
    })
    show()
  }

  /** Media closes itself when the call is over. */
  function join(call: Call): void {
    const configuration: RTCConfiguration = options.relayOnly ? { iceTransportPolicy: 'relay' } : {}
    const media = createCallMedia(call, { client, configuration, statsIntervalMs })
    const receive = createReception()
    const isShown = () => line?.call === call
    media.on('state', ({ name }) => {
      if (isShown()) show(name === 'flowing' ? { since: line?.since ?? Date.now() } : {})
    })
    media.on('stats', (stats) => {
      if (!isShown()) return
      const reception = receive(stats)
      if (reception !== line?.reception) show({ reception })
      options.onStats(stats)
    })
    media.on('error', ({ message }) => options.onNote(message))
    show({ media })
    // Before any device is open: nothing of what is muted is ever sent.
    const muted = loadMuted(call.callUuid)
    for (const kind of ['audio', 'video'] as const) if (muted[kind]) void media.setMuted(kind, true)
    void openDevices(media, call.callType).then(show)
  }

  /** A call goes on without devices: who has none can still see and hear. */
  async function openDevices(media: CallMedia, callType: string): Promise<undefined> {
    const wishes: [MediaStreamConstraints, string][] =
      callType === 'video'
        ? [
            [{ audio: true, video: camera }, ''],
            [{ audio: true }, 'No camera: you send sound only.'],
            [{ video: camera }, 'No microphone: you send your picture only.'],
          ]
        : [[{ audio: true }, '']]
    for (const [devices, note] of wishes) {
      try {
        await media.start(devices)
        if (note) options.onNote(note)
        return
      } catch {
        // Not there, in use or not permitted: try the next wish.
        if (media.state.name === 'closed') return
      }
    }
    options.onNote('No microphone and no camera: you can see and hear, but send nothing.')
  }

  client.on('state', options.onState)
  client.on('error', ({ code, message }) => options.onNote(`${code}: ${message}`))
  client.on('incoming', (call) => {
    if (line) {
      void call.reject('busy')
      return
    }
    hold(call)
    void call.alerting()
  })
  client.on('restored', (call) => {
    hold(call)
    join(call)
  })

  return {
    start: client.connect,
    stop: client.close,
    isOnline: () => client.state.name === 'online',
    line: () => line,

    call({ user_id, role, display_name }: Peer, callType: CallType): void {
      if (line) return
      const call = client.call({ userId: user_id, role, displayName: display_name, callType })
      hold(call)
      join(call)
    },
    accept(): void {
      if (line?.phase !== 'incoming') return
      join(line.call)
      void line.call.accept()
    },
    hangUp: () => void line?.call.end().then(options.onHungUp, options.onHungUp),
    toggle(kind: MediaKind): void {
      if (!line?.media) return
      const { call, media } = line
      const muted = { ...media.state.muted, [kind]: !media.state.muted[kind] }
      keepMuted(call.callUuid, muted)
      void media.setMuted(kind, muted[kind]).then(() => show())
    },
    /** The history knows since when; a page that was loaded again does not. */
    hasLastedSince(since: number): void {
      if (line?.since !== undefined && since < line.since) show({ since })
    },
  }
}

/** As the page's own backend writes people. */
export function peerOf({ call: { peer } }: Line): Peer {
  return { user_id: peer.userId, role: peer.role, display_name: peer.displayName ?? peer.userId }
}

function phaseOf({ call, since }: Line): Phase {
  if (call.state.name !== 'ringing') return since === undefined ? 'connecting' : 'live'
  if (call.state.direction === 'outgoing') return 'calling'
  return call.state.answering ? 'connecting' : 'incoming'
}
