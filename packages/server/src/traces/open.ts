import { tracesUrlOf } from '../config/traces-url.ts'
import type { Traces, TracesOptions } from './traces.ts'

/** Undefined where no collector is set: nothing of it is loaded then. */
export async function openTraces(options: TracesOptions): Promise<Traces | undefined> {
  const url = tracesUrlOf(options.config)
  if (url === undefined) return undefined
  const { createTraces } = await import('./traces.ts')
  return createTraces(options, url)
}
