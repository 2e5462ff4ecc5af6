import type { MediaStats } from '@ringwire/client/media/types'
import { byId, paintAvatar } from './dom.ts'
import { type Line, peerOf } from './phone.ts'
import { durationText } from './wording.ts'

function stateText({ call, phase, media, since, reception }: Line): string {
  if (media?.state.name === 'interrupted') return 'Reconnecting …'
  if (phase === 'calling') {
    return call.state.name === 'ringing' && call.state.direction === 'outgoing' && call.state.alerting
      ? 'Ringing …'
      : 'Calling …'
  }
  if (since === undefined) return 'Connecting …'
  return reception === 'nothing' ? 'Nothing arrives …' : durationText((Date.now() - since) / 1000)
}

function show(video: HTMLVideoElement, stream: MediaStream | undefined): void {
  if (video.srcObject !== (stream ?? null)) video.srcObject = stream ?? null
}

/** The call itself: both pictures, who it is, and the buttons. */
export function createStageView(actions: { hangUp(): void; mute(): void; camera(): void }) {
  const stage = byId('stage', HTMLElement)
  const remote = byId('remote-video', HTMLVideoElement)
  const local = byId('local-video', HTMLVideoElement)
  const mute = byId('mute', HTMLButtonElement)
  const camera = byId('camera', HTMLButtonElement)
  const hangUp = byId('hangup', HTMLButtonElement)
  const state = byId('call-state', HTMLElement)
  const path = byId('call-path', HTMLElement)
  const noPicture = byId('no-picture', HTMLElement)
  let shown: Line | undefined

  mute.addEventListener('click', actions.mute)
  camera.addEventListener('click', actions.camera)
  hangUp.addEventListener('click', actions.hangUp)
  remote.addEventListener('loadedmetadata', () => void remote.play().catch(() => undefined))

  function pressed(button: HTMLButtonElement, on: boolean, onLabel: string, offLabel: string): void {
    const label = on ? onLabel : offLabel
    button.setAttribute('aria-pressed', String(on))
    button.setAttribute('aria-label', label)
    button.title = label
  }

  function renderCall(line: Line): void {
    const { display_name } = peerOf(line)
    const media = line.media?.state
    const isVideo = line.call.callType === 'video'
    byId('call-name', HTMLElement).textContent = display_name
    paintAvatar(byId('call-avatar', HTMLElement), display_name)
    state.textContent = stateText(line)
    show(remote, media?.remote)
    show(local, isVideo ? media?.local : undefined)
    local.hidden = !media?.local.getVideoTracks().length
    pressed(mute, media?.muted.audio ?? false, 'Unmute microphone', 'Mute microphone')
    pressed(camera, media?.muted.video ?? false, 'Turn camera on', 'Turn camera off')
    mute.disabled = !media?.local.getAudioTracks().length
    camera.hidden = !isVideo
    camera.disabled = !media?.muted.video && !media?.local.getVideoTracks().length
    const label = line.phase === 'calling' ? 'Cancel the call' : 'Hang up'
    hangUp.setAttribute('aria-label', label)
    hangUp.title = label
  }

  return {
    render(line: Line | undefined): void {
      const onStage = line && line.phase !== 'incoming' ? line : undefined
      const media = onStage?.media?.state
      // Why none comes cannot be told from here: a camera that is off, that is missing or that hangs.
      const hasNoPicture = onStage?.phase === 'live' && onStage.reception !== 'all' && onStage.call.callType === 'video'
      stage.dataset.phase = onStage?.phase ?? 'idle'
      stage.dataset.type = onStage?.call.callType ?? ''
      stage.dataset.call = onStage?.call.callUuid ?? ''
      stage.toggleAttribute('data-interrupted', media?.name === 'interrupted')
      stage.toggleAttribute('data-no-picture', hasNoPicture)
      noPicture.hidden = !hasNoPicture
      stage.toggleAttribute('data-muted', media?.muted.audio ?? false)
      stage.toggleAttribute('data-camera-off', media?.muted.video ?? false)
      if (onStage) renderCall(onStage)
      else for (const video of [remote, local]) show(video, undefined)
      if (!onStage) {
        path.hidden = true
        stage.style.removeProperty('--level')
      }
      // The hang-up button never gets the focus by itself: the Enter that started the call may still be held.
      if (onStage && !shown) hangUp.parentElement?.focus()
      shown = onStage
    },
    renderStats({ path: taken, picture, roundTripMs, audioLevel = 0 }: MediaStats): void {
      if (!taken || !shown) return
      const words = [taken === 'relay' ? 'Relayed by TURN' : 'Direct']
      if (picture && shown.reception === 'all') words.push(`${picture.width}×${picture.height}`)
      if (roundTripMs !== undefined) words.push(`${Math.round(roundTripMs)} ms`)
      path.textContent = words.join(' · ')
      path.dataset.path = taken
      path.hidden = false
      stage.style.setProperty('--level', audioLevel.toFixed(3))
    },
    tick(): void {
      if (shown) state.textContent = stateText(shown)
    },
  }
}
