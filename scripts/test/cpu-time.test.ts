import { expect, test } from 'bun:test'
import { cpuSecondsOf } from './cpu-time.ts'

/** A program that uses the given share of a core. */
const burn = (ms: number) =>
  `let n = 0; while (process.cpuUsage().user < ${ms * 1000}) for (let i = 0; i < 1e6; i++) n += i;`

test('it counts what has ended, what runs, and what those have started', async () => {
  const before = cpuSecondsOf(process.pid) as number
  const ended = Bun.spawn([process.execPath, '-e', burn(250)], { stdio: ['ignore', 'inherit', 'inherit'] })
  expect(await ended.exited).toBe(0)
  const inner = `Bun.spawnSync([process.execPath, '-e', ${JSON.stringify(burn(250))}]);`
  const runs = Bun.spawn(
    [process.execPath, '-e', `${inner} ${burn(250)} console.log('done'); setInterval(() => {}, 1000)`],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  try {
    await runs.stdout.getReader().read()
    expect((cpuSecondsOf(process.pid) as number) - before).toBeGreaterThanOrEqual(0.7)
  } finally {
    runs.kill('SIGKILL')
    await runs.exited
  }
})

test('of a process that is not there it says nothing', () => {
  expect(cpuSecondsOf(2 ** 30)).toBeUndefined()
})
