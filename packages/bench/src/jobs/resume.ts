// Extended sessions that have lost their sockets and all come back at once: what a service sees after its network's
// outage. Every one has to be recovered [RES1].
import { participantId, SIDES } from '../candidate.ts'
import { members } from '../dialects/dialect.ts'
import { extendedUpgrade } from '../dialects/extended.ts'
import { nextEvent } from '../dialects/ringwire.ts'
import { FrameSocket } from '../frame-socket.ts'
import { loadBetween, quiet, readLoad } from '../proc.ts'
import { mintTokens } from '../tokens.ts'
import { stayAwake } from './awake.ts'
import { atATime, within } from './clients.ts'
import { type Prepared, plainResult, type ResumeJob } from './job.ts'

const WITHIN_MS = 60_000

export async function prepareResume(job: ResumeJob): Promise<Prepared> {
  const { port, pid } = job.target
  const ids = Array.from({ length: job.count }, (_, i) => participantId(job.first + (i >> 1), SIDES[i % 2]!))
  const tokens = await within(WITHIN_MS, 'Credentials', mintTokens(port, ids))
  const sockets: FrameSocket[] = []
  const queries: string[] = []

  async function enter(i: number): Promise<Record<string, unknown>> {
    const socket = await FrameSocket.open(port, extendedUpgrade(port, tokens[i]!, queries[i] ?? ''))
    sockets[i] = socket
    return members((await nextEvent({ id: ids[i]!, socket }, 'auth.ok')).data)
  }
  const opened = atATime(job.count, job.concurrency, async (i) => {
    const { session_id, epoch } = await enter(i)
    queries[i] = `&resume=${session_id}&epoch=${epoch}&seq=0&n=0`
  })
  await within(WITHIN_MS, 'Connecting', opened)
  const lose = () => Promise.all(sockets.map((socket) => socket.terminate()))
  await lose()
  await quiet(pid)

  return {
    async run() {
      let recovered = 0
      const awake = stayAwake()
      const before = readLoad(pid, job.target.core)
      const all = atATime(job.count, job.concurrency, async (i) => {
        if ((await enter(i)).recovered === true) recovered++
      })
      await within(WITHIN_MS, 'Resuming', all)
      const load = loadBetween(before, readLoad(pid, job.target.core))
      awake.stop()
      if (recovered !== job.count)
        throw new Error(`${job.count - recovered} of ${job.count} sessions were not recovered`)
      return plainResult(recovered, load)
    },
    async release() {
      await lose()
    },
  }
}
