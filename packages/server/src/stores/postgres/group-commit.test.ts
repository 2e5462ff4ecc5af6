import { expect, spyOn, test } from 'bun:test'
import { createGroupCommit } from './group-commit.ts'

/** So many transitions wait for a connection and are given up, the last one first: how long that keeps the CPU, in µs. */
async function giveUp(count: number): Promise<number> {
  const commits = createGroupCommit({ free: 0, write: async () => [] })
  const timers = spyOn(globalThis, 'setTimeout').mockImplementation((() => 0) as unknown as typeof setTimeout)
  const waiting = Array.from({ length: count }, (_, n) => commits.commit({ keys: [String(n)] }, 0))
  const giveUps = timers.mock.calls.map(([run]) => run as () => void).reverse()
  timers.mockRestore()
  const results = Promise.allSettled(waiting)
  Bun.gc(true)
  const before = process.cpuUsage()
  for (const run of giveUps) run()
  const { user, system } = process.cpuUsage(before)
  for (const result of await results)
    expect(result).toMatchObject({ status: 'rejected', reason: { kind: 'unavailable' } })
  return user + system
}

test('to give up one of many transitions that wait takes no longer than one of a few', async () => {
  const [few, many] = [1_000, 32_000]
  const ratios: number[] = []
  for (let round = 0; round < 5; round++) {
    let alone = 0
    for (let done = 0; done < many; done += few) alone += await giveUp(few)
    ratios.push((await giveUp(many)) / alone)
  }
  expect(Math.min(...ratios)).toBeLessThan(3)
}, 240_000)
