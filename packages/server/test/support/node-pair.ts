import { Service } from '@ringwire/testkit/service'
import { NodeNews } from './node-news.ts'

/**
 * Two nodes, each a process of its own, on the same stores. Clients connect to the one and the other in turn: peers, and
 * sockets of one person, are on different nodes. Requests have a turn of their own.
 */
export class NodePair extends Service {
  readonly second: Service
  private readonly news: NodeNews
  private requests = 0
  private clients = 0

  constructor(env: Record<string, string>) {
    const name = env.RINGWIRE_NODE_ID ?? ''
    const [one, two] = [`${name}one`, `${name}two`]
    super({ ...env, RINGWIRE_NODE_ID: one })
    this.second = new Service({ ...env, RINGWIRE_NODE_ID: two })
    this.news = new NodeNews(env.REDIS_URL ?? '', [one, two])
  }

  /** A node that has ended has nothing to tell. */
  override readonly passedOn = () => Promise.race([this.news.heard(), this.ended, this.second.ended]).then(() => {})

  override get url(): string {
    return this.inTurn(this.requests++)
  }

  override nextUrl(): string {
    return this.inTurn(this.clients++)
  }

  private inTurn(turn: number): string {
    return turn % 2 === 0 ? super.url : this.second.url
  }

  override get log(): string {
    return super.log + this.second.log
  }

  override get pids(): readonly number[] {
    return [this.pid, this.second.pid]
  }

  override async start(env: Record<string, string> = {}): Promise<this> {
    await Promise.all([super.start(env), this.second.start(env)])
    return this
  }

  override async kill(): Promise<void> {
    await Promise.all([super.kill(), this.second.kill()])
  }

  override async terminate(): Promise<number> {
    const codes = await Promise.all([super.terminate(), this.second.terminate()])
    return Math.max(...codes)
  }

  override signal(signal: NodeJS.Signals): void {
    super.signal(signal)
    this.second.signal(signal)
  }

  override async dispose(): Promise<void> {
    this.news.close()
    await Promise.all([super.dispose(), this.second.dispose()])
  }
}
