import { expect, test } from 'bun:test'
import { comparison } from './measurement.ts'
import { plotOf } from './plot.ts'

const numbers = (svg: string, pattern: RegExp) => [...svg.matchAll(pattern)].map((found) => Number(found[1]))

test('twice and half are equally far from 1, and a row has its median, its rounds and its target', () => {
  const svg = plotOf(
    [
      comparison('relay', 'one', [2, 2, 2], { bound: 'at least', value: 1 }),
      comparison('relay', 'other', [0.25, 0.5, 4], { bound: 'at most', value: 0.25 }),
      comparison('connects', 'one', [1], null),
    ],
    'ratios',
  )
  const [twice = 0, half = 0, even = 0] = numbers(svg, /<circle class="\w+" cx="([\d.]+)"/g)
  expect(twice - even).toBeCloseTo(even - half, 0)
  expect([...svg.matchAll(/<circle class="(\w+)"/g)].map(([, name]) => name)).toEqual(['met', 'missed', 'plain'])
  expect(numbers(svg, /<line class="target" x1="([\d.]+)"/g)).toEqual([even, even - 2 * (even - half)])
  const [, other] = [...svg.matchAll(/<line class="range" x1="([\d.]+)" x2="([\d.]+)"/g)]
  expect(other?.slice(1).map(Number)).toEqual([even - 2 * (even - half), even + 2 * (twice - even)])
  expect(svg).toContain('>0.50 (0.25–4.00)</text>')
  expect(svg.match(/class="what"/g)).toHaveLength(2)
})

test('one row of one ratio has an axis, and text is text', () => {
  const svg = plotOf([comparison('a < "b"', 'c & d', [1], null)], '<title>')
  expect(svg).not.toMatch(/NaN|Infinity/)
  expect(svg).toContain('a &lt; &quot;b&quot;</text>')
  expect(svg).toContain('over c &amp; d</text>')
  expect(svg).toContain('<title id="title">&lt;title></title>')
})
