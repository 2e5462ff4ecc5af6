import { Service } from '@ringwire/testkit/service'

/**
 * Two nodes, each a process of its own, on the same stores. Clients connect to the one and the other in turn: peers, and
 * sockets of one person, are on different nodes. Requests have a turn of their own.
 */
export class NodePair extends Service {
  readonly second: Service
  private requests = 0
  private clients = 0

  constructor(env: Record<string, string>) {
    const name = env.RINGWIRE_NODE_ID ?? ''
    super({ ...env, RINGWIRE_NODE_ID: `${name}one` })
    this.second = new Service({ ...env, RINGWIRE_NODE_ID: `${name}two` })
  }

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
    await Promise.all([super.dispose(), this.second.dispose()])
  }
}
