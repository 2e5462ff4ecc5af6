import { readdir, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import type { RedisServer } from '../support/redis.ts'

/** Everything that is written is in a file before it is answered. */
export const appendOnly = ['--appendonly', 'yes', '--appendfsync', 'always', '--aof-load-truncated', 'yes']

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
