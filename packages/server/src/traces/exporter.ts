/**
 * Sends spans to a collector, some at a time [OTEL1]. Nothing waits for it: what is too much, or what the collector does not
 * take, is dropped and counted.
 */
import type { Family } from '../observability/families.ts'
import { type Counter, createCounter } from '../observability/series.ts'
import { spanText, type TracedSpan } from './otlp.ts'

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
  /** The most spans, and bytes of spans, that wait. */
  readonly waiting: number
  readonly waitingBytes: number
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
  waitingBytes: 16 * 1024 * 1024,
  batch: 1_000,
  everyMs: 5_000,
  timeoutMs: 10_000,
  pauseMs: 1_000,
  longestPauseMs: 30_000,
  attempts: 10,
}

/** The spans that are encoded one after another: a single span finds none of that code in the processor's cache. */
const mostFresh = 64
/** The answer of a collector is read up to here, in bytes. */
const mostReadBytes = 64 * 1024

export interface Exporter {
  /** Takes a span, or drops it. */
  add(span: TracedSpan): void
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
  const waiting = createQueue(limits, options.envelope)
  let fresh: TracedSpan[] = []
  const stopping = new AbortController()
  const { settle, drop, hasPaused, end } = createSettling(options, limits, waiting, counter)
  let sending: Promise<void> | undefined
  let timer: ReturnType<typeof setInterval> | undefined

  async function sendAll(isDue: () => boolean): Promise<void> {
    while (isDue()) {
      const batch = waiting.first()
      if (batch === undefined) return
      settle(batch.spans, await post(options, batch, limits.timeoutMs, stopping.signal))
    }
  }

  /** One request after another. */
  function begin(isDue: () => boolean): void {
    sending ??= sendAll(isDue).finally(() => {
      sending = undefined
    })
  }

  const isBatch = () => waiting.size() >= limits.batch && hasPaused()

  function encode(): void {
    for (const span of fresh) if (!waiting.put(spanText(span))) drop(1)
    fresh = []
  }

  return {
    add(span) {
      if (fresh.push(span) < Math.min(mostFresh, limits.batch)) return
      encode()
      if (isBatch()) begin(isBatch)
    },
    start() {
      timer = setInterval(() => {
        encode()
        if (hasPaused()) begin(hasPaused)
      }, limits.everyMs)
      timer.unref()
    },
    async stop(limitMs) {
      clearInterval(timer)
      encode()
      const late = setTimeout(() => stopping.abort(), limitMs)
      await sending
      // Each batch once more, also if the last request has just failed.
      let tries = waiting.batches()
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
    waiting.removeFirst()
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
    waiting.removeFirst()
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

/** The body of a request, up to `end`. */
interface Batch {
  bytes: Buffer<ArrayBuffer>
  end: number
  spans: number
}

/** The size that a batch begins with, in bytes: mostly all of it. The system gives memory for what is written. */
const firstBytes = 512 * 1024
/** In UTF-8, of a unit of UTF-16. */
const mostBytesOfChar = 3

/** Batches of spans, oldest first. They wait as bytes: texts would have to be joined, and copied, once more. */
function createQueue(limits: ExporterLimits, [before, after]: readonly [string, string]) {
  const batches: Batch[] = []
  /** The last batch, while it takes spans. */
  let open: Batch | undefined
  let spans = 0
  let bytes = 0
  /** What the batch that was removed last was written into. */
  let spare: Buffer<ArrayBuffer> | undefined

  function append(batch: Batch, text: string): void {
    const most = batch.end + mostBytesOfChar * text.length
    if (most > batch.bytes.length) batch.bytes = widened(batch, Math.max(most, 2 * batch.bytes.length))
    const size = batch.bytes.write(text, batch.end)
    batch.end += size
    bytes += size
  }

  function begin(): Batch {
    const batch = { bytes: spare ?? Buffer.allocUnsafe(firstBytes), end: 0, spans: 0 }
    spare = undefined
    append(batch, before)
    batches.push(batch)
    return batch
  }

  function close(batch: Batch): void {
    append(batch, after)
    open = undefined
  }

  return {
    size: () => spans,
    batches: () => batches.length,
    put(span: string): boolean {
      if (spans >= limits.waiting || bytes + span.length > limits.waitingBytes) return false
      open ??= begin()
      append(open, open.spans === 0 ? span : `,${span}`)
      spans++
      if (++open.spans === limits.batch) close(open)
      return true
    },
    /** It takes no more spans from now on: each attempt sends the same ones. */
    first(): Batch | undefined {
      const [batch] = batches
      if (batch !== undefined && batch === open) close(batch)
      return batch
    },
    removeFirst(): void {
      const batch = batches.shift()
      if (batch === undefined) return
      spans -= batch.spans
      bytes -= batch.end
      spare = batch.bytes
    },
  }
}

function widened({ bytes, end }: Batch, size: number): Buffer<ArrayBuffer> {
  const wider = Buffer.allocUnsafe(size)
  bytes.copy(wider, 0, 0, end)
  return wider
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
  { url, headers }: ExporterOptions,
  { bytes, end, spans }: Batch,
  timeoutMs: number,
  stopping: AbortSignal,
): Promise<Outcome> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'Ringwire', ...headers },
      body: bytes.subarray(0, end),
      redirect: 'manual',
      signal: AbortSignal.any([stopping, AbortSignal.timeout(timeoutMs)]),
    })
    const { status } = response
    const text = await beginOf(response)
    if (response.ok) return { is: 'taken', refused: Math.min(spans, refusedIn(text)) }
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
