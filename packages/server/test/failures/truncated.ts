import { readdir, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { candidate } from '@ringwire/testkit/flows'
import { connectedCall } from '../support/extended-flows.ts'
import type { RedisServer } from '../support/redis.ts'
import { pairOn } from './people.ts'
import { becomesReady, becomesUnready, type World, worldFor } from './world.ts'

/** Everything that is written is in a file before it is answered. */
const appendOnly = ['--appendonly', 'yes', '--appendfsync', 'always', '--aof-load-truncated', 'yes']

/** A world whose Redis has such a file. */
export const appendOnlyWorld = () => worldFor({ redisArgs: appendOnly })

/** A power cut may take the last part of a file that was not synced. */
export async function restartTruncated(redis: RedisServer): Promise<void> {
  const directory = join(redis.directory, 'appendonlydir')
  const name = (await readdir(directory)).find((file) => file.endsWith('.incr.aof'))
  const file = join(directory, name ?? '')
  const { size } = await stat(file)
  // In the middle of a command.
  await truncate(file, Math.floor(size * 0.8) + 1)
  await redis.restart()
}

/**
 * A call whose callee is away while Redis loses the end of what it had, and perhaps the callee's node with what it knew;
 * everything is there again. `before` is where the callee would resume.
 */
export async function callBehindLoss({ one, two, redis }: World, isNodeLost: boolean) {
  const pair = await pairOn(one, two)
  const call = await connectedCall(pair)
  for (const client of [pair.caller, pair.callee]) {
    await client.request('webrtc.ice_candidate', candidate(call, 0))
  }
  for (let n = 1; n <= 30; n++) await pair.caller.request('webrtc.ice_candidate', candidate(call, n))
  await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':30'))
  const before = pair.callee.point
  await pair.callee.die()
  await redis.kill()
  await becomesUnready('redis', one, two)
  if (isNodeLost) await two.kill()
  await restartTruncated(redis)
  if (isNodeLost) await two.start()
  await becomesReady(one, two)
  return { pair, call, before }
}
