import { describe, expect, test } from 'bun:test'
import { parseAnswer, postJson } from './http-connection.ts'
import { comparison, met } from './measurement.ts'
import { parseOptions } from './options.ts'
import { afterName, cpuBetween } from './proc.ts'
import { count, formatComparisons, formatTable } from './report.ts'

describe('targets', () => {
  test('the median decides, on the right side of the bound', () => {
    expect(met(comparison('x', 'y', [1.9, 2, 9], { bound: 'at least', value: 2 }))).toBe(true)
    expect(met(comparison('x', 'y', [1, 1.99, 9], { bound: 'at least', value: 2 }))).toBe(false)
    expect(met(comparison('x', 'y', [3], { bound: 'at most', value: 3 }))).toBe(true)
    expect(met(comparison('x', 'y', [3.01], { bound: 'at most', value: 3 }))).toBe(false)
    expect(met(comparison('x', 'y', [3], null))).toBe(null)
  })

  test('are written beside the ratio', () => {
    const text = formatComparisons([comparison('relay', 'bare Bun', [0.9, 1, 1.2], { bound: 'at least', value: 0.95 })])
    expect(text.split('\n').at(-1)).toMatch(/relay +bare Bun +1\.00 +0\.90 +1\.20 +≥ 0\.95 +met$/)
  })

  test('say where the machine was not quiet', () => {
    const lines = [{ bound: 'at least', value: 0.95 } as const, null].map((goal) => {
      const noisy = { ...comparison('relay', 'bare Bun', [1], goal), noisy: true }
      return formatComparisons([noisy]).split('\n').at(-1)
    })
    expect(lines[0]).toEndWith('  met, noisy')
    expect(lines[1]).toEndWith('  noisy')
  })
})

test('columns of a table line up', () => {
  const text = formatTable({
    title: 't',
    head: ['', 'n'],
    rows: [
      ['a', '1'],
      ['long', '1000'],
    ],
  })
  expect(text).toBe('t\n         n\n----  ----\na        1\nlong  1000')
  expect(count(1234567.4)).toBe('1 234 567')
})

describe('options', () => {
  test('a part, in the order of the report', () => {
    const parsed = parseOptions([
      '--only',
      'call,relay',
      '--seconds',
      '1.5',
      '--rounds',
      '3',
      '--json',
      'out.json',
      '--plot',
      'a.svg',
    ])
    const options = { only: ['relay', 'call'], seconds: 1.5, rounds: 3, json: 'out.json', plot: 'a.svg', write: false }
    expect(parsed).toEqual({ ok: true, options } as typeof parsed)
  })

  test.each(['--only speed', '--seconds 0', '--rounds 1.5', '--fast', '--write --quick'])('refuses %s', (line) => {
    expect(parseOptions(line.split(' ')).ok).toBe(false)
  })
})

describe('readings of the kernel', () => {
  test('a name with brackets and spaces does not shift the fields', () => {
    expect(afterName('12 (a) b) S 1 2 3').slice(0, 2)).toEqual(['S', '1'])
  })

  test('the precise count, unless a thread took its share with it', () => {
    const before = { statSeconds: 1, preciseSeconds: 1.004 }
    expect(cpuBetween(before, { statSeconds: 1.5, preciseSeconds: 1.509 })).toBeCloseTo(0.505, 9)
    expect(cpuBetween(before, { statSeconds: 1.5, preciseSeconds: 1.1 })).toBe(0.5)
    expect(cpuBetween(before, { statSeconds: 1.5, preciseSeconds: Number.NaN })).toBe(0.5)
  })
})

describe('HTTP', () => {
  test('an answer is taken when it is whole', () => {
    const whole = Buffer.from('HTTP/1.1 200 OK\r\nX: 1\r\ncontent-length: 4\r\n\r\n{"é"'.replace('é', 'a'))
    for (let i = 0; i < whole.length; i++) expect(parseAnswer(whole.subarray(0, i))).toBe(null)
    expect(parseAnswer(whole)).toEqual({ status: 200, body: '{"a"' })
  })

  test('the length of a body is that of its bytes', () => {
    expect(Buffer.from(postJson(80, '/', [], { name: 'é' })).toString()).toContain('Content-Length: 13\r\n')
  })
})
