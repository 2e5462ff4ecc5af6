import { readFileSync } from 'node:fs'
import { Service } from '@ringwire/testkit/service'
import { Redis } from 'ioredis'
import { Postgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'

/**
 * What idle extended sessions take: resident memory of their node, and commands of Redis. Each has a socket of its own, in
 * processes that do nothing else.
 * `npx bun packages/server/test/redis/idle.measure.ts [SESSIONS]`
 *
 * Needs as many open files as sessions and some more (`ulimit -n`).
 */
const { argv } = process
const mostOfAProcess = 9_000
const atOnce = 64
const idleS = 60

if (argv[2] === 'clients') {
  await holdClients(argv[3]!, Number(argv[4]), Number(argv[5]))
} else await measure(Number(argv[2] ?? 18_000))

async function holdClients(url: string, first: number, count: number): Promise<void> {
  const service = Object.assign(new Service(), { address: url })
  let next = first
  const open = async () => {
    while (next < first + count) {
      const token = await service.token({ user_id: `person ${next++}`, role: 'agent' })
      const socket = new WebSocket(`${url.replace('http', 'ws')}/v1/ws?ext=1`, ['jwt', token])
      await new Promise((resolve, reject) => {
        socket.onmessage = resolve
        socket.onclose = ({ code }) => reject(new Error(`closed with ${code}`))
      })
    }
  }
  await Promise.all(Array.from({ length: atOnce }, open))
  console.log('all are there')
}

/** The smallest for four seconds: a runtime gives memory back when it is idle for a while. */
async function settledRss(pid: number): Promise<number> {
  const read = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1_024
  let smallest = read()
  for (let quiet = 0; quiet < 8; quiet++) {
    await Bun.sleep(500)
    if (read() < smallest * 0.995) quiet = 0
    smallest = Math.min(smallest, read())
  }
  return read()
}

async function measure(sessions: number): Promise<void> {
  const [postgres, redis] = await Promise.all([Postgres.start(), startRedis()])
  const client = new Redis(redis.url)
  const service = await new Service({
    DATABASE_URL: await postgres.database(),
    REDIS_URL: redis.url,
    RINGWIRE_JWT_SECRETS: `test:${'A'.repeat(43)}`,
  }).start()
  const holders: ReturnType<typeof Bun.spawn>[] = []
  let held = 0
  const hold = async (until: number) => {
    while (held < until) {
      const count = Math.min(mostOfAProcess, until - held)
      const command = [process.execPath, import.meta.path, 'clients', service.url, String(held), String(count)]
      const holder = Bun.spawn(command, { stdout: 'pipe', stderr: 'inherit' })
      holders.push(holder)
      held += count
      const { value } = await holder.stdout.getReader().read()
      if (value === undefined) throw new Error('the clients did not connect')
    }
  }
  const commandsASecond = async () => {
    const read = async () => Number(/total_commands_processed:(\d+)/.exec(await client.info('stats'))?.[1])
    const before = await read()
    await Bun.sleep(idleS * 1_000)
    return (await read()) - before - 1
  }
  try {
    // What connecting compiles is no memory of sessions.
    await hold(1_000)
    const before = await settledRss(service.pid)
    const few = (await commandsASecond()) / idleS
    await hold(sessions)
    const each = async () => Math.round(((await settledRss(service.pid)) - before) / (sessions - 1_000))
    const atOnce = await each()
    const many = (await commandsASecond()) / idleS
    console.log(`${sessions} idle extended sessions: ${atOnce} bytes of the node each, ${await each()} a minute later`)
    console.log(`commands of Redis a second: ${few.toFixed(1)} with 1,000, ${many.toFixed(1)} with ${sessions}`)
  } finally {
    for (const holder of holders) holder.kill('SIGKILL')
    client.disconnect()
    await service.dispose()
    await Promise.all([postgres.dispose(), redis.stop()])
  }
}
