import { expect, spyOn, test } from 'bun:test'
import { addressKey } from '../../limits/limits.ts'
import { createMemoryCounter } from './limits.ts'

test('[TOK5] memory stays flat while 300,000 addresses come; who is counted stays counted', async () => {
  const bound = 2000
  const counter = createMemoryCounter({ count: 1, seconds: 3600 }, bound)
  const address = (i: number) => addressKey(`2001:db8:${(i >>> 16).toString(16)}:${(i & 0xffff).toString(16)}::1`)
  let after100000 = 0
  for (let i = 0; i < 300_000; i++) {
    counter.consume(address(i))
    if (i === 100_000) {
      Bun.gc(true)
      after100000 = process.memoryUsage().heapUsed
    }
  }
  Bun.gc(true)
  expect(counter.size()).toBe(bound)
  expect(process.memoryUsage().heapUsed - after100000).toBeLessThan(8 * 1024 * 1024)
  expect(counter.consume(address(299_999))).toBeGreaterThan(0)
}, 240_000)

test('[TOK5] windows that ended are forgotten without being asked for', () => {
  let now = 0
  const clock = spyOn(performance, 'now').mockImplementation(() => now)
  try {
    const counter = createMemoryCounter({ count: 1, seconds: 1 }, 1000)
    for (let i = 0; i < 500; i++) counter.consume(`a${i}`)
    now = 999
    counter.consume('b')
    expect(counter.size()).toBe(501)
    now = 1_000
    counter.consume('c')
    expect(counter.size()).toBe(2)
  } finally {
    clock.mockRestore()
  }
})
