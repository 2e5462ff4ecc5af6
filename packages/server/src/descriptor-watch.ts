/** What the service does when file descriptors run out [MET2]. */
import { closeSync, openSync } from 'node:fs'
import type { Listener } from './listen.ts'
import type { Descriptors } from './observability/descriptors.ts'
import type { Logger } from './observability/logger.ts'
import { every } from './time/alarms.ts'

const lookMs = 100
/** The port is closed after this number of looks in a row that find hardly any left. */
const patience = 3
/** The log says that there are some again when there were some all this time, in ms. */
const settledMs = 10_000
/** The pause after an attempt to open the port again that failed; each further one doubles it, up to the most. In ms. */
const retryMs = { first: 200, most: 5_000 }
/** Given back when not even the listener for operators could accept. */
const spareCount = 8

/**
 * Says when descriptors run out and when there are some again, and closes connections that wait for another request.
 * Connections that say nothing cannot be refused: while they hold nearly all that is left, the port is closed, so that stores
 * and the listener for operators go on. The runtime ends such connections after 12 s.
 */
export function watchDescriptors(
  descriptors: Descriptors,
  listener: Pick<Listener, 'pause' | 'resume' | 'closeIdle'>,
  logger: Logger,
): () => void {
  if (descriptors.limit === undefined) return () => {}
  const limit = String(descriptors.limit)
  let spare = takeSpare()
  let isLow = false
  let lowAt = Number.NEGATIVE_INFINITY
  let looksOut = 0
  let isPaused = false
  /** How long the next attempt to open the port waits, and until when; 0 where none has failed. */
  let waitMs = 0
  let resumeAt = 0

  function look(): void {
    const room = descriptors.room()
    // A newcomer who was refused may have left the last descriptor free again before this look.
    const isRefusing = descriptors.hasRefused()
    tell(isRefusing || room !== 'free', performance.now())
    if (room !== 'free') listener.closeIdle()
    looksOut = room === 'out' ? looksOut + 1 : 0
    if (looksOut >= patience && !isPaused) pause()
    else if (isPaused && (room === 'free' || room === 'low')) resume(performance.now())
  }

  /** Each of the two at most once in 10 s. */
  function tell(isLowNow: boolean, now: number): void {
    if (isLowNow) lowAt = now
    if (isLowNow === isLow || (isLow && now - lowAt < settledMs)) return
    isLow = isLowNow
    const fields = { count: descriptors.open(), limit }
    if (isLow) logger.warn(fields, 'file descriptors run out: newcomers are refused')
    else logger.warn(fields, 'there are file descriptors again')
  }

  function pause(): void {
    isPaused = true
    listener.pause()
    logger.warn({ count: descriptors.open(), limit }, 'hardly any file descriptor is left: the port is closed for now')
    for (const descriptor of spare.splice(0)) closeSync(descriptor)
  }

  /** Another process may have taken the port meanwhile: that is said once. */
  function resume(now: number): void {
    if (now < resumeAt) return
    try {
      listener.resume()
    } catch (error) {
      if (waitMs === 0) logger.error({ error }, 'the port cannot be opened again')
      waitMs = Math.min(retryMs.most, waitMs === 0 ? retryMs.first : 2 * waitMs)
      resumeAt = now + waitMs
      return
    }
    if (waitMs > 0) logger.warn({}, 'the port is open again')
    waitMs = resumeAt = 0
    isPaused = false
    spare = takeSpare()
  }

  const stop = every(lookMs, look)
  return () => {
    stop()
    for (const descriptor of spare.splice(0)) closeSync(descriptor)
  }
}

function takeSpare(): number[] {
  try {
    return Array.from({ length: spareCount }, () => openSync('/dev/null', 'r'))
  } catch {
    return []
  }
}
