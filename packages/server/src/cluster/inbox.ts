import type { Timers } from '../ports/clock.ts'
import { forgetOldest } from '../ports/oldest.ts'
import { StoreError } from '../ports/store-error.ts'
import { Taken } from '../session/taken.ts'
import { type AnswersOptions, createAnswers } from './answers.ts'
import { type Batch, readBatch } from './batch.ts'
import type { Frame } from './frames.ts'
import { createOutgoing } from './outgoing.ts'
import type { Post } from './post.port.ts'
import { createQuestions, type QuestionsOptions } from './questions.ts'

export interface InboxOptions extends Omit<AnswersOptions, 'outgoing'>, Pick<QuestionsOptions, 'onWaiting'> {
  readonly post: Pick<Post, 'send' | 'listen'>
  readonly node: string
  /** A node has not said for a while that it lives. */
  readonly isSilent: (node: string) => boolean
  /** This process stood still: others may have taken what it owns. */
  readonly onStall: () => Promise<void>
  /** The time limit of `heard`, in ms. */
  readonly heardMs?: number | undefined
  readonly timers: Timers
}

/** Frames from node to node: questions and their answers, and what a node lets others know. */
export interface Inbox {
  start(): Promise<void>
  /**
   * The answer of another node, which has saved what it did. Rejects with a `StoreError` if none comes within `ms`, or within a
   * shorter time if that node is silent.
   */
  ask(node: string, frame: Frame, ms?: number): Promise<unknown>
  /** A node is silent: the questions to it fail. */
  giveUp(node: string): void
  /** Lets a node know; it may be lost. */
  tell(node: string, frame: Frame): void
  /** The same for news that can wait for the next message to that node, or 100 ms. */
  tellLater(node: string, frame: Frame): void
  /** Resolves when everything that was sent to this node before is read and done; false if that takes longer than 3 s. */
  heard(): Promise<boolean>
  stop(): void
}

/** The probe of a holder takes up to 3 s [PLACE4]. */
export const askMs = 4_500
const defaultHeardMs = 3_000
/** A silent node has this time for its answer: longer than it takes to hear that a node has started. In ms. */
const silentMs = 1_500
const startMs = 10_000

export function createInbox(options: InboxOptions): Inbox {
  const { post, node, isSilent, onStall, onError, heardMs = defaultHeardMs, timers } = options
  const questions = createQuestions(options)
  const outgoing = createOutgoing({ post, node, questions, answerMs: askMs, onError, timers })
  const answer = createAnswers({ ...options, outgoing })
  const isNew = createIsNew()
  const onRead = createStallWatch(onStall, timers)

  function take({ from, n, messages }: Batch): void {
    if (!isNew(from, n)) return
    for (const message of messages) {
      if (message[1] === null) questions.answered(message[0], message[2])
      else answer(message[0], message[1], from)
    }
  }

  /** A batch that cannot be read, or whose end is a bug, takes no other batch along. */
  function onBatch(bytes: Buffer): void {
    try {
      take(readBatch(bytes))
    } catch (error) {
      onError(error)
    }
  }

  function ask(to: string, frame: Frame, ms = to !== node && isSilent(to) ? silentMs : askMs): Promise<unknown> {
    const { id, answer } = questions.open(to, ms)
    outgoing.to(to).push([id, frame])
    return answer
  }

  return {
    async start() {
      post.listen({ onRead, onBatch })
      await ask(node, ['heard'], startMs).catch(() => {
        throw new Error('the inbox of this node cannot be read')
      })
    },
    ask,
    giveUp: (to) => questions.failAll(new StoreError('unknown', 'the node of the session is silent'), to),
    tell: (to, frame) => void outgoing.to(to).push([0, frame]),
    tellLater: (to, frame) => void outgoing.toLater(to).push([0, frame]),
    heard: () =>
      ask(node, ['heard'], heardMs).then(
        () => true,
        (error) => {
          if (error instanceof StoreError && error.kind === 'unknown') return false
          throw error
        },
      ),
    stop() {
      outgoing.stop()
      questions.stop()
      questions.failAll(new StoreError('unavailable', 'this node stops'))
    },
  }
}

/** Senders of which it is known what was read. */
const mostSenders = 1_000

/** Whether a batch was not read before, by its sender and number. Exact: one that was posted again comes after later ones. */
function createIsNew() {
  const senders = new Map<string, Taken>()
  return (from: string, n: number): boolean => {
    const taken = senders.get(from) ?? new Taken()
    senders.delete(from)
    senders.set(from, taken)
    forgetOldest(senders, mostSenders)
    return taken.take(n)
  }
}

/** Longer than one read. Others may take a node for dead that has not read for this time, in ms. */
const stallMs = 3_000

/** To be called at every read. */
function createStallWatch(onStall: () => Promise<void>, timers: Pick<Timers, 'monotonic'>) {
  let readAt = timers.monotonic()
  return async (): Promise<void> => {
    const isStall = timers.monotonic() - readAt > stallMs
    try {
      if (isStall) await onStall()
    } finally {
      // The time that this took is not a stall.
      readAt = timers.monotonic()
    }
  }
}
