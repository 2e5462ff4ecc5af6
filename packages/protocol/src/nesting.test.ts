import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { isNestedDeeper } from './nesting.ts'

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Math.max(0, ...Object.values(value).map(depthOf))
}

/** What could be taken for structure, or for the end of a string. */
const tricky = fc.string({
  unit: fc.constantFrom('[', ']', '{', '}', '"', '\\', '\\"', ':', ',', 'a', 'é', '\n'),
  maxLength: 8,
})
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 12, depthSize: 'large' },
    fc.oneof(tricky, fc.constantFrom(0, -1.5, true, null)),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(tricky, tie('value'), { maxKeys: 3 }),
  ),
}))

test('[WS6] the depth of a text is the depth of its value', () => {
  fc.assert(
    fc.property(value, fc.constantFrom(undefined, 1, '\t'), (it, space) => {
      // Padding: a text too short to be that deep is not looked at.
      const text = JSON.stringify(it, null, space) + ' '.repeat(64)
      const depth = depthOf(it)
      for (let levels = 0; levels <= depth + 2; levels++) {
        expect(isNestedDeeper(text, levels)).toBe(depth > levels)
        expect(isNestedDeeper(text.trimEnd(), levels)).toBe(depth > levels)
      }
    }),
    { numRuns: 2000 },
  )
})

test('[WS6] the bound is exact at 1,000 levels, of arrays, of objects and of both', () => {
  const shapes: [string, string][] = [
    ['[', ']'],
    ['{"[":', '}'],
    ['[{"}":', '}]'],
  ]
  for (const [open, close] of shapes) {
    const perPair = open.startsWith('[{') ? 2 : 1
    const nested = (levels: number) => `${open.repeat(levels / perPair)}0${close.repeat(levels / perPair)}`
    expect(depthOf(JSON.parse(nested(1000)))).toBe(1000)
    expect(isNestedDeeper(nested(1000), 1000)).toBe(false)
    expect(isNestedDeeper(nested(1002), 1000)).toBe(true)
  }
  expect(isNestedDeeper('['.repeat(1001) + ']'.repeat(1001), 1000)).toBe(true)
})

test('what is no JSON is looked at without harm', () => {
  for (const text of ['"', '\\', '"\\', '"\\\\', '[', ']]]]', '{"a":"b\\"', '\0'.repeat(10)]) {
    expect(typeof isNestedDeeper(text.repeat(1), 0)).toBe('boolean')
    expect(typeof isNestedDeeper(text.repeat(3000), 1000)).toBe('boolean')
  }
})

test('[WS6] ten times the text takes about ten times as long, however its quotes and backslashes stand', () => {
  for (const unit of ['[]', '{}', '"a"', '\\', '\\"', '"\\\\"', '"\\"']) {
    const best = (length: number) => {
      const text = `["${unit.repeat(length / unit.length)}`
      // So many that nothing else runs in one of them, also where the machine is busy.
      const rounds = Array.from({ length: 300 }, () => {
        const began = performance.now()
        isNestedDeeper(text, 1000)
        return performance.now() - began
      })
      return Math.min(...rounds)
    }
    // A hundred times, if it went back over what it has seen. It may be compiled late.
    const isInProportion = () => best(65_000) < Math.max(best(6_500) * 40, 0.5)
    expect(Array.from({ length: 20 }).some(isInProportion), unit).toBe(true)
  }
})
