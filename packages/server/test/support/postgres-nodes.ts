import { createDeaths } from '../../src/cluster/deaths.ts'
import { createMembers, type Members, type MembersOptions } from '../../src/cluster/members.ts'
import { newNodeName } from '../../src/ports/node-name.ts'
import { openPostgresHeartbeats } from '../../src/stores/postgres/heartbeats.ts'
import { createSystemTimers } from '../../src/time/timers.ts'

export interface PostgresNodes extends Members {
  readonly deployment: string
}

export interface PostgresNodesOptions extends Omit<MembersOptions, 'heartbeats' | 'self' | 'deaths' | 'timers'> {
  readonly url: string
  readonly nodeId: string
  /** The monotonic clock of the machine, in ms. */
  readonly ticks?: () => number
}

/** The nodes on a database, as `backend.ts` composes them. */
export async function openPostgresNodes(options: PostgresNodesOptions): Promise<PostgresNodes> {
  const { url, nodeId, ticks, ...others } = options
  const heartbeats = await openPostgresHeartbeats(url, nodeId)
  const self = newNodeName(nodeId, heartbeats.openedAt)
  const timers = { ...createSystemTimers(), ...(ticks && { monotonic: ticks }) }
  return {
    ...createMembers({ ...others, heartbeats, self, deaths: createDeaths(timers), timers }),
    deployment: heartbeats.deployment,
  }
}
