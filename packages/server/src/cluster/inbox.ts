import type { Cancel, Timers } from '../ports/clock.ts'
import { forgetOldest } from '../ports/oldest.ts'
import { StoreError } from '../ports/store-error.ts'
import { Taken } from '../session/taken.ts'
import { type Answer, addAnswer, type Batch, type Message, readBatch, writeBatch } from './batch.ts'
import type { Frame } from './frames.ts'
import type { Post } from './post.port.ts'
import { RefusedError } from './writer.ts'

export interface InboxOptions {
  readonly post: Pick<Post, 'send' | 'listen'>
  readonly node: string
  /** Does what another node asks for; undefined answers nothing in particular. */
  readonly onFrame: (frame: Frame, from: string) => unknown
  /** Resolves when what was done is saved: nobody is answered before. */
  readonly saved: () => Promise<void> | undefined
  /** What is answered where it was refused: a session turned out to be another node's. */
  readonly onRefused: (frame: Frame, answer: unknown) => unknown
  /** A node did not say for a while that it lives. */
  readonly isSilent: (node: string) => boolean
  /** A node leaves a question unanswered; told again and again as long as that is so. */
  readonly onWaiting: (node: string) => void
  /** This process stood still: others may have taken what it owns. */
  readonly onStall: () => Promise<void>
  readonly onError: (error: unknown) => void
  /** How long a node may take to hear what it is told, in ms. */
  readonly heardMs?: number | undefined
  readonly timers: Timers
}

/** Frames from node to node: questions and their answers, and what a node lets others know. */
export interface Inbox {
  start(): Promise<void>
  /**
   * The answer of another node, when it has saved what it did. Rejects with a `StoreError` where none comes in time: `ms`, or
   * less where nobody heard of that node for a while.
   */
  ask(node: string, frame: Frame, ms?: number): Promise<unknown>
  /** A node is silent: what it was asked for is not answered. */
  giveUp(node: string): void
  /** Lets a node know; it may be lost. */
  tell(node: string, frame: Frame): void
  /** Resolves when everything that was sent to this node before is read and done; false where that is not so within 3 s. */
  heard(): Promise<boolean>
  stop(): void
}

/** A holder is asked for a sign of life within 3 s [PLACE4]. */
export const askMs = 4_500
const defaultHeardMs = 3_000
/** One that is silent has so long: longer than it takes to hear that a node has started. In ms. */
const silentMs = 1_500
const againMs = 100
/** After this time without an answer, in ms, the node that asks looks whether the other one lives. */
const unansweredMs = 50
/** Longer than one read: who did not read for so long may be taken for dead. In ms. */
const stallMs = 3_000
/** Senders of which it is known what was read. */
const mostSenders = 1_000

/** A question that was answered. */
interface Done {
  readonly id: number
  readonly frame: Frame
  readonly answer: Answer
}

interface Waiting {
  readonly node: string
  readonly since: number
  readonly resolve: (value: unknown) => void
  readonly reject: (error: StoreError) => void
  readonly cancel: Cancel
}

export function createInbox(options: InboxOptions): Inbox {
  const {
    post,
    node,
    onFrame,
    saved,
    onRefused,
    isSilent,
    onWaiting,
    onStall,
    onError,
    heardMs = defaultHeardMs,
    timers,
  } = options
  const outgoing = new Map<string, Message[]>()
  /** What was just done, by who is told so. */
  const unanswered = new Map<string, Done[]>()
  const waiting = new Map<number, Waiting>()
  const senders = new Map<string, Taken>()
  /** Of answers that could not be posted, how long they are tried again. */
  const answersUntil = new WeakMap<Message, number>()
  let lastN = 0
  let lastAsked = 0
  let readAt = timers.monotonic()
  let isStopped = false
  /** Whether a timer looks for questions that wait. */
  let isWatching = false

  /** What goes to a node at the end of this turn of the event loop. */
  function outgoingTo(to: string): Message[] {
    const known = outgoing.get(to)
    if (known !== undefined) return known
    const messages: Message[] = []
    outgoing.set(to, messages)
    if (outgoing.size === 1) timers.turn(postAll)
    return messages
  }

  function postAll(): void {
    const all = [...outgoing]
    outgoing.clear()
    for (const [to, messages] of all) {
      lastN++
      const batch: Batch = { from: node, n: lastN, messages }
      post.send(to, writeBatch(batch)).catch((error) => notPosted(to, messages, error))
    }
  }

  function notPosted(to: string, messages: readonly Message[], error: unknown): void {
    if (!(error instanceof StoreError)) return void onError(error)
    for (const message of messages) {
      if (message[1] !== null) settle(message[0])?.reject(error)
      // Who asked waits for it; one that comes twice is passed over.
      else if (isWorthIt(message)) timers.after(againMs, () => void outgoingTo(to).push(message))
    }
  }

  /** Nobody waits for an answer for longer. */
  function isWorthIt(answer: Message): boolean {
    const until = answersUntil.get(answer) ?? timers.monotonic() + askMs
    answersUntil.set(answer, until)
    return !isStopped && timers.monotonic() < until
  }

  function settle(id: number): Waiting | undefined {
    const known = waiting.get(id)
    known?.cancel()
    waiting.delete(id)
    return known
  }

  async function lookForStall(): Promise<void> {
    const isStall = timers.monotonic() - readAt > stallMs
    try {
      if (isStall) await onStall()
    } finally {
      // What that took is no stall.
      readAt = timers.monotonic()
    }
  }

  /** One that cannot be read, or whose end is a bug, takes nothing else along. */
  function takeBytes(bytes: Buffer): void {
    try {
      take(readBatch(bytes))
    } catch (error) {
      onError(error)
    }
  }

  function take({ from, n, messages }: Batch): void {
    if (!takenOf(from).take(n)) return
    for (const message of messages) {
      if (message[1] === null) answered(message[0], message[2])
      else {
        const [id, frame] = message
        const done = run(frame, from)
        if (id === 0) continue
        if (done instanceof Promise) void done.then((answer) => reply(from, { id, frame, answer }))
        else reply(from, { id, frame, answer: done })
      }
    }
  }

  /** Exactly: a batch that had to be posted again comes after later ones. */
  function takenOf(from: string): Taken {
    const taken = senders.get(from) ?? new Taken()
    senders.delete(from)
    senders.set(from, taken)
    forgetOldest(senders, mostSenders)
    return taken
  }

  function run(frame: Frame, from: string): Answer | Promise<Answer> {
    try {
      const done = onFrame(frame, from)
      return done instanceof Promise ? done.then((ok) => ({ ok }), failed) : { ok: done }
    } catch (error) {
      return failed(error)
    }
  }

  function failed(error: unknown): Answer {
    if (!(error instanceof StoreError)) onError(error)
    return { failed: error instanceof StoreError ? error.kind : 'unknown', why: String(error) }
  }

  function reply(to: string, done: Done): void {
    if (unanswered.size === 0) queueMicrotask(replyAll)
    const known = unanswered.get(to)
    if (known === undefined) unanswered.set(to, [done])
    else known.push(done)
  }

  /**
   * What was read together is saved and answered together. The save is asked for before another one can begin and end: who
   * asks after that would not hear that it was refused.
   */
  function replyAll(): void {
    const all = [...unanswered]
    unanswered.clear()
    const postAnswers = (answerOf: (done: Done) => Answer) => {
      for (const [to, dones] of all) {
        const messages = outgoingTo(to)
        for (const done of dones) addAnswer(messages, done.id, answerOf(done))
      }
    }
    const postThem = () => postAnswers(({ answer }) => answer)
    const saving = saved()
    if (saving === undefined) postThem()
    else
      saving.then(postThem, (error) => {
        const isRefused = error instanceof RefusedError
        postAnswers(({ frame, answer }) => {
          if (!isRefused) return failed(error)
          return 'ok' in answer ? { ok: onRefused(frame, answer.ok) } : answer
        })
      })
  }

  function answered(ids: readonly number[], answer: Answer): void {
    for (const id of ids) {
      const asked = settle(id)
      if ('failed' in answer) asked?.reject(new StoreError(answer.failed, answer.why))
      else asked?.resolve(answer.ok)
    }
  }

  function ask(to: string, frame: Frame, ms = to !== node && isSilent(to) ? silentMs : askMs): Promise<unknown> {
    lastAsked++
    const id = lastAsked
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const expire = () => settle(id)?.reject(new StoreError('unknown', 'the node of the session did not answer in time'))
    const since = timers.monotonic()
    waiting.set(id, { node: to, since, resolve, reject, cancel: timers.after(ms, expire) })
    watchWaiting()
    outgoingTo(to).push([id, frame])
    return promise
  }

  /** One timer for all questions: most are answered long before. */
  function watchWaiting(): void {
    if (isWatching || isStopped) return
    isWatching = true
    timers.after(unansweredMs, () => {
      isWatching = false
      const before = timers.monotonic() - unansweredMs
      const late = new Set<string>()
      for (const { node, since } of waiting.values()) if (since <= before) late.add(node)
      for (const each of late) if (each !== node) onWaiting(each)
      if (waiting.size > 0) watchWaiting()
    })
  }

  return {
    async start() {
      post.listen({ onRead: lookForStall, onBatch: takeBytes })
      if (
        !(await ask(node, ['heard'], 10_000).then(
          () => true,
          () => false,
        ))
      ) {
        throw new Error('the inbox of this node cannot be read')
      }
    },
    ask,
    giveUp(from) {
      for (const [id, asked] of [...waiting])
        if (asked.node === from) settle(id)?.reject(new StoreError('unknown', 'the node of the session is silent'))
    },
    tell: (to, frame) => void outgoingTo(to).push([0, frame]),
    heard: () =>
      ask(node, ['heard'], heardMs).then(
        () => true,
        (error) => {
          if (error instanceof StoreError && error.kind === 'unknown') return false
          throw error
        },
      ),
    stop() {
      isStopped = true
      for (const id of [...waiting.keys()]) settle(id)?.reject(new StoreError('unavailable', 'this node stops'))
    },
  }
}
