import type { Redis } from 'ioredis'

type Client = Pick<Redis, 'get' | 'set'>

/** Names the deployment whose sessions a Redis database holds [REDIS1]. */
export const deploymentKey = 'rw:deployment'

/**
 * The problem if the database belongs to another deployment. One that nobody has named yet, or that was emptied, is named
 * now: nodes of an older version name none.
 */
export async function foreignProblems(
  client: Client,
  prefix: string,
  deployment: string | undefined,
): Promise<string[]> {
  if (deployment === undefined) return []
  await client.set(deploymentKey, deployment, 'NX')
  const problem = await foreignProblem(client, prefix, deployment)
  return problem === undefined ? [] : [problem]
}

/** The same, without naming one. */
export async function foreignProblem(client: Client, prefix: string, deployment: string): Promise<string | undefined> {
  const found = await client.get(deploymentKey)
  if (found === null || found === deployment) return undefined
  const key = prefix + deploymentKey
  return (
    `Redis belongs to another deployment: ${key} in it has another id than the PostgreSQL database of DATABASE_URL. ` +
    'Give this deployment a Redis database or a RINGWIRE_REDIS_PREFIX of its own. ' +
    `If the other deployment is gone, remove its name: DEL ${key}`
  )
}
