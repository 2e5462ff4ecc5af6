import { Postgres } from './postgres.ts'
import { type RedisServer, startRedis } from './redis.ts'

/** What nodes share: servers of its own, in which each `next` gets a database and a Redis that nobody has used. */
export class SharedStores {
  readonly postgres: Postgres
  private readonly redis: RedisServer
  private databases = 0

  private constructor(postgres: Postgres, redis: RedisServer) {
    this.postgres = postgres
    this.redis = redis
  }

  static async start(): Promise<SharedStores> {
    const [postgres, redis] = await Promise.all([Postgres.start(), startRedis(['--databases', '64'])])
    return new SharedStores(postgres, redis)
  }

  /** The settings of a node. */
  async next() {
    this.databases++
    return {
      DATABASE_URL: await this.postgres.database(),
      REDIS_URL: `${this.redis.url}/${this.databases}`,
      RINGWIRE_JWT_SECRETS: `test:${'A'.repeat(43)}`,
    }
  }

  async dispose(): Promise<void> {
    await Promise.all([this.postgres.dispose(), this.redis.stop()])
  }
}
