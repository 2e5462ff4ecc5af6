// Somebody who controls the service between two people, and reads what they say.
import { type CallMedia, createCallMedia } from '../../../src/media/call-media.ts'
import { createStubCalls, type StubCall } from './stub-call.ts'

/** A connection to one of the two, who takes it for the other one's. */
function connectionTo(victim: StubCall): RTCPeerConnection {
  const connection = new RTCPeerConnection()
  connection.onicecandidate = ({ candidate }) => void victim.sendCandidate(candidate)
  victim.on('candidate', (candidate) => void connection.addIceCandidate(candidate).catch(() => undefined))
  return connection
}

/** Media and messages of each side go on to the other side. */
function passOn(from: RTCPeerConnection, to: RTCRtpSender): void {
  from.addEventListener('track', ({ track }) => {
    // Chromium decodes only what somebody listens to.
    const listener = Object.assign(new Audio(), { srcObject: new MediaStream([track]), muted: true })
    void listener.play()
    void to.replaceTrack(track)
  })
}

/**
 * A call of sound, in which both descriptions are replaced on their way, fingerprints and all. Each of the two is connected
 * to the one between them, who passes on what is said.
 */
export function createBetween(): { caller: CallMedia; callee: CallMedia; errors: string[]; close(): void } {
  const [left, right] = [createStubCalls('audio'), createStubCalls('audio')]
  const [calling, answering] = [left.callAt('incoming'), right.callAt('outgoing')]
  const [toCaller, toCallee] = [connectionTo(calling), connectionTo(answering)]
  const { sender } = toCallee.addTransceiver('audio', { direction: 'sendrecv' })
  passOn(toCaller, sender)

  calling.on('offer', async (offer) => {
    await toCaller.setRemoteDescription(offer)
    const [transceiver] = toCaller.getTransceivers()
    if (!transceiver) throw new Error('nothing was offered')
    transceiver.direction = 'sendrecv'
    passOn(toCallee, transceiver.sender)
    await toCaller.setLocalDescription()
    void calling.sendAnswer({ type: 'answer', sdp: toCaller.localDescription?.sdp ?? '' })
    await toCallee.setLocalDescription()
    void answering.sendOffer({ type: 'offer', sdp: toCallee.localDescription?.sdp ?? '' })
  })
  answering.on('answer', ({ type, sdp }) => void toCallee.setRemoteDescription({ type, sdp }))

  const errors: string[] = []
  // A busy machine may take longer than usual to connect, and that would be another offer.
  const both = [left.callAt('outgoing'), right.callAt('incoming')].map((call) => {
    const media = createCallMedia(call, { connectTimeoutMs: 60_000 })
    media.on('error', (error) => errors.push(`${call.direction}: ${error.message} (${String(error.cause)})`))
    return media
  })
  return {
    ...{ caller: both[0] as CallMedia, callee: both[1] as CallMedia, errors },
    close: () => {
      for (const end of [...both, toCaller, toCallee]) end.close()
    },
  }
}
