import type { CallType } from './backend.ts'

export type LocalMedia = { stream: MediaStream; note: string }

const camera = { width: { ideal: 1280 }, height: { ideal: 720 }, facingMode: 'user' }

/**
 * Microphone and camera, as far as there are any. A call goes on without them: who has none can still see and hear.
 */
export async function openLocalMedia(type: CallType): Promise<LocalMedia> {
  const wishes: { constraints: MediaStreamConstraints; note: string }[] = [
    { constraints: { audio: true }, note: type === 'video' ? 'No camera: you send sound only.' : '' },
  ]
  if (type === 'video') {
    wishes.unshift({ constraints: { audio: true, video: camera }, note: '' })
    wishes.push({ constraints: { video: camera }, note: 'No microphone: you send your picture only.' })
  }
  for (const { constraints, note } of wishes) {
    try {
      return { stream: await navigator.mediaDevices.getUserMedia(constraints), note }
    } catch {
      // Not there, in use or not permitted: try the next wish.
    }
  }
  return { stream: new MediaStream(), note: 'No microphone and no camera: you can see and hear, but send nothing.' }
}

export function closeLocalMedia(media: LocalMedia): void {
  for (const track of media.stream.getTracks()) track.stop()
}
