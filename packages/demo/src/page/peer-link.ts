import type { Data } from './envelope.ts'
import { type MediaFacts, watchFlow } from './flow.ts'

export type PeerLinkOptions = {
  configuration: RTCConfiguration
  kinds: ('audio' | 'video')[]
  local: Promise<MediaStream>
  /** Candidates that came before there was a link. */
  early: RTCIceCandidateInit[]
  send(event: 'webrtc.offer' | 'webrtc.answer' | 'webrtc.ice_candidate', data: Data): void
  onRemote(stream: MediaStream): void
  onFlow(): void
  onFacts(facts: MediaFacts): void
  onState(state: RTCPeerConnectionState): void
  onError(message: string): void
}

/**
 * One RTCPeerConnection for one offer and its answer. A new offer (a peer that reloaded, a path that failed) gets a
 * new link, so nothing is ever renegotiated or rolled back.
 */
export function createPeerLink(options: PeerLinkOptions) {
  const connection = new RTCPeerConnection(options.configuration)
  const remote = new MediaStream()
  const early = [...options.early]
  let offering = false
  let described = false
  const gathered: RTCIceCandidate[] = []
  let steps: Promise<void> = Promise.resolve()
  const stopWatching = watchFlow(connection, options)

  /** One step after another: descriptions and candidates must not overtake each other while media is being opened. */
  function inTurn(what: string, step: () => Promise<void>): void {
    steps = steps.then(step).catch(() => {
      if (connection.signalingState !== 'closed') options.onError(`Could not ${what}`)
    })
  }

  function sendCandidate(candidate: RTCIceCandidate): void {
    options.send('webrtc.ice_candidate', { candidate: candidate.toJSON() })
  }

  async function describe(event: 'webrtc.offer' | 'webrtc.answer'): Promise<void> {
    await connection.setLocalDescription()
    const { type, sdp } = connection.localDescription ?? {}
    options.send(event, { sdp: { type, sdp } })
    described = true
    for (const candidate of gathered.splice(0)) sendCandidate(candidate)
  }

  async function acceptDescription(sdp: Data): Promise<void> {
    await connection.setRemoteDescription({ type: sdp.type as RTCSdpType, sdp: String(sdp.sdp) })
    for (const candidate of early.splice(0)) await addCandidate(candidate)
  }

  /** A candidate of an older offer does not fit this link's description; that is no failure. */
  async function addCandidate(candidate: RTCIceCandidateInit): Promise<void> {
    await connection.addIceCandidate(candidate).catch(() => undefined)
  }

  connection.addEventListener('icecandidate', ({ candidate }) => {
    if (!candidate) return
    if (described) sendCandidate(candidate)
    else gathered.push(candidate)
  })
  connection.addEventListener('track', ({ track }) => {
    remote.addTrack(track)
    options.onRemote(remote)
  })
  connection.addEventListener('connectionstatechange', () => options.onState(connection.connectionState))

  return {
    connection,
    openedAt: performance.now(),
    /** An offer of ours is waiting for its answer. */
    isOffering: () => offering,
    offer(): void {
      offering = true
      inTurn('make an offer', async () => {
        const stream = await options.local
        for (const kind of options.kinds) {
          const track = stream.getTracks().find((candidate) => candidate.kind === kind)
          if (track) connection.addTransceiver(track, { direction: 'sendrecv', streams: [stream] })
          else connection.addTransceiver(kind, { direction: 'recvonly' })
        }
        await describe('webrtc.offer')
      })
    },
    answer(offer: Data): void {
      inTurn('answer the offer', async () => {
        const stream = await options.local
        for (const track of stream.getTracks()) connection.addTrack(track, stream)
        await acceptDescription(offer)
        await describe('webrtc.answer')
      })
    },
    receiveAnswer(answer: Data): void {
      inTurn('take the answer', async () => {
        if (connection.signalingState !== 'have-local-offer') return
        offering = false
        await acceptDescription(answer)
      })
    },
    receiveCandidate(candidate: RTCIceCandidateInit): void {
      inTurn('take a candidate', async () => {
        if (connection.remoteDescription) await addCandidate(candidate)
        else early.push(candidate)
      })
    },
    close(): void {
      stopWatching()
      connection.close()
    },
  }
}

export type PeerLink = ReturnType<typeof createPeerLink>
