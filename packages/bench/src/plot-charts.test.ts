import { expect, test } from 'bun:test'
import { chartOf, figure } from './plot-charts.ts'

const numbers = (svg: string, pattern: RegExp) => [...svg.matchAll(pattern)].map((found) => Number(found[1]))

test('a bar is as long as its figure, and has it beside it', () => {
  const bars = [
    { label: 'one', value: 200_000 },
    { label: 'a < b', value: 50_000 },
  ]
  const svg = chartOf({ kind: 'bars', name: 'relay', title: 'Relay', unit: 'messages per second', bars })
  const [one = 0, other = 0] = numbers(svg, /<rect [^>]*width="([\d.]+)"/g)
  expect(one / other).toBeCloseTo(4, 1)
  expect(svg).toContain('>50\u202f000</text>')
  expect(svg).toContain('a &lt; b')
})

test('ten times as long is as far up, wherever; twice the load is twice as far right', () => {
  const lines = [{ label: 'one', points: [[1000, 10] as const, [2000, 100] as const, [4000, 1000] as const] }]
  const svg = chartOf({ kind: 'lines', name: 'load', title: 'Load', x: 'messages per second', y: 'µs', lines })
  const [x1 = 0, x2 = 0, x3 = 0] = numbers(svg, /<circle class="line0" cx="([\d.]+)"/g)
  const [y1 = 0, y2 = 0, y3 = 0] = numbers(svg, /<circle class="line0" cx="[\d.]+" cy="([\d.]+)"/g)
  expect(x3 - x2).toBeCloseTo(2 * (x2 - x1), 0)
  expect(y1 - y2).toBeCloseTo(y2 - y3, 0)
  expect(svg).not.toMatch(/NaN|Infinity/)
})

test('figures have three digits that count', () => {
  expect([0.1234, 4.1, 12.345, 987.6, 42_639].map(figure)).toEqual(['0.123', '4.1', '12.3', '988', '42\u202f600'])
})
