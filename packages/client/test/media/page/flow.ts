import type { CallMedia } from '../../../src/media/call-media.ts'

export interface FlowWindow {
  ms: number
  audio: number
  video: number
}

export interface Totals {
  audioPackets: number
  videoPackets: number
  /** Sum of squares of the sound from the peer. */
  audioEnergy: number
  framesDecoded: number
  framesReceived: number
  width: number
}

/**
 * The statistics of the connection of now; none without one, and none if another takes its place meanwhile. Firefox never
 * answers for a connection that is closed while it reads them.
 */
function statsOf(media: CallMedia): Promise<RTCStatsReport | Map<string, never>> {
  const { connection } = media
  if (!connection) return Promise.resolve(new Map())
  return new Promise((resolve, reject) => {
    const timer = setInterval(() => {
      if (media.connection !== connection) resolve(new Map())
    }, 50)
    void connection
      .getStats()
      .then(resolve, reject)
      .finally(() => clearInterval(timer))
  })
}

export async function totals(media: CallMedia): Promise<Totals & { at: number }> {
  const sum = { at: 0, audioPackets: 0, videoPackets: 0, audioEnergy: 0, framesDecoded: 0, framesReceived: 0, width: 0 }
  for (const [, stats] of await statsOf(media)) {
    if (stats.type !== 'inbound-rtp') continue
    sum.at = Math.max(sum.at, stats.timestamp)
    if (stats.kind === 'audio') {
      sum.audioPackets += stats.packetsReceived
      sum.audioEnergy += stats.totalAudioEnergy ?? 0
    } else {
      sum.videoPackets += stats.packetsReceived
      sum.framesDecoded += stats.framesDecoded ?? 0
      sum.framesReceived += stats.framesReceived ?? 0
      sum.width = stats.frameWidth ?? 0
    }
  }
  return sum
}

/** How much sound and picture was sent on the connection of now, per stream. */
export async function bytesSent(media: CallMedia): Promise<number[]> {
  const report = await statsOf(media)
  return [...report.values()].filter(({ type }) => type === 'outbound-rtp').map(({ bytesSent }) => bytesSent)
}

/**
 * Packets that arrived, per kind, in windows of at least 500 ms. The windows are measured by the timestamps of the
 * statistics themselves, so a slow machine makes them longer but never empties them.
 */
export async function measureFlow(media: CallMedia, windows: number, timeoutMs = 60_000): Promise<FlowWindow[]> {
  const deadline = performance.now() + timeoutMs
  const found: FlowWindow[] = []
  let last = await totals(media)
  while (found.length < windows) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    const now = await totals(media)
    const ms = now.at - last.at
    // A connection that was replaced counts from nothing, and so may a stream after a negotiation.
    const isAnew = last.at === 0 || now.audioPackets < last.audioPackets || now.videoPackets < last.videoPackets
    if (ms < 0 || isAnew) last = now
    if (performance.now() > deadline) throw new Error(`Nothing to measure: ${describe(media)}`)
    if (ms < 500 || isAnew) continue
    found.push({ ms, audio: now.audioPackets - last.audioPackets, video: now.videoPackets - last.videoPackets })
    last = now
  }
  return found
}

/** Resolves when something of each kind has come since this was called; after a new path, or a new page, that takes a moment. */
export async function arriving(media: CallMedia, kinds: readonly ('audio' | 'video')[], ms = 30_000): Promise<void> {
  const deadline = performance.now() + ms
  let first = await totals(media)
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    const now = await totals(media)
    if (kinds.every((kind) => now[`${kind}Packets`] > first[`${kind}Packets`])) return
    if (now.audioPackets < first.audioPackets || now.videoPackets < first.videoPackets) first = now
    if (performance.now() > deadline) throw new Error(`Nothing arrives: ${describe(media)}`)
  }
}

export async function until(isTrue: () => boolean, timeoutMs = 30_000): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!isTrue()) {
    if (performance.now() > deadline) throw new Error(`Never true: ${isTrue}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

export function flowing(media: CallMedia, timeoutMs = 30_000): Promise<void> {
  return new Promise((resolve, reject) => {
    if (media.state.name === 'flowing') return resolve()
    const timer = setTimeout(() => reject(new Error(`No media in time: ${describe(media)}`)), timeoutMs)
    media.on('state', ({ name }) => {
      if (name !== 'flowing') return
      clearTimeout(timer)
      resolve()
    })
  })
}

export function describe(media: CallMedia): string {
  const { connection } = media
  return `${media.state.name}, ${connection?.connectionState}, ${connection?.signalingState}`
}
