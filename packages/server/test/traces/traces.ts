import type { CollectedSpan, Collector } from '@ringwire/testkit/collector'
import { until } from '@ringwire/testkit/patience'

/** The settings of a service whose traces go to a collector. */
export const tracedTo = ({ url }: Pick<Collector, 'url'>) => ({ OTEL_EXPORTER_OTLP_ENDPOINT: url })

/** Resolves with the spans of a call when its trace has spans of all these names. */
export async function spansOf(collector: Collector, callUuid: string, names: readonly string[]) {
  const root = await collector.trace(callUuid)
  const missing = () => names.filter((name) => !collector.of(root.traceId).some((span) => span.name === name))
  await until(`the trace is whole`, () => missing().length === 0).catch((error) => {
    throw new Error(`no span ${missing().join(', ')}`, { cause: error })
  })
  return { root, spans: collector.of(root.traceId) }
}

export const named = (spans: readonly CollectedSpan[], name: string) => spans.filter((span) => span.name === name)
