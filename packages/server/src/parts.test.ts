import { beforeEach, expect, test } from 'bun:test'
import { createParts, type Part, type Parts } from './parts.ts'

let seen: string[]
let parts: Parts

beforeEach(() => {
  seen = []
  parts = createParts((name, error) => seen.push(`${name} failed: ${error}`))
})

const part = (name: string, fails?: 'start' | 'stop'): Part => {
  const step = (what: 'start' | 'stop') => async (atOnce?: boolean) => {
    seen.push(`${name} ${what}s`)
    // What begins before this one has ended would be seen between the two.
    await Bun.sleep(1)
    if (fails === what) throw new Error(name)
    seen.push(`${name} ${what === 'start' ? 'began' : `ended${atOnce ? ' at once' : ''}`}`)
  }
  return { name, start: step('start'), stop: step('stop') }
}

test('parts start in their order, each after the one before it, and stop in the reverse order', async () => {
  await parts.begin([part('a'), { name: 'nothing to do' }, part('b')])
  await parts.begin([part('c')])
  const begun = ['a starts', 'a began', 'b starts', 'b began', 'c starts', 'c began']
  expect(seen.splice(0)).toEqual(begun)
  await parts.stop(false)
  expect(seen.splice(0)).toEqual(['c stops', 'c ended', 'b stops', 'b ended', 'a stops', 'a ended'])
  await parts.stop(false)
  expect(seen).toEqual([])
})

test('a part that fails at its start stops those before it; those after it never start', async () => {
  await parts.begin([part('a')])
  expect(await parts.begin([part('b'), part('c', 'start'), part('d')]).catch(String)).toBe('Error: c')
  const ended = ['c starts', 'b stops', 'b ended at once', 'a stops', 'a ended at once']
  expect(seen.splice(0)).toEqual(['a starts', 'a began', 'b starts', 'b began', ...ended])
  await parts.stop(false)
  expect(seen).toEqual([])
})

test('where one cannot stop the others stop all the same', async () => {
  await parts.begin([part('a'), part('b', 'stop'), part('c')])
  expect(await parts.stop(false).catch(String)).toBe('Error: b')
  expect(seen.slice(-6)).toEqual(['c stops', 'c ended', 'b stops', 'b failed: Error: b', 'a stops', 'a ended'])
})
