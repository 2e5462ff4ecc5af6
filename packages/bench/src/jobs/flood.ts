// What an enemy sends. Each flood is a number of workers that go on until its time is over; all of it is on loopback.
import { loadBetween, readLoad } from '../proc.ts'
import type { Course, Flood } from './course.ts'
import { floodsOverHttp } from './flood-http.ts'
import { floodsOverSockets } from './flood-sockets.ts'
import { type FloodJob, type FloodName, type Prepared, plainResult } from './job.ts'

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
