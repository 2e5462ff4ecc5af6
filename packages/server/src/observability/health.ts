/**
 * Liveness and readiness [HEALTH1].
 *
 *   const health = createHealth({ checks: { database, redis }, state })
 *   health.live()  → the answer of /healthz
 *   health.ready() → the answer of /readyz
 */
import type { Health } from '@ringwire/protocol/rest'

export type ServiceState = 'starting' | 'ready' | 'draining'

export interface HealthOptions {
  /** Each resolves when its dependency takes a write. A store that is in this process resolves at once. */
  readonly checks: { readonly database: () => Promise<void>; readonly redis: () => Promise<void> }
  readonly state: () => ServiceState
  /** Whether newcomers get in: false while file descriptors run out [MET2]. */
  readonly hasRoom?: () => boolean
  /** How long a check may take, and how long its result is good for. */
  readonly timeoutMs?: number
  readonly cacheMs?: number
  readonly monotonic?: () => number
}

export interface HealthReport {
  readonly status: 200 | 503
  readonly body: Health
}

export interface HealthChecks {
  live(): HealthReport
  ready(): Promise<HealthReport>
}

type Result = 'ok' | 'error'

export function createHealth(options: HealthOptions): HealthChecks {
  const { state, hasRoom = () => true, timeoutMs = 1000, cacheMs = 1000, monotonic = () => performance.now() } = options
  const { database: tryDatabase, redis: tryRedis } = options.checks
  const database = cached(oneAtATime(tryDatabase), timeoutMs, cacheMs, monotonic)
  const redis = cached(oneAtATime(tryRedis), timeoutMs, cacheMs, monotonic)

  return {
    live() {
      return {
        status: 200,
        body: { ok: true, database: 'unchecked', redis: 'unchecked', service_ready: state() === 'ready' },
      }
    },
    async ready() {
      // A node that ends asks nothing any more: its store may be slower than its end.
      if (state() === 'draining') {
        return {
          status: 503,
          body: { ok: false, database: database.last(), redis: redis.last(), service_ready: false },
        }
      }
      const [databaseResult, redisResult] = await Promise.all([database.ask(), redis.ask()])
      const isFull = !hasRoom()
      const ok = databaseResult === 'ok' && redisResult === 'ok' && state() === 'ready' && !isFull
      const body = { ok, database: databaseResult, redis: redisResult, service_ready: ok }
      return { status: ok ? 200 : 503, body: isFull ? { ...body, descriptors: 'low' } : body }
    },
  }
}

/** A check that is still under way is not begun again: in a store that hangs, nothing piles up. */
function oneAtATime(check: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  const begin = async () => check()
  return () => {
    running ??= begin().finally(() => {
      running = undefined
    })
    return running
  }
}

/** The answer of a check that comes in time; a late or rejected check is an error. */
async function outcome(check: () => Promise<void>, timeoutMs: number): Promise<Result> {
  const { promise: late, resolve } = Promise.withResolvers<Result>()
  const timer = setTimeout(() => resolve('error'), timeoutMs)
  const checked = check().then(
    (): Result => 'ok',
    (): Result => 'error',
  )
  try {
    return await Promise.race([checked, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Probes come as often as they like; the dependency is checked once in `cacheMs`, and by one of them at a time. */
function cached(check: () => Promise<void>, timeoutMs: number, cacheMs: number, monotonic: () => number) {
  let latest: { at: number; result: Promise<Result> } | undefined
  let said: Result | 'unchecked' = 'unchecked'
  return {
    ask(): Promise<Result> {
      if (latest !== undefined && monotonic() - latest.at < cacheMs) return latest.result
      const entry = { at: Number.POSITIVE_INFINITY, result: outcome(check, timeoutMs) }
      // It is fresh from the moment the answer is there: until then everybody waits for the same one.
      void entry.result.then((result) => {
        entry.at = monotonic()
        said = result
      })
      latest = entry
      return entry.result
    },
    /** What it said last. */
    last: () => said,
  }
}
