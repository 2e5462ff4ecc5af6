import { openReceiver, type Receiver, type Reply } from '@ringwire/testkit/receiver'
import type { Hook } from './recording.ts'

/** How an endpoint fails: with a status, without an answer, or by ending the connection. */
export const failures = { 'status 500': 500, silent: 'hang', closing: 'close' } as const satisfies Record<string, Reply>
export type Failure = keyof typeof failures

/** A webhook endpoint that is real, fails on request, and keeps all that came. */
export class Endpoint {
  readonly hooks: Hook[] = []
  private readonly receiver: Receiver
  /** The orders to fail, and by how many; the last one counts. */
  private readonly failing: { readonly how: Failure }[] = []
  /** How often it failed each event, by id. */
  private readonly failed = new Map<string, number>()
  private waiting: (() => void)[] = []

  private constructor(receiver: Receiver) {
    this.receiver = receiver
  }

  /**
   * It fails no event more than `mostFailures` times, so that a run comes to an end: the next attempt is after 5 s, then 30 s,
   * then 2 min [HOOK3].
   */
  static async open(mostFailures: number, at: () => number): Promise<Endpoint> {
    const receiver = await openReceiver()
    const endpoint = new Endpoint(receiver)
    receiver.reply(({ id, type, data: { call_uuid, version } }) => {
      const answer = endpoint.answerTo(id, mostFailures)
      endpoint.hooks.push({ at: at(), call_uuid, version, type, id, answer })
      return answer
    })
    return endpoint
  }

  get url(): string {
    return this.receiver.url
  }

  private answerTo(id: string, mostFailures: number): Reply {
    const how = this.failing.at(-1)?.how
    const times = this.failed.get(id) ?? 0
    if (how === undefined || times >= mostFailures) return 200
    this.failed.set(id, times + 1)
    for (const resolve of this.waiting.splice(0)) resolve()
    return failures[how]
  }

  /** It fails from now on, until the answer is called. */
  fail(how: Failure): () => void {
    const order = { how }
    this.failing.push(order)
    return () => void this.failing.splice(this.failing.indexOf(order), 1)
  }

  /** Resolves when it fails the next event. */
  failsOne(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.waiting.push(resolve)
    return promise
  }

  close(): Promise<void> {
    return this.receiver.close()
  }
}
