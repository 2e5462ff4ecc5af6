import { Service } from '@ringwire/testkit/service'

/**
 * Two nodes, each a process of its own, on the same stores. Whoever asks for the URL gets the one and the other in turn:
 * peers, and sockets of one person, are on different nodes.
 */
export class NodePair extends Service {
  readonly second: Service
  private turn = 0

  constructor(env: Record<string, string>) {
    const name = env.RINGWIRE_NODE_ID ?? ''
    super({ ...env, RINGWIRE_NODE_ID: `${name}one` })
    this.second = new Service({ ...env, RINGWIRE_NODE_ID: `${name}two` })
  }

  override get url(): string {
    this.turn++
    return this.turn % 2 === 1 ? super.url : this.second.url
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
