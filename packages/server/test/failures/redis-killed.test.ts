import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { registerOutage } from './redis-outage.ts'
import { worldFor } from './world.ts'

const world = worldFor({ redisArgs: ['--appendonly', 'yes', '--appendfsync', 'always'] })

registerOutage('is killed and comes back with all its data', world, {
  begin: ({ redis }) => redis.kill(),
  end: ({ redis }) => redis.restart(),
})

registerOutage('is killed and comes back empty', world, {
  begin: ({ redis }) => redis.kill(),
  async end({ redis }) {
    await rm(join(redis.directory, 'appendonlydir'), { recursive: true })
    await redis.restart()
  },
})
