import { createInbox } from '../../src/cluster/inbox.ts'
import { idOf } from '../../src/ports/node-name.ts'
import { createStore } from '../../src/stores/redis/connection.ts'
import { createRedisPost } from '../../src/stores/redis/post.ts'
import { createSystemTimers } from '../../src/time/timers.ts'

/**
 * Asks nodes in the inboxes in which they tell each other what happens: when they answer, what was sent there before is done
 * and saved.
 */
export class NodeNews {
  private readonly store: ReturnType<typeof createStore>
  private readonly post: ReturnType<typeof createRedisPost>
  private readonly inbox: ReturnType<typeof createInbox>
  private readonly listening: Promise<void>
  private readonly ids: readonly string[]
  private looking: Promise<void> = Promise.resolve()
  /** One that has yet to begin. */
  private next: Promise<void> | undefined

  /** `ids`: what the nodes are called. */
  constructor(url: string, ids: readonly string[]) {
    this.ids = ids
    this.store = createStore(url, () => {})
    const node = `test-${crypto.randomUUID()}`
    this.post = createRedisPost({ url, store: this.store, node, onError: () => {} })
    this.inbox = createInbox({
      post: this.post,
      node,
      onFrame: () => undefined,
      saved: () => undefined,
      onRefused: (_, answer) => answer,
      isSilent: () => false,
      onWaiting() {},
      onStall: async () => {},
      onError: () => {},
      timers: createSystemTimers(),
    })
    this.listening = this.store.ready().then(() => this.inbox.start())
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
    await Promise.all((await this.living()).map((name) => this.ask(name)))
  }

  private async living(): Promise<string[]> {
    const names = await this.store.client.zrange('rw:alive', '0', '-1')
    return names.filter((name) => this.ids.includes(idOf(name)))
  }

  /** One that stood still answers late; one that died a moment ago is still in the list. */
  private async ask(name: string): Promise<void> {
    let isAnswered = false
    do {
      isAnswered = await this.inbox.ask(name, ['heard']).then(
        () => true,
        () => false,
      )
    } while (!isAnswered && (await this.living()).includes(name))
  }

  close(): void {
    this.inbox.stop()
    void this.post.stop()
    this.store.close()
  }
}
