import type { Timers } from '../ports/clock.ts'
import { StoreError } from '../ports/store-error.ts'
import { type Message, writeBatch } from './batch.ts'
import type { Post } from './post.port.ts'
import type { Questions } from './questions.ts'

export interface OutgoingOptions {
  readonly post: Pick<Post, 'send'>
  readonly node: string
  readonly questions: Pick<Questions, 'fail'>
  /** How long an answer that could not be posted is tried again, in ms: nobody waits for it longer. */
  readonly answerMs: number
  readonly onError: (error: unknown) => void
  readonly timers: Timers
}

const againMs = 100
/** News that waits for a message to its node is sent without one after this time. In ms. */
const laterMs = 100

export type Outgoing = ReturnType<typeof createOutgoing>

/** The messages for other nodes: one batch for each of them at the end of a turn of the event loop. */
export function createOutgoing(options: OutgoingOptions) {
  const { post, node, questions, answerMs, onError, timers } = options
  const outgoing = new Map<string, Message[]>()
  /** Messages that go along with the next one to a node. */
  const later = new Map<string, Message[]>()
  /** Until when answers that could not be posted are tried again. */
  const answersUntil = new WeakMap<Message, number>()
  let lastN = 0
  let isStopped = false

  /** The messages of this turn to a node; more are added to the end. */
  function to(other: string): Message[] {
    const known = outgoing.get(other)
    if (known !== undefined) return known
    const messages = later.get(other) ?? []
    later.delete(other)
    outgoing.set(other, messages)
    if (outgoing.size === 1) timers.turn(postAll)
    return messages
  }

  /** The same for what may wait until there is another message to that node. */
  function toLater(other: string): Message[] {
    const known = outgoing.get(other) ?? later.get(other)
    if (known !== undefined) return known
    const messages: Message[] = []
    later.set(other, messages)
    timers.after(laterMs, () => {
      if (later.get(other) === messages && !isStopped) to(other)
    })
    return messages
  }

  function postAll(): void {
    const all = [...outgoing]
    outgoing.clear()
    for (const [other, messages] of all) {
      lastN++
      const batch = writeBatch({ from: node, n: lastN, messages })
      post.send(other, batch).catch((error) => notPosted(other, messages, error))
    }
  }

  function notPosted(other: string, messages: readonly Message[], error: unknown): void {
    if (!(error instanceof StoreError)) return void onError(error)
    for (const message of messages) {
      if (message[1] !== null) questions.fail(message[0], error)
      // The asking node waits for it. It passes over an answer that comes twice.
      else if (isAwaited(message)) timers.after(againMs, () => void to(other).push(message))
    }
  }

  function isAwaited(answer: Message): boolean {
    const until = answersUntil.get(answer) ?? timers.monotonic() + answerMs
    answersUntil.set(answer, until)
    return !isStopped && timers.monotonic() < until
  }

  return {
    to,
    toLater,
    stop(): void {
      isStopped = true
    },
  }
}
