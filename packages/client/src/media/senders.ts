import { kinds } from './devices.ts'
import type { MediaKind } from './types.ts'

/** Bits per second: enough for 1280×720 in motion, and for text that is read. A camera's own default may take all there is. */
const maxBitrates = { camera: 1_700_000, screen: 2_500_000 }

type Picture = keyof typeof maxBitrates | undefined

function pictureOf(track: MediaStreamTrack | null, isScreen: boolean): Picture {
  if (!track) return undefined
  const hint = track.contentHint || (isScreen ? 'detail' : 'motion')
  return hint === 'motion' ? 'camera' : 'screen'
}

/** Faces move on where the bandwidth is small, text stays sharp. Throws if there is no encoding yet. */
async function tune(sender: RTCRtpSender, picture: Picture): Promise<void> {
  const parameters = sender.getParameters()
  const encoding = parameters.encodings[0] as RTCRtpEncodingParameters
  // Without a track Firefox sends a black frame each second, unless the encoding is off.
  encoding.active = !!picture
  if (picture) encoding.maxBitrate = maxBitrates[picture]
  const degradationPreference = picture === 'screen' ? 'maintain-resolution' : 'maintain-framerate'
  await sender.setParameters(Object.assign(parameters, { degradationPreference }))
}

export interface SendersOptions {
  /** The stream that is sent; its id tells the peer which tracks belong together. */
  stream: MediaStream
  /** Kinds that the offer asks for, also where nothing of them is sent. */
  receives(): readonly MediaKind[]
  failed(error: unknown): void
}

function transceiverOf(connection: RTCPeerConnection | undefined, kind: MediaKind): RTCRtpTransceiver | undefined {
  return connection
    ?.getTransceivers()
    .find(({ receiver, direction }) => receiver.track.kind === kind && direction !== 'stopped')
}

function letSend(target: RTCRtpTransceiver, stream: MediaStream): void {
  if (target.direction !== 'recvonly' && target.direction !== 'inactive') return
  target.direction = target.direction === 'recvonly' ? 'sendrecv' : 'sendonly'
  target.sender.setStreams?.(stream)
}

/** Each sender is tuned for the picture that it sends. */
function createTuning() {
  /** The picture that the senders are tuned for, or are about to be. */
  const tuned = new WeakMap<RTCRtpSender, Picture>()

  return (sender: RTCRtpSender, picture: Picture): void => {
    if (tuned.has(sender) && tuned.get(sender) === picture) return
    tuned.set(sender, picture)
    tune(sender, picture).catch(() => {
      if (tuned.get(sender) === picture) tuned.delete(sender)
    })
  }
}

type Tracks = Record<MediaKind, MediaStreamTrack | null>

/** One after another: what the sender has is known only when the replacement before is through. */
function createReplacing(tracks: Tracks, failed: (error: unknown) => void, replaced: () => void) {
  const replacements = new WeakMap<RTCRtpSender, Promise<void>>()

  return (sender: RTCRtpSender, kind: MediaKind): Promise<void> => {
    const before = replacements.get(sender) ?? Promise.resolve()
    const done = before
      .then(() => (sender.track === tracks[kind] ? undefined : sender.replaceTrack(tracks[kind])))
      // The peer may have refused the kind in the meantime.
      .catch(failed)
      .then(replaced)
    replacements.set(sender, done)
    return done
  }
}

/**
 * Which track goes out on which transceiver: one of each kind. The connection is made before the devices are open, and
 * a track that comes later, or instead of another, needs no negotiation.
 */
export function createSenders({ stream, receives, failed }: SendersOptions) {
  const tracks: Tracks = { audio: null, video: null }
  const wanted = new Set<MediaKind>()
  const tuneFor = createTuning()
  let isScreen = false
  let connection: RTCPeerConnection | undefined
  /** The picture is on its way on this connection. */
  let flows = false
  /** Kinds that this connection has had a transceiver for: one that the peer refused is not asked for again. */
  let asked = new Set<MediaKind>()

  function follow(next: RTCPeerConnection): void {
    if (connection === next) return
    connection = next
    asked = new Set()
    flows = false
  }

  /** Not before the picture flows: an encoder that is set up anew by then sends its first frame late. */
  function tuneVideo(): void {
    const sender = transceiverOf(connection, 'video')?.sender
    if (flows && sender) tuneFor(sender, pictureOf(tracks.video, isScreen))
  }

  const replace = createReplacing(tracks, failed, tuneVideo)

  function add(kind: MediaKind): void {
    asked.add(kind)
    const direction = wanted.has(kind) ? 'sendrecv' : 'recvonly'
    connection?.addTransceiver(tracks[kind] ?? kind, { direction, streams: [stream] })
  }

  async function put(target: RTCRtpTransceiver, kind: MediaKind): Promise<void> {
    asked.add(kind)
    if (wanted.has(kind)) letSend(target, stream)
    await replace(target.sender, kind)
  }

  return {
    /** The kinds that will be sent, though their tracks may not be there yet. */
    want(of: readonly MediaKind[]): void {
      for (const kind of of) wanted.add(kind)
    },
    equip(on: RTCPeerConnection): void {
      follow(on)
      for (const kind of kinds) if (wanted.has(kind) || receives().includes(kind)) add(kind)
    },
    attach(on: RTCPeerConnection): void {
      follow(on)
      for (const kind of kinds) {
        const offered = transceiverOf(connection, kind)
        if (offered) void put(offered, kind)
      }
    },
    /** A kind for which the peer's offer had no place is offered next. */
    complete(): void {
      for (const kind of kinds) if (wanted.has(kind) && !asked.has(kind)) add(kind)
    },
    /** Frames of the picture have left. */
    flowing(): void {
      flows = true
      tuneVideo()
    },
    /** `ofScreen`: the picture is one, whether or not its hint says so. */
    async place(kind: MediaKind, track: MediaStreamTrack | null, ofScreen: boolean): Promise<void> {
      tracks[kind] = track
      if (kind === 'video') isScreen = ofScreen
      if (track) wanted.add(kind)
      // The next connection may be on its way, and takes what is there then.
      if (connection?.signalingState === 'closed') return
      const target = transceiverOf(connection, kind)
      if (target) await put(target, kind)
      else if (track && connection?.remoteDescription) add(kind)
    },
  }
}

export type Senders = ReturnType<typeof createSenders>
