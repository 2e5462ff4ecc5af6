import { afterAll, expect, test } from 'bun:test'
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const directory = mkdtempSync(join(tmpdir(), 'ringwire-lock-test-'))
const log = join(directory, 'log')
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** A process of its own that holds the lock for `ms`, and writes down when it got it and when it gave it back. */
function holder(place: string, ms: number) {
  const code = `
    import { appendFileSync } from 'node:fs'
    import { withLock } from ${JSON.stringify(join(import.meta.dir, 'lock.mjs'))}
    withLock(${JSON.stringify(place)}, () => {
      appendFileSync(${JSON.stringify(log)}, 'in ' + process.pid + '\\n')
      console.log('held')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${ms})
      appendFileSync(${JSON.stringify(log)}, 'out ' + process.pid + '\\n')
    })`
  // Its files go to our directory: nothing is left behind where a holder is killed.
  const env = { ...process.env, TMPDIR: directory }
  return Bun.spawn(['node', '--input-type=module', '-e', code], { env, stdout: 'pipe', stderr: 'ignore' })
}

test('one process at a time', async () => {
  const holders = Array.from({ length: 6 }, () => holder('/somewhere', 20))
  expect(await Promise.all(holders.map((it) => it.exited))).toEqual([0, 0, 0, 0, 0, 0])
  const lines = readFileSync(log, 'utf8').trim().split('\n')
  expect(lines).toHaveLength(12)
  for (let i = 0; i < lines.length; i += 2) expect(lines[i + 1]).toBe(lines[i]?.replace('in', 'out'))
  expect(readdirSync(directory)).toEqual(['log'])
})

test('another directory has a lock of its own', async () => {
  const long = holder('/here', 60_000)
  await long.stdout.getReader().read()
  expect(await holder('/there', 0).exited).toBe(0)
  long.kill('SIGKILL')
  await long.exited
})

test('the lock of a process that was killed is taken over, by one at a time', async () => {
  for (let round = 0; round < 5; round++) {
    const killed = holder('/elsewhere', 60_000)
    await killed.stdout.getReader().read()
    killed.kill('SIGKILL')
    await killed.exited
    appendFileSync(log, 'killed\n')
    const next = Array.from({ length: 6 }, () => holder('/elsewhere', 5))
    expect(await Promise.all(next.map((it) => it.exited))).toEqual([0, 0, 0, 0, 0, 0])
    const lines = readFileSync(log, 'utf8').split('killed\n').at(-1)?.trim().split('\n') ?? []
    expect(lines).toHaveLength(12)
    for (let i = 0; i < lines.length; i += 2) expect(lines[i + 1]).toBe(lines[i]?.replace('in', 'out'))
  }
}, 240_000)
