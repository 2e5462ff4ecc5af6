/**
 * One machine with several workers, as its operators see it [ADM1, MET1]: the sum of what the workers tell. The counts of a
 * worker that is gone stay in the sum, its gauges do not. A silent worker counts with its last answer.
 *
 *   const machine = createMachine({ workers: 4, ownCounts: () => meter.families(nobody) })
 *   machine.joined(worker)   it listens; it gets questions until it ends
 *   machine.status           what the listener for operators answers
 *   machine.stop()
 */
import type { Health } from '@ringwire/protocol/rest'
import { countsOf, type Family, sumOf } from './families.ts'
import type { HealthReport } from './health.ts'
import { unavailable } from './operator-answer.ts'
import { gauge } from './series.ts'
import type { OperatorAnswer, OperatorAsk, ProcessPresent, Status } from './status.ts'

/** The questions to a worker, and its answers. */
export interface WorkerAnswers {
  metrics: readonly Family[]
  ready: HealthReport
  present: ProcessPresent | undefined
  operate: OperatorAnswer
}

export type Question = keyof WorkerAnswers

export interface AskedWorker {
  /** Only what operators ask has more than its name. Rejects when the worker ends first. */
  ask<Q extends Question>(question: Q, about?: OperatorAsk): Promise<WorkerAnswers[Q]>
  /** Resolves when it is gone. */
  readonly ended: Promise<unknown>
}

export interface Machine {
  readonly status: Status
  /** A worker listens. */
  joined(worker: AskedWorker): void
  stop(): void
}

export interface MachineOptions {
  /** How many workers there have to be. */
  readonly workers: number
  /** The counts of the process that started them. */
  readonly ownCounts: () => readonly Family[]
  /** How long a worker has for a request of an operator, in ms; tests wait less. */
  readonly operateMs?: number
}

/** For its readiness a worker tries both stores within 1 s. In ms. */
const answerMs: Readonly<Record<Question, number>> = { metrics: 1_000, ready: 2_000, present: 1_000, operate: 15_000 }
/** A worker that is killed loses its counts since its last answer: so it gets a question this often, in ms. */
const everyMs = 1_000

interface Member {
  readonly worker: AskedWorker
  last: readonly Family[]
  /** It let an answer about itself wait too long, and has given none since. */
  isSilent: boolean
}

export function createMachine({ workers, ownCounts, operateMs }: MachineOptions): Machine {
  const members = new Set<Member>()
  let ofGone: readonly Family[] = []

  function leave(member: Member): void {
    members.delete(member)
    ofGone = sumOf([ofGone, countsOf(member.last)])
  }

  async function refresh(member: Member): Promise<void> {
    const said = await ask(member, 'metrics')
    if (said !== undefined) member.last = said
  }

  const refreshAll = () => Promise.all([...members].map(refresh))
  const isKnown = ({ isSilent }: Member) => !isSilent
  const timer = setInterval(() => void refreshAll(), everyMs)
  timer.unref()

  function states(): Family {
    const answering = [...members].filter(isKnown).length
    return gauge('ringwire_workers', ['state'], 'Workers of this machine; one that is gone is being started again.', [
      [answering, 'answering'],
      [members.size - answering, 'silent'],
      [workers - members.size, 'gone'],
    ])
  }

  return {
    joined(worker) {
      const member: Member = { worker, last: [], isSilent: false }
      members.add(member)
      void worker.ended.then(() => leave(member))
    },
    status: {
      async families() {
        await refreshAll()
        const told = [...members].map((member) => (isKnown(member) ? member.last : countsOf(member.last)))
        return [states(), ...sumOf([...told, ofGone, countsOf(ownCounts())])]
      },
      live: () => healthOf(true, members.size > 0, []),
      async ready() {
        const reports = await Promise.all([...members].map((member) => ask(member, 'ready')))
        const heard = reports.filter((report) => report !== undefined)
        // Nothing comes to a worker that is gone; to one that hangs the kernel gives connections.
        const isReady = heard.length > 0 && heard.length === members.size && heard.every(({ status }) => status === 200)
        return healthOf(isReady, isReady, heard)
      },
      async present() {
        const told = await Promise.all([...members].map((member) => ask(member, 'present')))
        return told.filter((one) => one !== undefined)
      },
      async operate(asked) {
        for (const member of members) {
          if (!isKnown(member)) continue
          const answer = await ask(member, 'operate', asked, operateMs)
          if (answer !== undefined) return responseOf(answer)
          // A worker that hung or ended meanwhile may have made the change.
          if (asked.method !== 'GET') break
        }
        return responseOf(unavailable('No worker has answered. Look whether it was done, and ask again.'))
      },
    },
    stop: () => clearInterval(timer),
  }
}

/** Undefined where it is silent, or gone. A silent one is not asked again: nothing piles up where it hangs. */
async function ask<Q extends Question>(
  member: Member,
  question: Q,
  about?: OperatorAsk,
  limitMs: number = answerMs[question],
): Promise<WorkerAnswers[Q] | undefined> {
  if (member.isSilent) return undefined
  const { promise: late, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => {
    // A request of an operator may take long although the worker is well. The metrics, every second, find a worker that hangs.
    if (question !== 'operate') member.isSilent = true
    resolve(undefined)
  }, limitMs)
  const answer = member.worker.ask(question, about).then(
    (said) => {
      member.isSilent = false
      return said
    },
    () => undefined,
  )
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

function responseOf({ body, ...init }: OperatorAnswer): Response {
  return new Response(body, init)
}

function healthOf(ok: boolean, isServing: boolean, reports: readonly HealthReport[]): HealthReport {
  const worst = (store: 'database' | 'redis') => {
    const said = new Set(reports.map(({ body }) => body[store]))
    return said.has('error') ? 'error' : said.has('ok') ? 'ok' : 'unchecked'
  }
  const body: Health = { ok, database: worst('database'), redis: worst('redis'), service_ready: isServing }
  const isLow = reports.some(({ body }) => body.descriptors === 'low')
  return { status: ok ? 200 : 503, body: isLow ? { ...body, descriptors: 'low' } : body }
}
