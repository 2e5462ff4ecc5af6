import '../../src/stores/sqlite/write-worker.ts'
import type { ToWriter } from '../../src/stores/sqlite/write-worker.ts'

/** The real writer thread over a disk whose flush takes FLUSH_MS longer. */
declare const self: Worker
const real = self.onmessage as (event: MessageEvent) => void
const flushMs = Number(Bun.env.FLUSH_MS)

self.onmessage = (event: MessageEvent<ToWriter>) => {
  if (!('type' in event.data) && flushMs > 0) Bun.sleepSync(flushMs)
  real(event)
}
