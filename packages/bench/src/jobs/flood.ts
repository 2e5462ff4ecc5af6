// What an enemy sends. Each flood is a number of workers that go on until its time is over; all of it is on loopback.
import { loadBetween, readLoad } from '../proc.ts'
import { floodsOverHttp } from './flood-http.ts'
import { floodsOverSockets } from './flood-sockets.ts'
import { type FloodJob, type FloodName, type Prepared, plainResult, type Target } from './job.ts'

export interface Course {
  readonly target: Target
  running: boolean
  /** What got as far as the service's socket. */
  sent: number
  /** Connections that the service refused or closed. */
  refused: number
}

export type Worker = (course: Course) => Promise<void>

/** Makes what a flood needs before it begins: tokens, calls. */
export type Flood = (target: Target) => Promise<Worker[]>

const floods: Record<FloodName, Flood> = { ...floodsOverSockets, ...floodsOverHttp }

export async function prepareFlood({ target, flood }: FloodJob): Promise<Prepared> {
  return {
    async run({ measureMs }) {
      const workers = await floods[flood](target)
      const course: Course = { target, running: true, sent: 0, refused: 0 }
      const before = readLoad(target.pid, target.core)
      const timer = setTimeout(() => {
        course.running = false
      }, measureMs)
      await Promise.all(workers.map((work) => work(course)))
      clearTimeout(timer)
      return {
        ...plainResult(course.sent, loadBetween(before, readLoad(target.pid, target.core))),
        refused: course.refused,
      }
    },
    release: async () => {},
  }
}
