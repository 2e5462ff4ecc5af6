import { describe, expect, test } from 'bun:test'
import { LatencyHistogram, LONGEST_US, median, ratios, spread } from './statistics.ts'

describe('median', () => {
  test('the middle one, or the mean of the two in the middle', () => {
    expect(median([9, 1, 5])).toBe(5)
    expect(median([4, 1, 9, 2])).toBe(3)
    expect(median([7])).toBe(7)
    expect(median([10, 9, 100])).toBe(10)
  })

  test('leaves its argument in order', () => {
    const values = [3, 1, 2]
    median(values)
    expect(values).toEqual([3, 1, 2])
  })

  test('nothing has no median', () => {
    expect(() => median([])).toThrow()
  })
})

describe('ratios', () => {
  test('one per round, so that drift of the machine cancels out', () => {
    expect(ratios([200, 100], [100, 50])).toEqual([2, 2])
    expect(spread(ratios([200, 90, 330], [100, 100, 110]))).toEqual({ median: 2, min: 0.9, max: 3 })
  })

  test('a missing round or a zero is an error and not a number', () => {
    expect(() => ratios([1, 2], [1])).toThrow()
    expect(() => ratios([1], [0])).toThrow()
    expect(() => ratios([1], [Number.NaN])).toThrow()
  })
})

describe('LatencyHistogram', () => {
  test('percentiles by nearest rank', () => {
    const histogram = new LatencyHistogram()
    for (let us = 1; us <= 100; us++) histogram.record(us * 1000 + 999)
    expect(histogram.percentile(0.5)).toBe(50)
    expect(histogram.percentile(0.99)).toBe(99)
    expect(histogram.percentile(1)).toBe(100)
  })

  test('survives the way to another process, and adds up', () => {
    const histogram = new LatencyHistogram()
    for (let i = 0; i < 10; i++) histogram.record(5000)
    const sum = new LatencyHistogram(histogram.counts())
    sum.add([0, 100])
    expect(histogram.counts().length).toBe(6)
    expect(sum.percentile(0.5)).toBe(1)
    expect(sum.percentile(0.95)).toBe(5)
  })

  test('long ones are as exact as short ones', () => {
    const histogram = new LatencyHistogram()
    for (const us of [3, 4095, 4096, 123_456]) histogram.record(us * 1000)
    const sum = new LatencyHistogram([1])
    sum.add(histogram.counts())
    expect([0.4, 0.6, 0.8, 1].map((share) => sum.percentile(share))).toEqual([3, 4095, 4096, 123_456])
  })

  test('the longest ones are not lost', () => {
    const histogram = new LatencyHistogram()
    histogram.record(1e12)
    expect(histogram.percentile(1)).toBe(LONGEST_US)
    histogram.clear()
    expect(() => histogram.percentile(0.5)).toThrow()
  })
})
