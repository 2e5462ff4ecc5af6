import { expect, test } from 'bun:test'
import { inTime, overdue, soon, until } from './patience.ts'

test('where the machine stood still, what has to be soon may take as much longer', () => {
  Bun.sleepSync(1_000)
  expect(soon(50)).toBeGreaterThanOrEqual(900)
})

test('what is overdue is so when it is no longer soon, and not where it came', async () => {
  Bun.sleepSync(1_000)
  const begin = performance.now()
  overdue(10, () => expect.unreachable())()
  await new Promise<void>((resolve) => void overdue(50, resolve))
  expect(performance.now() - begin).toBeGreaterThanOrEqual(900)
})

test('what failed while the machine stood still runs once more, and what failed by itself does not', async () => {
  let runs = 0
  const late = async () => {
    if (++runs === 1) Bun.sleepSync(1_000)
    if (runs === 1) throw new Error('too late')
    return runs
  }
  expect(await inTime(late)).toBe(2)
  const wrong = async () => {
    runs++
    throw new Error('wrong')
  }
  await expect(inTime(wrong)).rejects.toThrow('wrong')
  expect(runs).toBe(3)
})

test('until resolves when it is so, and a failure says what was waited for', async () => {
  let looks = 0
  await until('the third look', () => ++looks === 3)
  expect(looks).toBe(3)
  await expect(until('the sky falls', () => false, 20)).rejects.toThrow('waited 20 ms until the sky falls')
})

test('until waits for an answer that comes later', async () => {
  const later = async () => {
    await Bun.sleep(5)
    return true
  }
  await until('the answer', later)
  await expect(until('the answer', async () => Promise.reject(new Error('broken')))).rejects.toThrow('broken')
})
