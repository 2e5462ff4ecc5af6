import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Taken } from './taken.ts'

test('[EXT4] 10 was refused and 11 taken: that is known of 10 as long as it is not taken', () => {
  const taken = new Taken()
  for (const n of [9, 11]) taken.take(n)
  expect([9, 10, 11, 12].map((n) => taken.isLate(n))).toEqual([false, true, false, false])
  taken.take(10)
  expect(taken.isLate(10)).toBe(false)
})

test('[EXT4] each is taken once', () => {
  const taken = new Taken()
  expect([taken.take(9), taken.take(11), taken.take(10), taken.take(10), taken.take(11)]).toEqual([
    true,
    true,
    true,
    false,
    false,
  ])
})

test('[PLACE2] [EXT4] without some of them it is what it was, but for these', () => {
  const taken = new Taken()
  for (const n of [1, 2, 4, 5]) taken.take(n)
  const others = taken.without([2, 5, 7, -3])
  expect([1, 2, 3, 4, 5, 6, 7].map((n) => others.has(n))).toEqual([true, false, false, true, false, false, false])
  expect([1, 2, 3, 4, 5].map((n) => taken.has(n))).toEqual([true, true, false, true, true])
  taken.join(others)
  expect(taken.has(5)).toBe(true)
})

/** Requests as clients send them: mostly the next, some again, some far ahead. */
const requests = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: -3, max: 3 }).map((by) => ({ by })) },
    { weight: 2, arbitrary: fc.integer({ min: -1_500, max: 1_500 }).map((by) => ({ by })) },
    { weight: 1, arbitrary: fc.constant({ by: 2 ** 33 }) },
  ),
  { maxLength: 200 },
)

test('[EXT4] it knows exactly which of the last 1024 requests were taken, also as text', () => {
  fc.assert(
    fc.property(requests, fc.nat({ max: 200 }), (all, half) => {
      let taken = new Taken()
      const known = new Set<number>()
      let last = 1
      for (const [index, { by }] of all.entries()) {
        if (index === half) taken = Taken.read(taken.write())
        const n = Math.max(1, last + by)
        last = n
        const highest = Math.max(0, ...known)
        const isOld = n <= highest - 1_024
        expect(taken.has(n)).toBe(isOld || known.has(n))
        expect(taken.take(n)).toBe(!isOld && !known.has(n))
        if (!isOld) known.add(n)
      }
    }),
    { numRuns: 200 },
  )
})

test('[EXT4] what two have taken, one has taken that joined the other', () => {
  const numbers = fc.array(fc.integer({ min: 1, max: 900 }), { maxLength: 40 })
  fc.assert(
    fc.property(numbers, numbers, (one, two) => {
      const [first, second] = [new Taken(), new Taken()]
      for (const n of one) first.take(n)
      for (const n of two) second.take(n)
      first.join(second)
      for (let n = 1; n <= 900; n++) expect(first.has(n)).toBe(one.includes(n) || two.includes(n))
    }),
  )
})
