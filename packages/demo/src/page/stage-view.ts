import type { Call } from './calls.ts'
import { byId, paintAvatar } from './dom.ts'
import { durationText } from './wording.ts'

function stateText(call: Call): string {
  if (call.interrupted) return 'Reconnecting …'
  switch (call.phase) {
    case 'calling':
      return 'Ringing …'
    case 'connecting':
      return 'Connecting …'
    default:
      return call.since === undefined ? '' : durationText((Date.now() - call.since) / 1000)
  }
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
  let shown: Call | undefined

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

  function renderCall(call: Call): void {
    byId('call-name', HTMLElement).textContent = call.peer.display_name
    paintAvatar(byId('call-avatar', HTMLElement), call.peer.display_name)
    state.textContent = stateText(call)
    show(remote, call.remote)
    show(local, call.type === 'video' ? call.local : undefined)
    local.hidden = !call.local?.getVideoTracks().length
    pressed(mute, call.muted, 'Unmute microphone', 'Mute microphone')
    pressed(camera, call.cameraOff, 'Turn camera on', 'Turn camera off')
    mute.disabled = !call.local?.getAudioTracks().length
    camera.hidden = call.type !== 'video'
    camera.disabled = !call.local?.getVideoTracks().length
    const label = call.phase === 'calling' ? 'Cancel the call' : 'Hang up'
    hangUp.setAttribute('aria-label', label)
    hangUp.title = label
  }

  return {
    render(call: Call | undefined): void {
      const onStage = call && call.phase !== 'incoming' ? call : undefined
      stage.dataset.phase = onStage?.phase ?? 'idle'
      stage.dataset.type = onStage?.type ?? ''
      stage.dataset.call = onStage?.uuid ?? ''
      stage.toggleAttribute('data-interrupted', onStage?.interrupted ?? false)
      stage.toggleAttribute('data-muted', onStage?.muted ?? false)
      stage.toggleAttribute('data-camera-off', onStage?.cameraOff ?? false)
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
    renderFacts(call: Call): void {
      const { facts } = call
      if (!facts?.path || call !== shown) return
      const words = [facts.path === 'relay' ? 'Relayed by TURN' : 'Direct', facts.picture]
      if (facts.roundTripMs !== undefined) words.push(`${facts.roundTripMs} ms`)
      path.textContent = words.filter(Boolean).join(' · ')
      path.dataset.path = facts.path
      path.hidden = false
      stage.style.setProperty('--level', facts.level.toFixed(3))
    },
    tick(): void {
      if (shown) state.textContent = stateText(shown)
    },
  }
}
