import { expect, test } from 'bun:test'
import type { Participant } from './call/call.ts'
import { addressKey, createCounter, createLimits, type Limit } from './limits.ts'

const off = { tokenRateIp: null, tokenRateKey: null, tokenFailRateIp: null, inviteRate: null, pairInviteRate: null }
const person = (userId: string): Participant => ({ product: 'shop', role: 'customer', userId })

async function times(count: number, ask: () => Promise<Limit>): Promise<Limit[]> {
  const answers: Limit[] = []
  for (let i = 0; i < count; i++) answers.push(await ask())
  return answers
}
const allowedOf = (answers: Limit[]) => answers.filter(({ ok }) => ok).length

test('[TOK5] each limit counts by itself and says when to come back', async () => {
  const limits = createLimits({
    ...off,
    tokenRateIp: { count: 2, seconds: 60 },
    tokenRateKey: { count: 3, seconds: 60 },
    tokenFailRateIp: { count: 1, seconds: 60 },
  })
  expect(allowedOf(await times(5, () => limits.tokenRequest('192.0.2.1')))).toBe(2)
  expect(allowedOf(await times(5, () => limits.tokenKey('k')))).toBe(3)
  expect(allowedOf(await times(5, () => limits.failedAuthentication('192.0.2.1')))).toBe(1)
  expect(await limits.tokenRequest('192.0.2.2')).toEqual({ ok: true })
  const refused = await limits.tokenRequest('192.0.2.1')
  if (refused.ok) throw new Error('the limit did not hold')
  expect(refused.retryAfterMs).toBeGreaterThan(0)
  expect(refused.retryAfterMs).toBeLessThanOrEqual(60_000)
})

test('[TOK5] a window ends', async () => {
  const limits = createLimits({ ...off, tokenRateIp: { count: 1, seconds: 1 } })
  expect(await limits.tokenRequest('192.0.2.1')).toEqual({ ok: true })
  const refused = await limits.tokenRequest('192.0.2.1')
  if (refused.ok) throw new Error('the limit did not hold')
  // What is tested is that time passes.
  await Bun.sleep(refused.retryAfterMs + 20)
  expect(await limits.tokenRequest('192.0.2.1')).toEqual({ ok: true })
})

test('[TOK5] a limit that is off never refuses', async () => {
  const limits = createLimits(off)
  expect(allowedOf(await times(100, () => limits.tokenRequest('192.0.2.1')))).toBe(100)
  expect(allowedOf(await times(100, () => limits.invite(person('a'), person('b'))))).toBe(100)
})

test('[TOK5] IPv6 counts by /64, IPv4 alone, mapped or not', () => {
  expect(addressKey('2001:db8:1:2:3:4:5:6')).toBe(addressKey('2001:db8:1:2:ffff::1'))
  expect(addressKey('2001:db8:1:2::1')).not.toBe(addressKey('2001:db8:1:3::1'))
  expect(addressKey('::ffff:192.0.2.1')).toBe(addressKey('192.0.2.1'))
  expect(addressKey('::ffff:c000:201')).toBe('192.0.2.1')
  expect(addressKey('192.0.2.1')).not.toBe(addressKey('192.0.2.2'))
  expect(addressKey('fe80::1%eth0')).toBe(addressKey('fe80::2%eth1'))
  expect(addressKey(undefined)).toBe('unknown')
  expect(addressKey('not an address')).toBe('unknown')
})

test('[INV8] invites count for the caller and for the pair', async () => {
  const limits = createLimits({
    ...off,
    inviteRate: { count: 4, seconds: 60 },
    pairInviteRate: { count: 2, seconds: 60 },
  })
  const [a, b, c, d] = [person('a'), person('b'), person('c'), person('d')]
  expect(allowedOf(await times(3, () => limits.invite(a, b)))).toBe(2)
  // What the pair refused is not the caller's loss.
  expect(allowedOf(await times(3, () => limits.invite(a, c)))).toBe(2)
  expect((await limits.invite(a, d)).ok).toBe(false)
  // And what the caller's limit refused is not the pair's.
  expect(allowedOf(await times(3, () => limits.invite(d, a)))).toBe(2)
  await limits.refundInvite(a, b)
  expect(allowedOf(await times(3, () => limits.invite(a, d)))).toBe(1)
})

test('[INV8] the direction of a pair counts, and the same user under another role is someone else', async () => {
  const limits = createLimits({ ...off, pairInviteRate: { count: 1, seconds: 60 } })
  const [a, b] = [person('a'), person('b')]
  expect((await limits.invite(a, b)).ok).toBe(true)
  expect((await limits.invite(b, a)).ok).toBe(true)
  expect((await limits.invite({ ...a, role: 'agent' }, b)).ok).toBe(true)
  expect((await limits.invite(a, b)).ok).toBe(false)
})

test('[INV8] many at once: exactly as many as allowed', async () => {
  const limits = createLimits({
    ...off,
    inviteRate: { count: 30, seconds: 60 },
    pairInviteRate: { count: 6, seconds: 60 },
  })
  const answers = await Promise.all(
    Array.from({ length: 200 }, (_, i) => limits.invite(person('a'), person(`callee-${i % 10}`))),
  )
  expect(allowedOf(answers)).toBe(30)
})

test('[INV3] a refund gives back exactly one, also after refusals, and never more than was taken', async () => {
  const limits = createLimits({ ...off, pairInviteRate: { count: 2, seconds: 60 } })
  const ask = () => limits.invite(person('a'), person('b'))
  expect(allowedOf(await times(20, ask))).toBe(2)
  await limits.refundInvite(person('a'), person('b'))
  expect(allowedOf(await times(20, ask))).toBe(1)
  await limits.refundInvite(person('x'), person('y'))
  expect(allowedOf(await times(20, () => limits.invite(person('x'), person('y'))))).toBe(2)
})

test('[TOK5] memory stays flat while a million addresses come; who is counted stays counted', async () => {
  const bound = 2000
  const counter = createCounter({ count: 1, seconds: 3600 }, bound)
  const address = (i: number) => addressKey(`2001:db8:${(i >>> 16).toString(16)}:${(i & 0xffff).toString(16)}::1`)
  let after100000 = 0
  for (let i = 0; i < 1_000_000; i++) {
    await counter.consume(address(i))
    if (i === 100_000) {
      Bun.gc(true)
      after100000 = process.memoryUsage().heapUsed
    }
  }
  Bun.gc(true)
  expect(counter.size()).toBe(bound)
  expect(process.memoryUsage().heapUsed - after100000).toBeLessThan(8 * 1024 * 1024)
  expect((await counter.consume(address(999_999))).ok).toBe(false)
}, 60_000)

test('[TOK5] windows that ended are forgotten without being asked for', async () => {
  const counter = createCounter({ count: 1, seconds: 1 }, 1000)
  for (let i = 0; i < 500; i++) await counter.consume(`a${i}`)
  expect(counter.size()).toBe(500)
  await Bun.sleep(1050)
  await counter.consume('b')
  expect(counter.size()).toBe(1)
})
