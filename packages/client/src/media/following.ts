import { configure } from './connecting.ts'
import { devicesOf, removeTracks, watchDevices } from './devices.ts'
import type { Part } from './part.ts'

const isHeld = ({ call }: Pick<Part, 'call'>) => call.held ?? false

/** What is sent, or whether it may be, is another. */
export function updated(part: Part): void {
  const { shown } = part
  if (shown.isClosed()) return
  shown.change(part.capture.state())
  part.kept.save({ ...shown.get().muted, held: isHeld(part) })
  if (part.call.state.name !== 'ringing') part.tell()
  // A page that captures may play sound.
  if (shown.get().playback === 'blocked') part.playbacks.retry()
}

/** It was put on hold, or goes on: the peer hears so first [HOLD1]. */
function held(part: Part): void {
  updated(part)
  for (const track of part.remote.getTracks()) track.enabled = !isHeld(part)
  part.capture.refresh().catch(part.failed)
}

/** The call goes on, or is over. */
export function proceed(part: Part): void {
  if (part.call.state.name === 'over') {
    part.kept.forget()
    part.reports.end()
    close(part)
  } else {
    updated(part)
    part.opening.proceed()
  }
}

/** Follows the call, its client and the devices from now on. */
export function listen(part: Part): void {
  const { call, client, environment, negotiation, opening, subscriptions } = part
  subscriptions.push(
    call.on('offer', (sdp) => {
      opening.opened()
      void negotiation.receiveOffer(sdp)
    }),
    call.on('answer', (sdp) => void negotiation.receiveAnswer(sdp)),
    call.on('candidate', ({ ...candidate }) => void negotiation.receiveCandidate(candidate)),
    call.on('state', () => proceed(part)),
    call.on('held', () => held(part)),
    call.on('resynced', ({ restored }) => opening.resynced(restored)),
  )
  if (client) {
    subscriptions.push(
      client.on('iceServers', () => configure(part)),
      client.on('state', ({ name }) => {
        if (name === 'online') part.recovery.online()
      }),
    )
  }
  subscriptions.push(
    watchDevices(environment, () => {
      void part.capture.mend()
      devicesOf(environment).then((list) => part.shown.emit('devices', list), part.failed)
    }),
  )
}

export function close(part: Part): void {
  const { shown, capture } = part
  if (shown.isClosed()) return
  part.recovery.stop()
  part.opening.close()
  part.stopWatching()
  for (const unsubscribe of part.subscriptions.splice(0)) unsubscribe()
  part.negotiation.close()
  capture.close()
  part.playbacks.close()
  part.releaseSignals?.()
  for (const stream of [part.local, part.remote]) removeTracks(stream, () => true)
  const receiving = { audio: false, video: false }
  shown.change({ ...capture.state(), name: 'closed', receiving, quality: 'unknown', securityCode: undefined })
}
