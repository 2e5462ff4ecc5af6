import { StoreError } from '../ports/store-error.ts'
import { type Answer, addAnswer } from './batch.ts'
import type { Frame } from './frames.ts'
import type { Outgoing } from './outgoing.ts'
import { RefusedError } from './writer.ts'

export interface AnswersOptions {
  readonly outgoing: Pick<Outgoing, 'to'>
  /** Does what another node asks for; undefined answers nothing in particular. */
  readonly onFrame: (frame: Frame, from: string) => unknown
  /** Resolves when everything that was done is saved: no answer is posted before. */
  readonly saved: () => Promise<void> | undefined
  /** The answer to a frame after a refused save: some session turned out to belong to another node. */
  readonly onRefused: (frame: Frame, answer: unknown) => unknown
  readonly onError: (error: unknown) => void
}

/** A question that was answered. */
interface Done {
  readonly id: number
  readonly frame: Frame
  readonly answer: Answer
}

/** Does what other nodes ask for, and posts the answers to what was read together after one save. */
export function createAnswers({ outgoing, onFrame, saved, onRefused, onError }: AnswersOptions) {
  /** Answers that are not posted yet, by the node that asked. */
  const unposted = new Map<string, Done[]>()

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
    if (unposted.size === 0) queueMicrotask(replyAll)
    const known = unposted.get(to)
    if (known === undefined) unposted.set(to, [done])
    else known.push(done)
  }

  /** The save begins before another one can begin and end, which would hide from these answers that it was refused. */
  function replyAll(): void {
    const all = [...unposted]
    unposted.clear()
    const postAll = (answerOf: (done: Done) => Answer) => {
      for (const [to, dones] of all) {
        const messages = outgoing.to(to)
        for (const done of dones) addAnswer(messages, done.id, answerOf(done))
      }
    }
    const afterRefusal = ({ frame, answer }: Done) => ('ok' in answer ? { ok: onRefused(frame, answer.ok) } : answer)
    const saving = saved()
    if (saving === undefined) postAll(({ answer }) => answer)
    else
      saving.then(
        () => postAll(({ answer }) => answer),
        (error) => postAll(error instanceof RefusedError ? afterRefusal : () => failed(error)),
      )
  }

  /** `id`: 0 if the other node does not wait for an answer. */
  return function answer(id: number, frame: Frame, from: string): void {
    const done = run(frame, from)
    if (id === 0) return
    if (done instanceof Promise) void done.then((answer) => reply(from, { id, frame, answer }))
    else reply(from, { id, frame, answer: done })
  }
}
