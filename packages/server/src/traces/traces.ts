import type { Call, CallRef } from '../call/call.ts'
import type { Config } from '../config/config.ts'
import type { Family } from '../observability/families.ts'
import type { Logger } from '../observability/logger.ts'
import { type CallTraces, createCallTraces } from './call-traces.ts'
import { createExporter } from './exporter.ts'
import { createTraceIds } from './ids.ts'
import { envelopeOf } from './otlp.ts'

/** Traces of calls, where they are switched on [OTEL1]. */
export interface Traces extends CallTraces {
  /** `known`: the call as this node has heard of it last. */
  start(known: (ref: CallRef) => Call | undefined): void
  /** Sends what waits; `atOnce`: for a moment only. */
  stop(atOnce: boolean): Promise<void>
  families(): Family[]
}

export interface TracesOptions {
  readonly config: Config
  readonly version: string
  readonly logger: Logger
  /** The clock that calls go by. */
  readonly now: () => number
}

/** How often the service looks for steps that have not reached everybody, in ms. */
const sweepMs = 1_000
/** How long a stop waits for the collector, in ms. */
const stopMs = { usual: 3_000, atOnce: 500 }

/** Spans of calls, and their way to the collector at `url`. */
export function createTraces({ config, version, logger, now }: TracesOptions, url: string): Traces {
  let known: (ref: CallRef) => Call | undefined = () => undefined
  let timer: ReturnType<typeof setInterval> | undefined
  const resource = {
    'service.name': config.otelServiceName,
    'service.version': version,
    'service.instance.id': config.nodeId,
    ...config.otelResource,
    ...(config.otelServiceName !== 'ringwire' && { 'service.name': config.otelServiceName }),
  }
  const exporter = createExporter({
    url,
    headers: config.otlpHeaders,
    envelope: envelopeOf(resource, version),
    onLost: (cause) => logger.warn({ cause }, 'the collector of traces takes no spans'),
    onBack: (count) => logger.warn({ count }, 'the collector of traces takes spans again'),
  })
  const traces = createCallTraces({
    ids: createTraceIds(config.traceRatio),
    add: exporter.add,
    now,
    known: (ref) => known(ref),
    participants: config.logParticipants,
  })
  return {
    ...traces,
    start(knownOf) {
      known = knownOf
      timer = setInterval(() => traces.sweep(), sweepMs)
      exporter.start()
    },
    async stop(atOnce) {
      clearInterval(timer)
      traces.sweep(true)
      await exporter.stop(atOnce ? stopMs.atOnce : stopMs.usual)
    },
    families: exporter.families,
  }
}
