import type { CheckedStore } from '../../ports/store-check.ts'
import { StoreError } from '../../ports/store-error.ts'
import { createStore } from './connection.ts'
import { deploymentKey, foreignProblem } from './deployment.ts'

/** Looks at Redis, and changes nothing there; answers within `ms`. `deployment`: whose database it has to be [REDIS1]. */
export async function checkRedis(
  url: string,
  { prefix, deployment, ms }: { prefix: string; deployment: string | undefined; ms: number },
): Promise<CheckedStore> {
  const store = createStore(url, () => {}, { startMs: ms, prefix })
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new StoreError('unavailable', `Redis did not answer within ${ms} ms`)), ms)
  async function look(): Promise<CheckedStore> {
    await store.ready()
    await store.tryWrite()
    // An account may be kept to other keys.
    await store.exists([deploymentKey])
    const foreign = deployment === undefined ? undefined : await foreignProblem(store.client, prefix, deployment)
    return { problems: foreign === undefined ? [] : [foreign], warnings: [] }
  }
  try {
    return await Promise.race([look(), late])
  } catch (error) {
    return { problems: [error instanceof Error ? error.message : String(error)], warnings: [] }
  } finally {
    clearTimeout(timer)
    store.close()
  }
}
