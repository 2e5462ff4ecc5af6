/** What the first process asks its workers, over the channel that it started them with. */
import type { Question, WorkerAnswers } from '../observability/machine.ts'
import { wholeAnswer } from '../observability/operator-answer.ts'
import type { OperatorAsk, Status } from '../observability/status.ts'

interface Asked {
  readonly id: number
  readonly question: Question
  readonly about?: OperatorAsk
}

export interface Said {
  readonly id: number
  readonly answer: unknown
}

export interface Questions {
  /** Rejects when the worker ends first. */
  ask<Q extends Question>(question: Q, about?: OperatorAsk): Promise<WorkerAnswers[Q]>
  /** The worker has said something. */
  said(said: Said): void
}

/** The side that asks. `ended` resolves when the worker is gone. */
export function createQuestions(send: (asked: Asked) => void, ended: Promise<unknown>): Questions {
  type Waiting = Pick<PromiseWithResolvers<unknown>, 'resolve' | 'reject'>
  const waiting = new Map<number, Waiting>()
  let ids = 0
  let isOver = false
  void ended.then(() => {
    isOver = true
    for (const { reject } of waiting.values()) reject(new Error('the worker is gone'))
    waiting.clear()
  })
  return {
    async ask<Q extends Question>(question: Q, about?: OperatorAsk) {
      if (isOver) throw new Error('the worker is gone')
      const id = ++ids
      const { promise, resolve, reject } = Promise.withResolvers<unknown>()
      // Throws where the channel is closed already: then nobody waits for an answer.
      send({ id, question, ...(about !== undefined && { about }) })
      waiting.set(id, { resolve, reject })
      // A worker is this program, of this version.
      return (await promise) as WorkerAnswers[Q]
    },
    said({ id, answer }) {
      waiting.get(id)?.resolve(answer)
      waiting.delete(id)
    },
  }
}

/** The side that answers: a worker, for as long as it runs. */
export function answerQuestions({ families, ready, present, operate }: Status): void {
  const answers: { [Q in Question]: (about: OperatorAsk) => WorkerAnswers[Q] | Promise<WorkerAnswers[Q]> } = {
    ...{ metrics: families, ready },
    present: async () => (await present())[0],
    operate: async (asked) => wholeAnswer(await operate(asked)),
  }
  process.on('message', async ({ id, question, about }: Asked) => {
    const answer = await answers[question](about as OperatorAsk)
    // The process that asked may be gone by now.
    if (process.connected) process.send?.({ id, answer } satisfies Said)
  })
}
