import { expect, test } from 'bun:test'
import { readdir, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { connectedCall } from '../support/extended-flows.ts'
import { candidate } from '../support/flows.ts'
import { hangUp, pairOn, stopAll } from './people.ts'
import { registerOutage } from './redis-outage.ts'
import { becomesReady, becomesUnready, insist, type World, worldFor } from './world.ts'

const world = worldFor({ redisArgs: ['--appendonly', 'yes', '--appendfsync', 'always', '--aof-load-truncated', 'yes'] })

/** A power cut may take the last part of a file that was not synced. */
async function restartTruncated({ redis }: World): Promise<void> {
  const directory = join(redis.directory, 'appendonlydir')
  const name = (await readdir(directory)).find((file) => file.endsWith('.incr.aof'))
  const file = join(directory, name ?? '')
  const { size } = await stat(file)
  // In the middle of a command.
  await truncate(file, Math.floor(size * 0.8) + 1)
  await redis.restart()
}

registerOutage('comes back from a file without its end', world, {
  begin: ({ redis }) => redis.kill(),
  end: restartTruncated,
  losesLogs: true,
})

test('[RES2] who was away meanwhile is not told that it missed nothing: its log ends too early', async () => {
  const { one, two, redis } = world()
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
  await restartTruncated(world())
  await becomesReady(one, two)
  const hello = await pair.callee.connect(before)
  expect(hello.data).toMatchObject({ recovered: false, active_calls: [{ call_uuid: call, holds_place: true }] })
  expect(hello.data.epoch).not.toBe(before?.epoch)
  await insist(pair.caller, 'webrtc.ice_candidate', candidate(call, 31))
  await pair.callee.next('webrtc.ice_candidate', ({ data }) => data.candidate.candidate.endsWith(':31'))
  await hangUp(one, pair, call)
  stopAll(pair)
}, 30_000)
