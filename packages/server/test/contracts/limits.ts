import { afterEach, beforeEach, describe, expect, setSystemTime, test } from 'bun:test'
import type { Participant } from '../../src/call/call.ts'
import type { Counters } from '../../src/limits/counters.port.ts'
import { createLimits, type Limit } from '../../src/limits/limits.ts'

export interface CountersHarness {
  readonly counters: Counters
  close(): Promise<void>
}

type LimitsConfig = Parameters<typeof createLimits>[0]
const off = { tokenRateIp: null, tokenRateKey: null, tokenFailRateIp: null, inviteRate: null, pairInviteRate: null }
const person = (userId: string): Participant => ({ product: 'shop', role: 'customer', userId })
const minute = (count: number) => ({ count, seconds: 60 })

async function times(count: number, ask: () => Promise<Limit>): Promise<Limit[]> {
  const answers: Limit[] = []
  for (let i = 0; i < count; i++) answers.push(await ask())
  return answers
}
const allowedOf = (answers: readonly Limit[]) => answers.filter(({ ok }) => ok).length

/** The limits, and the counters below them: what every adapter has to keep. */
export function registerLimitsContract(name: string, open: () => Promise<CountersHarness>): void {
  describe(name, () => {
    let harness: CountersHarness
    beforeEach(async () => {
      harness = await open()
    })
    afterEach(() => harness.close())
    const limitsWith = (config: Partial<LimitsConfig>) => createLimits({ ...off, ...config }, harness.counters)

    test('[TOK5] each limit counts by itself and says when to come back', async () => {
      const limits = limitsWith({ tokenRateIp: minute(2), tokenRateKey: minute(3), tokenFailRateIp: minute(1) })
      expect(allowedOf(await times(5, () => limits.tokenRequest('192.0.2.1')))).toBe(2)
      expect(allowedOf(await times(5, () => limits.tokenKey('k')))).toBe(3)
      expect(allowedOf(await times(5, () => limits.failedAuthentication('192.0.2.1')))).toBe(1)
      expect(await limits.tokenRequest('192.0.2.2')).toEqual({ ok: true })
      const refused = await limits.tokenRequest('192.0.2.1')
      if (refused.ok) throw new Error('the limit did not hold')
      expect(refused.retryAfterMs).toBeGreaterThan(0)
      expect(refused.retryAfterMs).toBeLessThanOrEqual(60_000)
    })

    test('[TOK5] failures have a budget of their own: used up, it refuses nothing but failures', async () => {
      const limits = limitsWith({ tokenRateIp: minute(100), tokenRateKey: minute(100), tokenFailRateIp: minute(20) })
      const failures = await times(25, () => limits.failedAuthentication('192.0.2.1'))
      expect(failures.map(({ ok }) => ok)).toEqual(Array.from({ length: 25 }, (_, i) => i < 20))
      expect(await limits.tokenRequest('192.0.2.1')).toEqual({ ok: true })
      expect(await limits.tokenKey('k')).toEqual({ ok: true })
      expect(await limits.failedAuthentication('192.0.2.2')).toEqual({ ok: true })
    })

    test('[TOK5] a window ends when it said, also where refused requests came all the time', async () => {
      const limits = limitsWith({ tokenRateIp: { count: 1, seconds: 1 } })
      expect(await limits.tokenRequest('192.0.2.1')).toEqual({ ok: true })
      // Between these it ends, by what each answer says.
      let earliest = 0
      let latest = Number.POSITIVE_INFINITY
      for (;;) {
        const asked = performance.now()
        const answer = await limits.tokenRequest('192.0.2.1')
        const answered = performance.now()
        if (answer.ok) {
          expect(answered).toBeGreaterThanOrEqual(earliest - 2)
          break
        }
        earliest = Math.max(earliest, asked + answer.retryAfterMs)
        latest = Math.min(latest, answered + answer.retryAfterMs)
        expect(earliest).toBeLessThanOrEqual(latest + 2)
        expect(asked).toBeLessThan(latest + 2)
        // The test needs time to pass.
        await Bun.sleep(20)
      }
    })

    test('[TOK5] a wall clock that is five minutes off, ahead or behind, changes nothing', async () => {
      const limits = limitsWith({ pairInviteRate: { count: 2, seconds: 30 } })
      const ask = () => limits.invite(person('a'), person('b'))
      try {
        const now = Date.now()
        expect((await ask()).ok).toBe(true)
        for (const [offMs, isAllowed] of [
          [300_000, true],
          [-300_000, false],
          [300_000, false],
        ] as const) {
          setSystemTime(new Date(now + offMs))
          const answer = await ask()
          expect(answer.ok).toBe(isAllowed)
          if (!answer.ok) {
            expect(answer.retryAfterMs).toBeLessThanOrEqual(30_000)
            expect(answer.retryAfterMs).toBeGreaterThan(20_000)
          }
        }
      } finally {
        setSystemTime()
      }
    })

    test('[TOK5] a limit that is off never refuses', async () => {
      const limits = limitsWith({})
      expect(allowedOf(await times(100, () => limits.tokenRequest('192.0.2.1')))).toBe(100)
      expect(allowedOf(await times(100, () => limits.invite(person('a'), person('b'))))).toBe(100)
    })

    test('[INV8] invites count for the caller and for the pair', async () => {
      const limits = limitsWith({ inviteRate: minute(4), pairInviteRate: minute(2) })
      const refused = (limit: 'invites' | 'pair_invites') =>
        ({ ok: false, limit, retryAfterMs: expect.any(Number) }) as const
      const [a, b, c, d] = [person('a'), person('b'), person('c'), person('d')]
      expect(allowedOf(await times(3, () => limits.invite(a, b)))).toBe(2)
      expect(await limits.invite(a, b)).toEqual(refused('pair_invites'))
      // What the pair refused is not the caller's loss.
      expect(allowedOf(await times(3, () => limits.invite(a, c)))).toBe(2)
      expect(await limits.invite(a, d)).toEqual(refused('invites'))
      // And what the caller's limit refused is not the pair's.
      expect(allowedOf(await times(3, () => limits.invite(d, a)))).toBe(2)
      await limits.refundInvite(a, b)
      expect(allowedOf(await times(3, () => limits.invite(a, d)))).toBe(1)
    })

    test('[INV8] the direction of a pair counts, and the same user under another role is someone else', async () => {
      const limits = limitsWith({ pairInviteRate: minute(1) })
      const [a, b] = [person('a'), person('b')]
      expect((await limits.invite(a, b)).ok).toBe(true)
      expect((await limits.invite(b, a)).ok).toBe(true)
      expect((await limits.invite({ ...a, role: 'agent' }, b)).ok).toBe(true)
      expect((await limits.invite(a, b)).ok).toBe(false)
    })

    test('[INV8] many at once: exactly as many as allowed', async () => {
      const limits = limitsWith({ inviteRate: minute(30), pairInviteRate: minute(6) })
      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, i) => limits.invite(person('a'), person(`callee-${i % 10}`))),
      )
      expect(allowedOf(answers)).toBe(30)
    })

    test('[INV3] a refund gives back exactly one, also after refusals, and never more than was taken', async () => {
      const limits = limitsWith({ pairInviteRate: minute(2) })
      const ask = () => limits.invite(person('a'), person('b'))
      expect(allowedOf(await times(20, ask))).toBe(2)
      await limits.refundInvite(person('a'), person('b'))
      expect(allowedOf(await times(20, ask))).toBe(1)
      for (let i = 0; i < 5; i++) await limits.refundInvite(person('a'), person('b'))
      expect(allowedOf(await times(20, ask))).toBe(2)
      await limits.refundInvite(person('x'), person('y'))
      expect(allowedOf(await times(20, () => limits.invite(person('x'), person('y'))))).toBe(2)
    })

    test('[INV3] a refund does not move the end of the window', async () => {
      const counter = harness.counters.counter('refund', { count: 1, seconds: 5 })
      const start = performance.now()
      expect(await counter.consume('a')).toBe(0)
      const began = performance.now()
      while (performance.now() - began < 500) {
        await counter.refund('a')
        expect(await counter.consume('a')).toBe(0)
        await Bun.sleep(50)
      }
      const left = await counter.consume('a')
      expect(left).toBeLessThanOrEqual(4_501)
      expect(left).toBeGreaterThanOrEqual(5_000 - (performance.now() - start) - 2)
    })

    test('a window of one day', async () => {
      const counter = harness.counters.counter('day', { count: 1, seconds: 86_400 })
      expect(await counter.consume('a')).toBe(0)
      expect(await counter.consume('a')).toBeWithin(86_390_000, 86_400_001)
    })
  })
}
