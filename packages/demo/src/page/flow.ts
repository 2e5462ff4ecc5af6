// What really arrives, read from getStats: a connected transport proves nothing about media.

export type MediaFacts = {
  path: 'direct' | 'relay' | undefined
  roundTripMs: number | undefined
  picture: string
  /** Loudness of what is heard, 0 to 1. */
  level: number
}

type Sample = { packets: number; facts: MediaFacts }

async function sample(connection: RTCPeerConnection): Promise<Sample> {
  const facts: MediaFacts = { path: undefined, roundTripMs: undefined, picture: '', level: 0 }
  let packets = 0
  const report = await connection.getStats()
  let pairId: string | undefined
  for (const stats of report.values()) {
    if (stats.type === 'inbound-rtp') {
      packets += stats.packetsReceived ?? 0
      if (stats.kind === 'video' && stats.frameWidth) facts.picture = `${stats.frameWidth}×${stats.frameHeight}`
      if (stats.kind === 'audio') facts.level = stats.audioLevel ?? 0
    }
    if (stats.type === 'transport') pairId = stats.selectedCandidatePairId ?? pairId
    // Firefox has no transport statistics and marks the pair itself.
    if (stats.type === 'candidate-pair' && stats.selected) pairId ??= stats.id
  }
  const pair = report.get(pairId ?? '')
  const ends = [report.get(pair?.localCandidateId), report.get(pair?.remoteCandidateId)]
  if (pair) facts.path = ends.some((end) => end?.candidateType === 'relay') ? 'relay' : 'direct'
  if (pair?.currentRoundTripTime !== undefined) facts.roundTripMs = Math.round(pair.currentRoundTripTime * 1000)
  return { packets, facts }
}

/** Calls `onFlow` once, when packets arrive from one look to the next, and `onFacts` with every look; gives the stop. */
export function watchFlow(
  connection: RTCPeerConnection,
  hooks: { onFlow(): void; onFacts(facts: MediaFacts): void },
): () => void {
  let before: number | undefined
  let flowing = false
  const timer = setInterval(async () => {
    const { packets, facts } = await sample(connection)
    if (connection.connectionState === 'closed') return
    if (!flowing && before !== undefined && packets > before) {
      flowing = true
      hooks.onFlow()
    }
    before = packets
    if (flowing) hooks.onFacts(facts)
  }, 200)
  return () => clearInterval(timer)
}
