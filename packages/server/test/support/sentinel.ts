import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Certificates } from '@ringwire/testkit/certificates'
import { until } from '@ringwire/testkit/patience'
import { freePort } from '@ringwire/testkit/ports'
import { Redis } from 'ioredis'
import { type RedisServer, startRedis } from './redis.ts'

export interface SentinelGroup {
  /** redis+sentinel://…; rediss where there are certificates. */
  readonly url: string
  readonly sentinelPort: number
  readonly master: RedisServer
  readonly replica: RedisServer
  /** Resolves when Sentinel has made the replica the master. */
  promoted(): Promise<void>
  stop(): Promise<void>
}

const group = 'calls'

/**
 * A master, its replica and one Sentinel that watches them: real processes, on free ports of the loopback address. With
 * certificates, clients and servers speak TLS to each other; the ports without it stay for the test itself.
 */
export async function startSentinelGroup(certificates?: Certificates): Promise<SentinelGroup> {
  const tls = certificates === undefined ? [] : tlsSettings(certificates)
  const tlsPorts = tls.length === 0 ? [] : [await freePort(), await freePort(), await freePort()]
  const argsOf = (tlsPort: number | undefined) =>
    tlsPort === undefined
      ? []
      : ['--tls-port', String(tlsPort), ...tls.flatMap(([name, value]) => [`--${name}`, value])]
  const master = await startRedis(argsOf(tlsPorts[0]))
  const masterPort = String(tlsPorts[0] ?? master.port)
  const replica = await startRedis(['--replicaof', '127.0.0.1', masterPort, ...argsOf(tlsPorts[1])])
  const replicaPort = String(tlsPorts[1] ?? replica.port)
  const directory = await mkdtemp(join(tmpdir(), 'ringwire-sentinel-'))
  const port = await freePort()
  const configuration = join(directory, 'sentinel.conf')
  await writeFile(
    configuration,
    [
      ...[`port ${port}`, 'bind 127.0.0.1', `dir ${directory}`],
      ...(tlsPorts[2] === undefined ? [] : [`tls-port ${tlsPorts[2]}`, ...tls.map((setting) => setting.join(' '))]),
      `sentinel monitor ${group} 127.0.0.1 ${masterPort} 1`,
      ...[`sentinel down-after-milliseconds ${group} 500`, `sentinel failover-timeout ${group} 5000`],
    ].join('\n'),
  )
  const sentinel = Bun.spawn(['redis-server', configuration, '--sentinel'], { stdout: 'ignore', stderr: 'inherit' })
  const client = new Redis({ port, host: '127.0.0.1', enableReadyCheck: false, retryStrategy: () => 20 })
  client.on('error', () => {})
  // It finds the replica by asking the master, every 10 s.
  await untilSentinel('Sentinel knows the replica', async () => {
    const [known] = (await client.call('SENTINEL', 'REPLICAS', group)) as Record<string, string>[] | string[][]
    return known !== undefined && JSON.stringify(known).includes(replicaPort) && (await isInSync(replica))
  })
  return {
    url: `redis${tls.length === 0 ? '' : 's'}+sentinel://127.0.0.1:${tlsPorts[2] ?? port}/${group}`,
    sentinelPort: port,
    master,
    replica,
    promoted: () =>
      untilSentinel('the replica is promoted', async () => {
        const [, at] = (await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', group)) as string[]
        return at === replicaPort
      }),
    async stop() {
      client.disconnect()
      sentinel.kill('SIGKILL')
      await sentinel.exited
      await Promise.all([master.stop(), replica.stop()])
      await rm(directory, { recursive: true, force: true })
    },
  }
}

function tlsSettings({ ca, server }: Certificates): readonly (readonly [string, string])[] {
  return [
    ['tls-cert-file', server.cert],
    ['tls-key-file', server.key],
    ['tls-ca-cert-file', ca],
    ['tls-auth-clients', 'no'],
    ['tls-replication', 'yes'],
  ]
}

async function isInSync({ url }: RedisServer): Promise<boolean> {
  const client = new Redis(url)
  try {
    return (await client.info('replication')).includes('master_link_status:up')
  } finally {
    client.disconnect()
  }
}

/** A server that is being replaced answers with errors meanwhile. */
const untilSentinel = (what: string, isSo: () => Promise<boolean>) => until(what, () => isSo().catch(() => false))
