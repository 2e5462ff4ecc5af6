import { productKey, Service } from '@ringwire/testkit/service'
import { loadConfig } from '../../src/config/config.ts'
import { createLogger } from '../../src/observability/logger.ts'
import type { Clock } from '../../src/ports/clock.ts'
import { createServer, type RingwireServer } from '../../src/server.ts'

/** A clock that stands still until a test moves it. */
export interface ManualClock extends Clock {
  /** Time passes. */
  advance(ms: number): void
  /** Somebody sets the wall clock; no time passes. */
  jump(ms: number): void
}

export function createManualClock(): ManualClock {
  let wall = Date.now()
  let monotonic = 1_000
  return {
    now: () => wall,
    monotonic: () => monotonic,
    advance(ms) {
      wall += ms
      monotonic += ms
    },
    jump(ms) {
      wall += ms
    },
  }
}

/** The same service with the same sockets and store, in this process and on a given clock. */
export class InProcessService extends Service {
  private readonly settings: Record<string, string>
  private readonly clock: Clock
  private server: RingwireServer | undefined

  constructor(clock: Clock, settings: Record<string, string> = {}) {
    super()
    this.clock = clock
    this.settings = settings
  }

  override async start(): Promise<this> {
    const loaded = loadConfig({
      RINGWIRE_PORT: this.address === '' ? '0' : new URL(this.address).port,
      RINGWIRE_DATA_DIR: this.dataDir,
      RINGWIRE_BOOTSTRAP_KEYS: `${productKey.id}:${productKey.secret}:shop`,
      RINGWIRE_INVITE_RATE: 'off',
      RINGWIRE_PAIR_INVITE_RATE: 'off',
      RINGWIRE_REST_RATE_IP: 'off',
      RINGWIRE_REST_RATE: 'off',
      RINGWIRE_CONNECT_RATE: 'off',
      RINGWIRE_WS_RATE: 'off',
      RINGWIRE_LOG_LEVEL: 'debug',
      ...this.settings,
    })
    if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
    const { config } = loaded
    const destination = {
      write: (line: string) => {
        this.logged += line
      },
    }
    this.server = createServer({
      config,
      logger: createLogger({ level: config.logLevel, destination }),
      clock: this.clock,
    })
    this.address = (await this.server.start()).url
    return this
  }

  /** As after SIGTERM: every socket is closed, live calls stay in the store. */
  async stop(): Promise<void> {
    await this.server?.stop()
    this.server = undefined
  }

  override async dispose(): Promise<void> {
    await this.stop()
    await super.dispose()
  }
}
