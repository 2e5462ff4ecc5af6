import type { Config } from './settings.ts'

/** Where traces go; undefined where there are none. */
export function tracesUrlOf(config: Partial<Config>): string | undefined {
  const { otlpEndpoint, otlpTracesEndpoint, tracesExporter, otelDisabled } = config
  if (otelDisabled === true || tracesExporter === 'none') return undefined
  if (otlpTracesEndpoint) return otlpTracesEndpoint
  return otlpEndpoint ? `${otlpEndpoint}/v1/traces` : undefined
}
