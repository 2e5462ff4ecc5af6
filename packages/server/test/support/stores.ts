import { type Databases, openDatabases } from './postgres.ts'
import { openRedisDatabases, type RedisDatabases } from './redis.ts'

/** What nodes share: each `next` is a database and a Redis that nobody has used. */
export class SharedStores {
  readonly postgres: Databases
  private readonly redis: RedisDatabases

  private constructor(postgres: Databases, redis: RedisDatabases) {
    this.postgres = postgres
    this.redis = redis
  }

  static async start(): Promise<SharedStores> {
    const [postgres, redis] = await Promise.all([openDatabases(), openRedisDatabases()])
    return new SharedStores(postgres, redis)
  }

  /** The settings of a node. */
  async next() {
    const [DATABASE_URL, REDIS_URL] = await Promise.all([this.postgres.database(), this.redis.database()])
    return { DATABASE_URL, REDIS_URL, RINGWIRE_JWT_SECRETS: `test:${'A'.repeat(43)}` }
  }

  async dispose(): Promise<void> {
    await Promise.all([this.postgres.dispose(), this.redis.stop()])
  }
}
