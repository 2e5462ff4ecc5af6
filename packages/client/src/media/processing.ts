import type { Slot } from './slots.ts'
import { type CallMediaOptions, MediaError } from './types.ts'

/** The time that `process` may take, in ms: perhaps it loads a model first. */
const processMs = 15_000

/** If it fails nothing is sent: a picture without the requested blur is worse than none. */
export async function processed(
  slot: Slot,
  source: MediaStreamTrack,
  process: CallMediaOptions['process'],
): Promise<MediaStreamTrack> {
  let isOver = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const work = async () => {
    const track = (await process?.(source)) ?? source
    if (isOver) track.stop()
    return track
  }
  const limit = new Promise<never>((_, reject) => {
    slot.abandon = () => {
      isOver = true
      source.stop()
      reject(new MediaError('PROCESS_TIMEOUT', 'process'))
    }
    timer = setTimeout(slot.abandon, processMs)
  })
  try {
    return await Promise.race([work(), limit])
  } catch (error) {
    source.stop()
    throw error instanceof MediaError ? error : new MediaError('FAILED', 'process failed', error)
  } finally {
    clearTimeout(timer)
  }
}
