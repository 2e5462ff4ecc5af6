import type { RingwireErrorShape } from '../types.ts'
import { createCapture } from './capture.ts'
import { openConnection, restart } from './connecting.ts'
import { browserEnvironment, mediaError, removeTracks } from './devices.ts'
import { updated } from './following.ts'
import { createKeptMutes, pageStorage } from './kept-mutes.ts'
import { createMediaState } from './media-state.ts'
import { createNegotiation } from './negotiation.ts'
import { createOpening } from './opening.ts'
import type { Base, CallOfMedia, Part, Sending, Way } from './part.ts'
import { createPlaybacks } from './playback.ts'
import { createReception, passing } from './reception.ts'
import { createRecovery } from './recovery.ts'
import { createReports } from './reports.ts'
import { createSenders, type Senders } from './senders.ts'
import { createTelling } from './telling.ts'
import { type CallMediaOptions, MediaError } from './types.ts'

export function createPart(call: CallOfMedia, options: CallMediaOptions): Part {
  const environment = options.environment ?? browserEnvironment()
  const local = new environment.MediaStream()
  const remote = new environment.MediaStream()
  const shown = createMediaState(local, remote)
  const failed = (error: unknown) => shown.emit('error', error instanceof Error ? error : mediaError(error, 'media'))
  const base: Base = { call, options, client: options.client ?? call.client, environment, local, remote, shown, failed }
  const sending = createSending(base, () => updated(part))
  const playbacks = createPlaybacks(remote, { failed, updated: () => shown.change({ playback: playbacks.state() }) })
  const part: Part = {
    ...base,
    ...sending,
    ...createWay(base, sending.senders, () => part),
    playbacks,
    reception: createReception(call, shown, failed),
    reports: createReports({ send: (stats) => void call.sendStats(stats), now: () => performance.now() }),
    subscriptions: [],
    started: false,
    stopWatching() {},
  }
  // Last: a part that cannot be made claims nothing.
  part.releaseSignals = call.claimSignals?.()
  shown.change(part.capture.state())
  return part
}

function createSending(base: Base, updated: () => void): Sending {
  const { call, options, environment, local, shown, failed } = base
  const { storage, process, holdMusic } = options
  const senders = createSenders({
    stream: local,
    receives: () => (call.callType === 'video' ? ['audio', 'video'] : ['audio']),
    failed,
  })
  const kept = createKeptMutes(storage === undefined ? pageStorage() : storage, () => call.callUuid)
  const { held: wasHeld, ...muted } = kept.load()
  const capture = createCapture({
    environment,
    muted,
    held: () => call.held ?? false,
    holdMusic,
    async changed(kind, track, isScreen) {
      removeTracks(local, (old) => old.kind === kind && old !== track)
      if (track) local.addTrack(track)
      await senders.place(kind, track, isScreen)
    },
    updated,
    failed,
    process,
  })
  const tell = createTelling({
    state: shown.get,
    has: (kind) => !!capture.device(kind),
    hasMusic: !!holdMusic,
    send: (flags) => void call.sendMedia(flags),
  })
  return { senders, kept, wasHeld, capture, tell }
}

function createWay({ call, options, client, remote, failed }: Base, senders: Senders, part: () => Part): Way {
  const isPolite = () => call.direction === 'incoming'

  /** The next restart makes good any loss on the way; only a signal that can never arrive is worth a word. */
  function signal(sending: Promise<void>): void {
    sending.catch((error: RingwireErrorShape) => {
      if (!passing.has(error.code)) failed(error)
    })
  }

  const recovery = createRecovery({
    restartAfterMs: options.restartAfterMs ?? 1000,
    connectTimeoutMs: options.connectTimeoutMs ?? 6000,
    after(ms, run) {
      const timer = setTimeout(run, ms)
      return () => clearTimeout(timer)
    },
    isOnline: () => (client?.state.name ?? 'online') === 'online',
    isPolite,
    restart: ({ fresh }) => void restart(part(), fresh),
  })
  const negotiation = createNegotiation({
    open: () => openConnection(part()),
    isPolite,
    senders,
    settled(connection) {
      // The last picture of the old connection stays until there is a new one.
      const received = new Set(connection.getReceivers().map(({ track }) => track))
      removeTracks(remote, (track) => !received.has(track))
      senders.complete()
    },
    sendOffer: (sdp) => signal(call.sendOffer(sdp)),
    sendAnswer: (sdp) => signal(call.sendAnswer(sdp)),
    sendCandidate: (candidate) => signal(call.sendCandidate({ candidate: '', ...candidate })),
    failed: (error) => failed(new MediaError('NEGOTIATION_FAILED', 'Negotiation failed', error)),
  })
  const opening = createOpening({ call, earlyOffer: options.earlyOffer ?? true, recovery, negotiation })
  return { recovery, negotiation, opening }
}
