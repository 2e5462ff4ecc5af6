import { Redis } from 'ioredis'
import { channelOf } from '../../src/adapters/redis/channel.ts'
import { connect } from '../../src/adapters/redis/connection.ts'
import { idOf } from '../../src/ports/node-name.ts'

/** A question without an answer is asked again after so long, in ms. */
const againMs = 500

/**
 * Asks nodes on the channels on which they tell each other what happens: when they answer, what was said there before has
 * arrived. A reply to who sent something means that it is in the log of its receiver [EXT3], and no more.
 */
export class NodeNews {
  private readonly store: ReturnType<typeof connect>
  private readonly servers: readonly Redis[]
  private readonly listeners: readonly Redis[]
  private readonly name = `test-${crypto.randomUUID()}`
  private readonly asked = new Map<string, () => void>()
  private readonly listening: Promise<unknown>
  private readonly ids: readonly string[]
  private looking: Promise<void> = Promise.resolve()
  /** One that has yet to begin. */
  private next: Promise<void> | undefined

  /** `ids`: what the nodes are called. */
  constructor(url: string, ids: readonly string[]) {
    this.ids = ids
    this.store = connect(url)
    // In a cluster what is said at one server reaches a listener of another one by a road of its own.
    const hosts = url.startsWith('redis+cluster:') ? url.slice('redis+cluster://'.length).split(',') : undefined
    this.servers = (hosts?.map((host) => `redis://${host}`) ?? [url]).map((each) => new Redis(each))
    this.listeners = this.servers.map((server) => server.duplicate())
    this.listening = Promise.all(this.listeners.map((listener) => this.listen(listener)))
  }

  private listen(listener: Redis): Promise<unknown> {
    listener.on('message', (_channel: string, message: string) => {
      const [, id = ''] = message.split(' ')
      this.asked.get(id)?.()
      this.asked.delete(id)
    })
    return listener.subscribe(channelOf(this.name))
  }

  /** Resolves when each node has heard what was said to it so far. Who asks meanwhile shares the next look. */
  heard(): Promise<void> {
    this.next ??= this.looking.then(() => {
      this.next = undefined
      this.looking = this.look()
      return this.looking
    })
    return this.next
  }

  private async look(): Promise<void> {
    await this.listening
    const names = (await this.store.zrange('rw:nodes', '0', '-1')).filter((name) => this.ids.includes(idOf(name)))
    await Promise.all(
      names.map(async (name) => {
        const channel = channelOf(name)
        const home = await this.listensAt(channel)
        // A node that died a moment ago is still in the list.
        if (home === undefined) return
        await Promise.all(this.servers.map((server) => this.ask(server, channel)))
        // What the node had to read of a log, because of what it had heard, is there by the second answer.
        await this.ask(home, channel)
      }),
    )
  }

  private async listensAt(channel: string): Promise<Redis | undefined> {
    const counts = await Promise.all(this.servers.map((server) => server.pubsub('NUMSUB', channel)))
    return this.servers.find((_, index) => Number(counts[index]?.[1]) > 0)
  }

  /** A sign of life of a session that is nowhere: the node answers at once. One that stood still may have missed it. */
  private async ask(server: Redis, channel: string): Promise<void> {
    const id = crypto.randomUUID()
    const { promise: answered, resolve } = Promise.withResolvers<true>()
    this.asked.set(id, () => resolve(true))
    do await server.publish(channel, `Q ${id} ${this.name} probe - -`)
    while (!(await Promise.race([answered, Bun.sleep(againMs)])) && (await this.listensAt(channel)) !== undefined)
    this.asked.delete(id)
  }

  close(): void {
    for (const client of [this.store, ...this.listeners, ...this.servers]) client.disconnect()
  }
}
