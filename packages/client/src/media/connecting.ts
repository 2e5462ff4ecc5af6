import { removeTracks } from './devices.ts'
import type { Part } from './part.ts'
import { isConnected } from './reception.ts'
import { securityCodeOf } from './security-code.ts'
import { watchFlow } from './stats.ts'
import type { MediaStats } from './types.ts'

/** While nothing flows yet, so that `connected` goes out without delay. */
const eagerLookMs = 100
/** Old servers are better than a call that waits for new ones. */
const freshServersMs = 2000

function configurationOf({ options, client }: Part): RTCConfiguration {
  const { configuration = {} } = options
  const iceServers = [...(options.iceServers ?? client?.iceServers ?? []), ...(configuration.iceServers ?? [])]
  // No candidate pool: in a connection that is milliseconds old Chromium may gather from it for ever and find nothing.
  const policy = client?.iceTransportPolicy
  return { ...configuration, iceServers, ...(policy && { iceTransportPolicy: policy }) }
}

/** A new RTCPeerConnection with the configuration of now. */
export function openConnection(part: Part): RTCPeerConnection {
  const { remote, shown, recovery, reception } = part
  const { statsIntervalMs = 1000 } = part.options
  part.stopWatching()
  const connection = new part.environment.RTCPeerConnection(configurationOf(part))
  const isCurrent = () => part.negotiation.connection() === connection && !shown.isClosed()
  connection.addEventListener('track', ({ track }) => {
    if (!isCurrent()) return
    removeTracks(remote, ({ kind }) => kind === track.kind)
    track.enabled = !part.call.held
    remote.addTrack(track)
    part.playbacks.retry()
    shown.emit('remote', remote)
  })
  connection.addEventListener('connectionstatechange', () => {
    if (!isCurrent()) return
    const { connectionState } = connection
    if (connectionState === 'connected') {
      void securityCodeOf(connection).then((securityCode) => isCurrent() && shown.change({ securityCode }))
    } else reception.interrupted()
    recovery.follow(connectionState)
  })
  part.stopWatching = watchFlow(connection, {
    looked: (stats) => isCurrent() && looked(part, stats),
    intervalMs: () => (isConnected(shown.get().name) ? statsIntervalMs : Math.min(eagerLookMs, statsIntervalMs)),
  })
  reception.interrupted()
  shown.change({ securityCode: undefined })
  recovery.opened()
  return connection
}

function looked(part: Part, stats: MediaStats): void {
  const { audio, video } = stats.inbound
  const sends = part.call.peerState.media
  part.recovery.looked(audio.packets + video.packets > 0, sends?.audio || sends?.video)
  if (stats.outbound.video.packets > 0) part.senders.flowing()
  part.reception.looked(stats)
  part.reports.looked(stats)
}

/** The connection has the ICE servers of now, from its next restart on. */
export function configure(part: Part): void {
  const connection = part.negotiation.connection()
  if (connection && connection.signalingState !== 'closed') connection.setConfiguration(configurationOf(part))
}

/** Makes an offer with new ICE credentials, on a new connection if `fresh`. */
export async function restart(part: Part, fresh: boolean): Promise<void> {
  const { client, options, shown, failed } = part
  if (client && !options.iceServers) {
    const old = new Promise((resolve) => setTimeout(resolve, freshServersMs))
    await Promise.race([client.freshIceServers().catch(failed), old])
  }
  if (shown.isClosed()) return
  configure(part)
  part.opening.opened()
  await part.negotiation.offer({ restart: true, fresh })
}
