// Clients that connect and authenticate, so many at a time, and stay: what a service sees after its restart.
import { participantId, SIDES } from '../candidate.ts'
import type { Client } from '../dialects/dialect.ts'
import { loadBetween, readLoad } from '../proc.ts'
import { dialectOf } from '../systems.ts'
import { stayAwake } from './awake.ts'
import { atATime, closeClients, openClient, within } from './clients.ts'
import { type ConnectJob, type Prepared, plainResult } from './job.ts'

const WITHIN_MS = 110_000

export async function prepareConnect(job: ConnectJob): Promise<Prepared> {
  const dialect = dialectOf(job.target.system)
  const ids = Array.from({ length: job.count }, (_, i) => participantId(job.first + (i >> 1), SIDES[i % 2]!))
  const credentials = await within(WITHIN_MS, 'Credentials', dialect.credentials(job.target.port, ids))
  const clients: Client[] = []
  const { promise: broken, reject } = Promise.withResolvers<never>()
  // A client that is lost while idle is reported by the next one that waits.
  broken.catch(() => {})
  const open = async (i: number) => {
    const client = await openClient(dialect, job.target.port, ids[i]!, credentials[i]!)
    client.socket.onText = (text) => {
      if (!dialect.harmless(text, client)) reject(new Error(`An idle client received ${text.slice(0, 300)}`))
    }
    client.socket.onFailure = reject
    clients.push(client)
  }
  return {
    async run() {
      const awake = stayAwake()
      const before = readLoad(job.target.pid, job.target.core, job.target.morePids)
      const all = atATime(job.count, job.concurrency, open)
      await within(WITHIN_MS, 'Connecting', Promise.race([all, broken]))
      const load = loadBetween(before, readLoad(job.target.pid, job.target.core, job.target.morePids))
      awake.stop()
      return plainResult(clients.length, load)
    },
    async release() {
      await Promise.race([closeClients(clients), broken])
    },
  }
}
