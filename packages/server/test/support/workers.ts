import { readdirSync, readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { workerOption } from '../../src/cli/worker-process.ts'
import { tagOfSessionId } from '../../src/ports/session-id.ts'

/** The workers that a process has started, by their number. */
export function workersOf(parent: number): Map<number, number> {
  const pids = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim().split(' ').filter(Boolean)
  return new Map(
    pids.flatMap((pid) => {
      const worker = workerNumber(Number(pid))
      return worker === undefined ? [] : [[worker, Number(pid)] as const]
    }),
  )
}

/** Every process on this machine that is a worker of a service with this data directory. */
export function workersWith(dataDir: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => workerNumber(pid) !== undefined && read(pid, 'environ').includes(dataDir))
}

function workerNumber(pid: number): number | undefined {
  const args = read(pid, 'cmdline').split('\0')
  const at = args.indexOf(workerOption)
  return at < 0 ? undefined : Number(args[at + 1])
}

/** Empty where the process is gone. */
function read(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8')
  } catch {
    return ''
  }
}

/** The id of the node that holds the socket of a session; undefined where none does. */
export async function nodeOf(redisUrl: string, sessionId: string): Promise<string | undefined> {
  const redis = new Redis(redisUrl)
  try {
    const name = await redis.hget(`rw:{${tagOfSessionId(sessionId)}}:o:${sessionId}`, 'o')
    return name?.split('~')[0] || undefined
  } finally {
    redis.disconnect()
  }
}
