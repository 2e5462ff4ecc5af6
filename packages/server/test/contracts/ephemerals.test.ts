import type { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { startPgBouncer } from '../support/pgbouncer.ts'
import { openDatabases } from '../support/postgres.ts'
import { openRedisDatabases } from '../support/redis.ts'
import { registerEphemeralsContract } from './ephemerals.ts'

/** The same URL, by way of a proxy. */
const throughOf = (url: string) => (proxy: TcpProxy) => {
  const through = new URL(url)
  through.port = String(proxy.port)
  return through.href
}

registerEphemeralsContract('PostgreSQL', async () => {
  const server = await openDatabases()
  const url = await server.database()
  return { kind: 'postgres', url, proxied: throughOf(url), close: () => server.dispose() }
})

registerEphemeralsContract('PostgreSQL behind a PgBouncer in session mode', async () => {
  const server = await openDatabases()
  const direct = await server.database()
  const pooler = await startPgBouncer(direct, ['pool_mode = session'])
  const url = pooler.url(new URL(direct).pathname.slice(1))
  const close = async () => {
    await pooler.stop()
    await server.dispose()
  }
  return { kind: 'postgres', url, proxied: throughOf(url), close }
})

for (const prefix of ['', 'shop:']) {
  registerEphemeralsContract(prefix === '' ? 'Redis' : 'Redis with a prefix', async () => {
    const server = await openRedisDatabases()
    const url = await server.database()
    return { kind: 'redis', url, prefix, proxied: throughOf(url), close: () => server.stop() }
  })
}
