import type { Redis } from 'ioredis'

/**
 * What the service needs of every server that takes writes; each text is one thing that is wrong, nothing is secret.
 * `isCluster`: they are spoken to as one.
 */
export async function problemsOf(servers: readonly Redis[], isCluster: boolean): Promise<string[]> {
  const found = await Promise.all(
    servers.map(async (server) => {
      const { host, port } = server.options
      const where = servers.length > 1 ? `Redis at ${host}:${port}` : 'Redis'
      return (await problemsOfOne(server, isCluster)).map((problem) => `${where} ${problem}`)
    }),
  )
  return found.flat()
}

const sections = ['server', 'memory', 'replication', 'cluster']

async function problemsOfOne(server: Redis, isCluster: boolean): Promise<string[]> {
  // One section a command: before version 7.0 a second one is an error.
  const texts = await Promise.all(sections.map((section) => server.info(section)))
  const info = texts.join('\n')
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\s*$`, 'm').exec(info)?.[1]
  const version = field('redis_version') ?? 'unknown'
  const problems: string[] = []
  if (!(Number.parseInt(version, 10) >= 7)) problems.push(`is version ${version}, and has to be 7.0 or newer`)
  if (field('role') === 'slave') problems.push('is a replica: the URL has to lead to the server that takes writes')
  if (!isCluster && field('cluster_enabled') === '1') {
    problems.push('is one server of a cluster: the URL has to begin with redis+cluster://')
  }
  const policy = field('maxmemory_policy') ?? (await configured(server, 'maxmemory-policy')) ?? 'not known'
  if (policy !== 'noeviction') {
    problems.push(`has the maxmemory-policy ${policy}, and needs noeviction: with any other it drops sessions unasked`)
  }
  return problems
}

/** The server's setting; undefined if it does not say. */
async function configured(server: Redis, name: string): Promise<string | undefined> {
  try {
    const [, value] = (await server.config('GET', name)) as string[]
    return value
  } catch {
    return undefined
  }
}
