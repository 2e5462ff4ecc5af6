import { expect, test } from 'bun:test'
import { createMemoryCounters } from '../stores/memory/limits.ts'
import { addressKey, createLocalLimits } from './limits.ts'

test('[TOK5] IPv6 counts by /64, IPv4 by its address, mapped or not', () => {
  expect(addressKey('2001:db8:1:2:3:4:5:6')).toBe(addressKey('2001:db8:1:2:ffff::1'))
  expect(addressKey('2001:db8:1:2::1')).not.toBe(addressKey('2001:db8:1:3::1'))
  expect(addressKey('::ffff:192.0.2.1')).toBe(addressKey('192.0.2.1'))
  expect(addressKey('::ffff:c000:201')).toBe('192.0.2.1')
  expect(addressKey('192.0.2.1')).not.toBe(addressKey('192.0.2.2'))
  expect(addressKey('fe80::1%eth0')).toBe(addressKey('fe80::2%eth1'))
  expect(addressKey(undefined)).toBe('unknown')
  expect(addressKey('not an address')).toBe('unknown')
})

test('[HTTP1] an address whose strangers were refused fifty times, or are over its limit, is insistent', () => {
  const withLimit = (count: number) =>
    createLocalLimits({ restRateIp: { count, seconds: 10 }, restRate: null, connectRate: null }, createMemoryCounters())
  const strangers = (count: number) => {
    const limits = withLimit(count)
    return Array.from({ length: 60 }, () => limits.stranger('192.0.2.1'))
  }
  expect(strangers(1_000).map(({ isInsistent }) => isInsistent)).toEqual([
    ...Array(50).fill(false),
    ...Array(10).fill(true),
  ])
  expect(strangers(20).map(({ isInsistent }) => isInsistent)).toEqual([
    ...Array(20).fill(false),
    ...Array(40).fill(true),
  ])
  expect(strangers(20).filter(({ ok }) => ok)).toHaveLength(20)
})

test('[WS7] a connect that the service could not let in does not count', () => {
  const budget = { count: 2, seconds: 10 }
  const limits = createLocalLimits({ restRateIp: null, restRate: null, connectRate: budget }, createMemoryCounters())
  const participant = { product: 'shop', role: 'agent', userId: 'ann' }
  const connects = (count: number) => Array.from({ length: count }, () => limits.connection(participant).ok)
  expect(connects(2)).toEqual([true, true])
  limits.refundConnection(participant)
  expect(connects(2)).toEqual([true, false])
})
