import { expect, test } from 'bun:test'
import { createTurns } from './turns.ts'

const never = new AbortController().signal

/** Turns, and actions that go on until the test ends them. */
function setUp(atOnce: number, atOnceEach: number, waiting = 100, waitingEach = 100) {
  const turns = createTurns({ atOnce, atOnceEach, waiting, waitingEach })
  const began: string[] = []
  const ends = new Map<string, () => void>()
  return {
    turns,
    began,
    async begin(name: string, signal = never) {
      const [origin = ''] = name.split('/')
      const taken = turns.take(origin, signal, () => {
        began.push(name)
        return new Promise<string>((resolve) => ends.set(name, () => resolve(name)))
      })
      return { taken }
    },
    /** Ends it, and lets the next one begin. */
    async end(name: string) {
      ends.get(name)?.()
      await Bun.sleep(0)
    },
  }
}

test('an origin has so many at once, and the next of it begins when one of them ends', async () => {
  const { turns, began, begin, end } = setUp(10, 2)
  const first = await begin('a/1')
  for (const name of ['a/2', 'a/3', 'a/4', 'b/1']) await begin(name)
  expect(began).toEqual(['a/1', 'a/2', 'b/1'])
  await end('b/1')
  expect(began.length).toBe(3)
  await end('a/1')
  expect(await first.taken).toBe('a/1')
  expect(began.at(-1)).toBe('a/3')
  expect(turns.isFull('a')).toBe(false)
})

test('where all turns are taken, a free one goes round the origins that wait', async () => {
  const { began, begin, end } = setUp(2, 2)
  for (const name of ['a/1', 'a/2', 'a/3', 'a/4', 'b/1', 'b/2', 'c/1']) await begin(name)
  for (const name of ['a/1', 'a/2', 'a/3', 'b/1', 'c/1']) await end(name)
  expect(began).toEqual(['a/1', 'a/2', 'a/3', 'b/1', 'c/1', 'a/4', 'b/2'])
})

test('who gives up before its turn has none, and leaves its place', async () => {
  const { turns, began, begin, end } = setUp(1, 1, 1, 1)
  await begin('a/1')
  const call = new AbortController()
  const waits = await begin('b/1', call.signal)
  expect(turns.isFull('c')).toBe(true)
  call.abort()
  expect(await waits.taken).toBeUndefined()
  expect(turns.isFull('c')).toBe(false)
  const over = await begin('b/2', call.signal)
  expect(await over.taken).toBeUndefined()
  await end('a/1')
  await begin('b/3')
  expect(began).toEqual(['a/1', 'b/3'])
})

test('one origin may fill its own waiting room, and not that of all', async () => {
  const { turns, begin } = setUp(10, 1, 3, 2)
  for (const name of ['a/1', 'a/2', 'a/3', 'b/1']) await begin(name)
  expect(['a', 'b', 'c'].map((origin) => turns.isFull(origin))).toEqual([true, false, false])
  await begin('b/2')
  // The room is full, and who need not wait gets in.
  expect(['a', 'b', 'c'].map((origin) => turns.isFull(origin))).toEqual([true, true, false])
})

test('an action that fails gives its turn back', async () => {
  const { turns, began, begin } = setUp(1, 1)
  await expect(turns.take('a', never, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  await begin('a/1')
  expect(began).toEqual(['a/1'])
})
