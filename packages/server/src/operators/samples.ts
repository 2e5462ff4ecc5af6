/**
 * Collects the points of the charts on the operator's page. Each point says what happened between two looks at the metrics.
 */
import type { Family, Sample as Series } from '../observability/families.ts'

/** Between two looks. `at` is its end, in ms since the epoch; rates are a second, times are in seconds; null: nothing happened. */
export interface Point {
  readonly at: number
  readonly connections: number
  readonly calls: number
  readonly invites: number
  readonly relays: number
  readonly requests: number
  readonly errors: number
  readonly limited: number
  readonly ring_p50: number | null
  readonly connect_p50: number | null
  readonly commit_p95: number | null
  readonly loop_p95: number | null
}

export interface Samples {
  /** Points after this instant, in ms since the epoch; the oldest first. */
  after(at: number): readonly Point[]
  /** The counts since the oldest point, by their labels: refusals for a limit, and failures. */
  recent(): { readonly limited: Readonly<Record<string, number>>; readonly failed: Readonly<Record<string, number>> }
  look(): Promise<void>
  start(): void
  stop(): void
}

export interface SamplesOptions {
  readonly families: () => readonly Family[] | Promise<readonly Family[]>
  /** In ms since the epoch. */
  readonly now: () => number
}

/** How often is looked, in ms, and how many points are kept: ten minutes. */
export const everyMs = 4_000
const kept = 150

interface Look {
  readonly at: number
  readonly families: ReadonlyMap<string, readonly Series[]>
}

export function createSamples({ families, now }: SamplesOptions): Samples {
  const points: Point[] = []
  /** One more than there are points. */
  const looks: Look[] = []
  let timer: Timer | undefined

  async function look(): Promise<void> {
    const found = new Map((await families()).map(({ name, samples }) => [name, samples]))
    const latest: Look = { at: now(), families: found }
    const before = looks.at(-1)
    if (before !== undefined && latest.at <= before.at) return
    looks.push(latest)
    if (before !== undefined) points.push(pointBetween(before, latest))
    if (looks.length > kept + 1) looks.shift()
    if (points.length > kept) points.shift()
  }

  return {
    after: (at) => points.filter((point) => point.at > at),
    recent() {
      const [first, last] = [looks[0], looks.at(-1)]
      if (first === undefined || last === undefined) return { limited: {}, failed: {} }
      const grown = (name: string, label: (labels: string) => string | undefined) => growth(first, last, name, label)
      return {
        limited: grown('ringwire_limited_total', (labels) => labelOf(labels, 'limit')),
        failed: {
          ...grown('ringwire_requests_total', (labels) => {
            const result = labelOf(labels, 'result') ?? ''
            return isFailure(result) ? `${labelOf(labels, 'event')} ${result}` : undefined
          }),
          ...grown('ringwire_store_errors_total', (labels) => `${labelOf(labels, 'store')} ${labelOf(labels, 'kind')}`),
        },
      }
    },
    look,
    start() {
      // A worker that hangs, or a machine that ends, leaves a gap.
      const tryLook = () => void look().catch(() => {})
      tryLook()
      timer = setInterval(tryLook, everyMs)
      timer.unref()
    },
    stop: () => clearInterval(timer),
  }
}

function pointBetween(before: Look, after: Look): Point {
  const seconds = (after.at - before.at) / 1_000
  const rate = (name: string, isMeant: (labels: string) => boolean = () => true) =>
    round((sumOf(after, name, isMeant) - sumOf(before, name, isMeant)) / seconds)
  const requests = 'ringwire_requests_total'
  const isFailed = (labels: string) => isFailure(labelOf(labels, 'result') ?? '')
  const quantile = (share: number, name: string, isMeant?: (labels: string) => boolean) =>
    quantileOf(share, bucketsOf(before, name, isMeant), bucketsOf(after, name, isMeant))
  return {
    at: after.at,
    connections: sumOf(after, 'ringwire_connections'),
    calls: sumOf(after, 'ringwire_calls'),
    invites: rate(requests, (labels) => labelOf(labels, 'event') === 'call.invite'),
    relays: rate('ringwire_relays_total'),
    requests: rate(requests),
    errors: round(rate(requests, isFailed) + rate('ringwire_store_errors_total')),
    limited: rate('ringwire_limited_total'),
    ring_p50: quantile(0.5, 'ringwire_call_setup_seconds', (labels) => labelOf(labels, 'phase') === 'ring'),
    connect_p50: quantile(0.5, 'ringwire_call_setup_seconds', (labels) => labelOf(labels, 'phase') === 'connect'),
    commit_p95: quantile(0.95, 'ringwire_store_seconds', (labels) => labelOf(labels, 'operation') === 'commit'),
    loop_p95: quantile(0.95, 'ringwire_event_loop_delay_seconds'),
  }
}

/** Whether the service failed. A request that the client got wrong does not count. */
const isFailure = (result: string) =>
  result === 'SERVICE_UNAVAILABLE' || result === 'INTERNAL_ERROR' || /^5\d\d$/.test(result)
const round = (value: number) => Math.max(0, Math.round(value * 1_000) / 1_000)
const labelOf = (labels: string, name: string) => new RegExp(`(?:^|[{,])${name}="([^"]*)"`).exec(labels)?.[1]

function sumOf({ families }: Look, name: string, isMeant: (labels: string) => boolean = () => true): number {
  const samples = families.get(name) ?? []
  return samples.reduce((sum, [series, value]) => (isMeant(series.slice(name.length)) ? sum + value : sum), 0)
}

function growth(first: Look, last: Look, name: string, keyOf: (labels: string) => string | undefined) {
  const grown: Record<string, number> = Object.create(null)
  for (const [look, sign] of [
    [first, -1],
    [last, 1],
  ] as const) {
    for (const [series, value] of look.families.get(name) ?? []) {
      const key = keyOf(series.slice(name.length))
      if (key !== undefined) grown[key] = (grown[key] ?? 0) + sign * value
    }
  }
  return Object.fromEntries(Object.entries(grown).filter(([, count]) => count > 0))
}

/** Cumulative counts by the upper end of their bucket. */
function bucketsOf({ families }: Look, name: string, isMeant: (labels: string) => boolean = () => true) {
  const buckets = new Map<number, number>()
  for (const [series, value] of families.get(name) ?? []) {
    if (!series.startsWith(`${name}_bucket`)) continue
    const labels = series.slice(name.length + '_bucket'.length)
    const end = labelOf(labels, 'le')
    if (end === undefined || !isMeant(labels)) continue
    const bound = end === '+Inf' ? Number.POSITIVE_INFINITY : Number(end)
    buckets.set(bound, (buckets.get(bound) ?? 0) + value)
  }
  return buckets
}

/** The upper end of the bucket that the quantile is in; that of the last bound for what is beyond. */
function quantileOf(
  share: number,
  before: ReadonlyMap<number, number>,
  after: ReadonlyMap<number, number>,
): number | null {
  const grown = [...after].map(([bound, count]) => [bound, count - (before.get(bound) ?? 0)] as const)
  const total = grown.at(-1)?.[1] ?? 0
  if (total <= 0) return null
  const bounds = grown.filter(([bound]) => Number.isFinite(bound))
  const found = bounds.find(([, count]) => count >= share * total) ?? bounds.at(-1)
  return found?.[0] ?? null
}
