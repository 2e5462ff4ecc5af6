import { macrotask } from '../ports/macrotask.ts'

const batchSize = 100

/**
 * Does the same for each, so many at a time, and lets other work go in between. Goes on where one fails, ends where all of a
 * batch do, and rejects with what failed first.
 */
export async function inBatches<T>(items: Iterable<T>, work: (item: T) => unknown): Promise<void> {
  let failure: { readonly reason: unknown } | undefined
  let batch: T[] = []
  async function workOff(): Promise<boolean> {
    const results = await Promise.allSettled(batch.map(async (item) => work(item)))
    const failed = results.filter((result) => result.status === 'rejected')
    failure ??= failed[0]
    const isHopeless = failed.length === batch.length
    batch = []
    await macrotask()
    return isHopeless
  }
  for (const item of items) {
    batch.push(item)
    if (batch.length === batchSize && (await workOff())) break
  }
  if (batch.length > 0) await workOff()
  if (failure !== undefined) throw failure.reason
}
