import { expect, test } from 'bun:test'
import { Service } from '@ringwire/testkit/service'
import { Redis } from 'ioredis'
import { openDatabases } from '../support/postgres.ts'
import { startCluster } from '../support/redis.ts'
import { signingKeyEnv } from '../support/session-tokens.ts'

test('[REDIS1] two deployments in one cluster, each with a prefix: calls of both go over two nodes', async () => {
  const [postgres, cluster] = await Promise.all([openDatabases(), startCluster()])
  const services: Service[] = []
  const start = async (databaseUrl: string, prefix: string) => {
    const env = { DATABASE_URL: databaseUrl, REDIS_URL: cluster.url, RINGWIRE_REDIS_PREFIX: prefix }
    const service = new Service({ ...env, ...signingKeyEnv })
    services.push(service)
    return service.start()
  }
  try {
    for (const prefix of ['one:', 'other:']) {
      const database = await postgres.database()
      const [first, second] = [await start(database, prefix), await start(database, prefix)]
      const ann = await first.connect({ user_id: 'ann' })
      const ben = await second.connect({ user_id: 'ben', role: 'agent' })
      ann.send('call.invite', { callee_user_id: 'ben', callee_role: 'agent' })
      const { data } = await ben.next('call.ringing')
      ben.send('call.accept', { call_uuid: data.call_uuid })
      await ann.next('call.accepted')
      ann.send('webrtc.ice_candidate', { call_uuid: data.call_uuid, candidate: { candidate: 'c' } })
      await ben.next('webrtc.ice_candidate')
      for (const each of [ann, ben]) await each.close()
    }
    const foreign = await start(await postgres.database(), 'one:').catch(String)
    expect(foreign).toContain('belongs to another deployment')
    for (const { url } of cluster.servers) {
      const admin = new Redis(url)
      const keys = await admin.keys('*')
      expect(keys.filter((key) => !/^(one|other):rw:/.test(key))).toEqual([])
      admin.disconnect()
    }
  } finally {
    for (const service of services) await service.dispose()
    await Promise.all([postgres.dispose(), cluster.stop()])
  }
}, 240_000)
