import { expect, test } from 'bun:test'
import { fitLine } from './line.ts'

test('the line through points that are on one is that one', () => {
  const { at0, slope } = fitLine([1, 2, 5].map((x) => [x, 3 + 2 * x]))
  expect(at0).toBeCloseTo(3)
  expect(slope).toBeCloseTo(2)
})

test('of points beside a line it leaves as much above as below', () => {
  const { at0, slope } = fitLine([
    [0, 0],
    [1, 3],
    [2, 0],
  ])
  expect(at0).toBeCloseTo(1)
  expect(slope).toBeCloseTo(0)
})

test('one place gives no line', () => {
  expect(() =>
    fitLine([
      [4, 1],
      [4, 2],
    ]),
  ).toThrow('two places')
})
