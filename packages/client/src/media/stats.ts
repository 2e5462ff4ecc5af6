import type { FlowStats, MediaKind, MediaStats } from './types.ts'

/** Counters of one moment, of one kind and direction. */
interface Counters {
  packets: number
  bytes: number
  lost: number | undefined
}

export interface Sample {
  readonly at: number
  readonly inbound: Record<MediaKind, Counters>
  readonly outbound: Record<MediaKind, Counters>
  readonly roundTripMs: number | undefined
  readonly path: 'direct' | 'relay' | undefined
  readonly audioLevel: number | undefined
  readonly picture: MediaStats['picture']
  readonly jitterMs: number | undefined
  /** Of the picture that is received, since the beginning. */
  readonly framesDropped: number | undefined
  readonly candidateTypes: MediaStats['candidateTypes']
  readonly codec: string | undefined
}

type Stats = Record<string, unknown> & { id: string; type: string; timestamp: number }

const number = (value: unknown): number => (typeof value === 'number' ? value : 0)
const optional = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)
const none = (): Counters => ({ packets: 0, bytes: 0, lost: undefined })

/** Of several streams the one that is worse. */
function greatest(before: number | undefined, value: unknown, factor = 1): number | undefined {
  return typeof value === 'number' ? Math.max(before ?? 0, Math.round(value * factor)) : before
}

function codecOf(stats: Stats | undefined): string | undefined {
  return typeof stats?.mimeType === 'string' ? stats.mimeType : undefined
}

function add(to: Counters, packets: unknown, bytes: unknown, lost?: unknown): void {
  to.packets += number(packets)
  to.bytes += number(bytes)
  if (typeof lost === 'number') to.lost = (to.lost ?? 0) + lost
}

function pairOf(all: ReadonlyMap<unknown, Stats>): Stats | undefined {
  const stats = [...all.values()]
  const transport = stats.find(({ type, selectedCandidatePairId }) => type === 'transport' && selectedCandidatePairId)
  // Firefox has no transport statistics and marks the pair itself.
  return (
    all.get(transport?.selectedCandidatePairId) ??
    stats.find(({ type, selected }) => type === 'candidate-pair' && selected)
  )
}

/** The figures of one RTCStatsReport that matter (webrtc-stats). */
export function readSample(report: Iterable<[string, unknown]>): Sample {
  const all = new Map<unknown, Stats>([...report].map(([id, stats]) => [id, stats as Stats]))
  const inbound = { audio: none(), video: none() }
  const outbound = { audio: none(), video: none() }
  let at = 0
  let audioLevel: number | undefined
  let picture: MediaStats['picture']
  let jitterMs: number | undefined
  let framesDropped: number | undefined
  let codec: string | undefined
  for (const entry of all.values()) {
    // Also where no stream is counted. The peer's reports have their own time.
    if (!entry.type.startsWith('remote-')) at = Math.max(at, entry.timestamp)
    const kind = entry.kind === 'video' ? 'video' : 'audio'
    if (entry.type === 'inbound-rtp') {
      add(inbound[kind], entry.packetsReceived, entry.bytesReceived, entry.packetsLost)
      jitterMs = greatest(jitterMs, entry.jitter, 1000)
      framesDropped = greatest(framesDropped, entry.framesDropped)
      if (kind === 'audio' || codec === undefined) codec = codecOf(all.get(entry.codecId)) ?? codec
      if (kind === 'audio') audioLevel = optional(entry.audioLevel) ?? audioLevel
      else if (typeof entry.frameWidth === 'number') {
        const framesPerSecond = number(entry.framesPerSecond)
        picture = { width: entry.frameWidth, height: number(entry.frameHeight), framesPerSecond }
      }
    } else if (entry.type === 'outbound-rtp') {
      add(outbound[kind], entry.packetsSent, entry.bytesSent)
    } else if (entry.type === 'remote-inbound-rtp') add(outbound[kind], 0, 0, entry.packetsLost)
  }
  const pair = pairOf(all)
  const types = [pair?.localCandidateId, pair?.remoteCandidateId].map((id) => all.get(id)?.candidateType)
  const [local, remote] = types
  const candidateTypes = typeof local === 'string' && typeof remote === 'string' ? { local, remote } : undefined
  const path = pair && (types.includes('relay') ? 'relay' : 'direct')
  const roundTripMs = greatest(undefined, pair?.currentRoundTripTime, 1000)
  return {
    at,
    inbound,
    outbound,
    roundTripMs,
    path,
    audioLevel,
    picture,
    jitterMs,
    framesDropped,
    candidateTypes,
    codec,
  }
}

/** Counters may fall, when a connection got another stream: then nothing is known of the interval. */
function between(before: Counters, after: Counters, ms: number, direction: 'inbound' | 'outbound'): FlowStats {
  const packets = Math.max(0, after.packets - before.packets)
  const bytes = Math.max(0, after.bytes - before.bytes)
  let loss: number | undefined
  if (before.lost !== undefined && after.lost !== undefined) {
    const lost = Math.max(0, after.lost - before.lost)
    // Lost ones are not among those received, but among those sent.
    const all = direction === 'inbound' ? packets + lost : packets
    if (all > 0) loss = Math.min(1, lost / all)
  }
  return { bitsPerSecond: ms > 0 ? Math.round((bytes * 8000) / ms) : 0, packets, loss }
}

export function compareSamples(before: Sample, after: Sample): MediaStats {
  const ms = Math.max(0, after.at - before.at)
  const both = (direction: 'inbound' | 'outbound') => ({
    audio: between(before[direction].audio, after[direction].audio, ms, direction),
    video: between(before[direction].video, after[direction].video, ms, direction),
  })
  const { at, ...now } = after
  const { framesDropped } = after
  // Counters may fall, when a connection got another stream.
  const dropped = framesDropped === undefined ? undefined : Math.max(0, framesDropped - (before.framesDropped ?? 0))
  return { ...now, framesDropped: dropped, intervalMs: ms, inbound: both('inbound'), outbound: both('outbound') }
}

/** Sound and picture, of both directions. */
export function flowsOf({ inbound, outbound }: Pick<MediaStats, 'inbound' | 'outbound'>): FlowStats[] {
  return [inbound, outbound].flatMap(({ audio, video }) => [audio, video])
}

export interface Watch {
  /** With every look but the first since it is connected. */
  looked(stats: MediaStats): void
  /** How long until the next look. */
  intervalMs(): number
}

/**
 * Whether media really arrive, read from getStats while the transport is connected, which proves nothing about media.
 * Nobody looks before: it would hold up what gets it connected. Gives the stop.
 */
export function watchFlow(connection: RTCPeerConnection, { looked, intervalMs }: Watch): () => void {
  /** Since it was connected last; undefined while it is not. */
  let watching: { before?: Sample } | undefined
  let timer: ReturnType<typeof setTimeout> | undefined

  async function look(mine: { before?: Sample }): Promise<void> {
    const report = await connection.getStats().catch(() => {})
    if (watching !== mine) return
    if (report) {
      const after = readSample(report)
      if (mine.before) looked(compareSamples(mine.before, after))
      mine.before = after
    }
    if (watching === mine) timer = setTimeout(look, intervalMs(), mine)
  }

  function follow(): void {
    clearTimeout(timer)
    watching = connection.connectionState === 'connected' ? {} : undefined
    if (watching) void look(watching)
  }

  connection.addEventListener('connectionstatechange', follow)
  return () => {
    connection.removeEventListener('connectionstatechange', follow)
    clearTimeout(timer)
    watching = undefined
  }
}
