/**
 * Sends spans to a collector, some at a time [OTEL1]. Nothing waits for it: what is too much, or what the collector does not
 * take, is dropped and counted.
 */
import type { Family } from '../observability/families.ts'
import { type Counter, createCounter } from '../observability/series.ts'

export interface ExporterOptions {
  /** The URL for spans, as http://127.0.0.1:4318/v1/traces. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** The text before the spans of a request, and after them. */
  readonly envelope: readonly [string, string]
  /** The collector takes nothing: said once. `cause` names no address. */
  readonly onLost: (cause: string) => void
  /** It takes spans again, and this many were dropped meanwhile. */
  readonly onBack: (dropped: number) => void
  readonly limits?: Partial<ExporterLimits>
}

export interface ExporterLimits {
  /** The most spans, and characters of spans, that wait. */
  readonly waiting: number
  readonly waitingChars: number
  /** The most spans of a request. So many that wait are sent at once. */
  readonly batch: number
  /** How long a span waits for others, in ms. */
  readonly everyMs: number
  /** How long a request may take, in ms. */
  readonly timeoutMs: number
  /** The pause after a request that failed; each further one doubles it, up to the most. In ms. */
  readonly pauseMs: number
  readonly longestPauseMs: number
  /** How many times a batch is sent. */
  readonly attempts: number
}

const usual: ExporterLimits = {
  waiting: 20_000,
  waitingChars: 16 * 1024 * 1024,
  batch: 1_000,
  everyMs: 1_000,
  timeoutMs: 10_000,
  pauseMs: 1_000,
  longestPauseMs: 30_000,
  attempts: 10,
}

/** The answer of a collector is read up to here, in bytes. */
const mostReadBytes = 64 * 1024

export interface Exporter {
  /** Takes a span as text, or drops it. */
  add(span: string): void
  start(): void
  /** Sends what waits, for at most `limitMs`. */
  stop(limitMs: number): Promise<void>
  families(): Family[]
}

/** `again`: the same may succeed later, not before `afterMs`. */
type Outcome =
  | { readonly is: 'taken'; readonly refused: number }
  | { readonly is: 'again'; readonly cause: string; readonly afterMs?: number }
  | { readonly is: 'refused'; readonly cause: string }

export function createExporter(options: ExporterOptions): Exporter {
  const limits = { ...usual, ...options.limits }
  const counter = createSpanCounter()
  const waiting = createQueue(limits)
  const stopping = new AbortController()
  const { settle, drop, hasPaused, end } = createSettling(options, limits, waiting, counter)
  let sending: Promise<void> | undefined
  let timer: ReturnType<typeof setInterval> | undefined

  async function sendAll(isDue: () => boolean): Promise<void> {
    while (waiting.size() > 0 && isDue()) {
      const spans = waiting.first(limits.batch)
      settle(spans.length, await post(options, spans, limits.timeoutMs, stopping.signal))
    }
  }

  /** One request after another. */
  function begin(isDue: () => boolean): void {
    sending ??= sendAll(isDue).finally(() => {
      sending = undefined
    })
  }

  const isBatch = () => waiting.size() >= limits.batch && hasPaused()
  return {
    add(span) {
      if (!waiting.put(span)) drop(1)
      else if (isBatch()) begin(isBatch)
    },
    start() {
      timer = setInterval(() => {
        if (hasPaused()) begin(hasPaused)
      }, limits.everyMs)
      timer.unref()
    },
    async stop(limitMs) {
      clearInterval(timer)
      const late = setTimeout(() => stopping.abort(), limitMs)
      await sending
      // Each batch once more, also if the last request has just failed.
      let tries = Math.ceil(waiting.size() / limits.batch)
      await sendAll(() => tries-- > 0 && !stopping.signal.aborted)
      clearTimeout(late)
      if (waiting.size() > 0) drop(waiting.size())
      end()
    },
    families: () => [counter.family()],
  }
}

/** The consequence of a request's end: when the next one goes, and what is dropped. */
function createSettling(options: ExporterOptions, limits: ExporterLimits, waiting: Queue, counter: Counter) {
  const outage = createOutage(options)
  let attempts = 0
  let notBefore = 0

  function drop(count: number): void {
    counter.add(count, 'dropped')
    outage.dropped(count)
  }

  function taken(count: number, refused: number): void {
    attempts = notBefore = 0
    waiting.remove(count)
    counter.add(count - refused, 'sent')
    counter.add(refused, 'refused')
    outage.over()
  }

  function failed(count: number, outcome: Exclude<Outcome, { is: 'taken' }>): void {
    outage.lost(outcome.cause)
    const pauseMs = limits.pauseMs * 2 ** attempts
    const afterMs = outcome.is === 'again' ? (outcome.afterMs ?? 0) : 0
    notBefore = performance.now() + Math.min(limits.longestPauseMs, Math.max(afterMs, pauseMs))
    if (outcome.is === 'again' && ++attempts < limits.attempts) return
    attempts = 0
    waiting.remove(count)
    if (outcome.is === 'refused') counter.add(count, 'refused')
    else drop(count)
  }

  return {
    settle: (count: number, outcome: Outcome) =>
      outcome.is === 'taken' ? taken(count, outcome.refused) : failed(count, outcome),
    drop,
    hasPaused: () => performance.now() >= notBefore,
    end: outage.end,
  }
}

/** As it is at the start: also what the dashboard is tested by. */
export function createSpanCounter() {
  const counter = createCounter(
    'ringwire_trace_spans_total',
    ['result'],
    'Spans by what became of them: sent, refused by the collector, or dropped because it did not take them in time.',
  )
  for (const result of ['sent', 'refused', 'dropped']) counter.add(0, result)
  return counter
}

type Queue = ReturnType<typeof createQueue>

/** Oldest first. Spans that were taken from its front stay until they are removed. */
function createQueue({ waiting: most, waitingChars: mostChars }: ExporterLimits) {
  let spans: string[] = []
  let begin = 0
  let chars = 0
  const size = () => spans.length - begin
  return {
    size,
    put(span: string): boolean {
      if (size() >= most || chars + span.length > mostChars) return false
      spans.push(span)
      chars += span.length
      return true
    },
    first: (count: number) => spans.slice(begin, begin + count),
    remove(count: number): void {
      for (const span of spans.slice(begin, begin + count)) chars -= span.length
      begin += count
      // An array is not moved for each batch.
      if (begin < spans.length && begin < most) return
      spans = spans.slice(begin)
      begin = 0
    },
  }
}

/** Says once that the collector takes nothing, and once that it does again. */
function createOutage({ onLost, onBack }: Pick<ExporterOptions, 'onLost' | 'onBack'>) {
  let isLost = false
  let dropped = 0
  return {
    dropped(count: number): void {
      dropped += count
    },
    lost(cause: string): void {
      if (!isLost) onLost(cause)
      isLost = true
    },
    over(): void {
      if (isLost) onBack(dropped)
      isLost = false
      dropped = 0
    },
    end(): void {
      if (dropped > 0) onLost(`${dropped} spans were dropped`)
    },
  }
}

/** As OTLP says: what may be sent again, and what the collector did not take of what it answered with 200. */
const againStatuses = new Set([429, 502, 503, 504])

async function post(
  { url, headers, envelope }: ExporterOptions,
  spans: readonly string[],
  timeoutMs: number,
  stopping: AbortSignal,
): Promise<Outcome> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'Ringwire', ...headers },
      body: envelope[0] + spans.join(',') + envelope[1],
      redirect: 'manual',
      signal: AbortSignal.any([stopping, AbortSignal.timeout(timeoutMs)]),
    })
    const { status } = response
    const text = await beginOf(response)
    if (response.ok) return { is: 'taken', refused: Math.min(spans.length, refusedIn(text)) }
    const cause = `status ${status}`
    if (!againStatuses.has(status)) return { is: 'refused', cause }
    const seconds = Number(response.headers.get('retry-after') ?? 0)
    return { is: 'again', cause, ...(seconds > 0 && { afterMs: seconds * 1_000 }) }
  } catch (error) {
    const { name, code } = error as NodeJS.ErrnoException
    return { is: 'again', cause: name === 'TimeoutError' ? 'timeout' : (code ?? name) }
  }
}

/** A collector is trusted with spans, and not with memory. */
async function beginOf({ body }: Response): Promise<string> {
  if (body === null) return ''
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    chunks.push(chunk)
    size += chunk.length
    if (size > mostReadBytes) break
  }
  return Buffer.concat(chunks).toString('utf8')
}

function refusedIn(text: string): number {
  try {
    const refused = Number(JSON.parse(text)?.partialSuccess?.rejectedSpans ?? 0)
    return refused > 0 ? refused : 0
  } catch {
    return 0
  }
}
