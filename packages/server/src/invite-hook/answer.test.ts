import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { readDecision } from './answer.ts'

const read = (answer: unknown) => readDecision(JSON.stringify(answer))

describe('[HOOK5] what a backend answers', () => {
  test('allow, as it is or with changes; unknown fields say nothing', () => {
    expect(read({ decision: 'allow' })).toEqual({ decision: 'allow' })
    expect(read({ decision: 'allow', metadata: null, ring_timeout_ms: null, more: 1 })).toEqual({ decision: 'allow' })
    const changes = { decision: 'allow', metadata: { vip: true }, ring_timeout_ms: 9_000 }
    expect(read(changes)).toEqual({ decision: 'allow', metadata: { vip: true }, ringTimeoutMs: 9_000 })
  })

  test('refuse, with a reason in the form of all reasons, or none', () => {
    expect(read({ decision: 'refuse', reason: 'Blocked by Ann' })).toEqual({
      decision: 'refuse',
      reason: 'blocked_by_ann',
    })
    for (const reason of [undefined, null, 7, '', {}]) {
      expect(read({ decision: 'refuse', reason })).toEqual({ decision: 'refuse', reason: null })
    }
  })

  test('redirect, to whom can be called', () => {
    expect(read({ decision: 'redirect', callee: { role: 'agent', user_id: 'ben', display_name: 'Ben' } })).toEqual({
      decision: 'redirect',
      callee: { role: 'agent', userId: 'ben' },
    })
    for (const user_id of [undefined, null])
      expect(read({ decision: 'redirect', callee: { role: 'agent', group: 'support', user_id } })).toEqual({
        decision: 'redirect',
        callee: { role: 'agent', userId: '', group: 'support' },
      })
  })

  const bad: unknown[] = [
    null,
    [],
    'allow',
    {},
    { decision: 'ALLOW' },
    { decision: 'allow', ring_timeout_ms: 0 },
    { decision: 'allow', ring_timeout_ms: '5' },
    { decision: 'allow', metadata: [] },
    { decision: 'allow', metadata: { text: 'x'.repeat(1_024) } },
    { decision: 'redirect' },
    { decision: 'redirect', callee: { role: 'agent' } },
    { decision: 'redirect', callee: { role: 'agent', user_id: '..' } },
    { decision: 'redirect', callee: { role: 'agent', group: '..' } },
    { decision: 'redirect', callee: { role: 'agent', user_id: 'ben', group: 'support' } },
    { decision: 'redirect', callee: { role: 'agent', user_id: null, group: null } },
    { decision: 'redirect', callee: { role: ' ', user_id: 'ben' } },
    { decision: 'redirect', callee: { role: 'agent', user_id: '\0' } },
  ]
  for (const answer of bad) {
    test(`no decision: ${JSON.stringify(answer).slice(0, 60)}`, () => expect(read(answer)).toBeUndefined())
  }
  for (const text of ['', '{', 'allow', '{"decision":"allow"}{"decision":"refuse"}']) {
    test(`no JSON: ${JSON.stringify(text)}`, () => expect(readDecision(text)).toBeUndefined())
  }

  test('whatever comes is read without an error, and what it says is within its bounds', () => {
    const value = fc.oneof(fc.constantFrom('allow', 'refuse', 'redirect', 'agent', 7, null), fc.jsonValue())
    const keys = ['decision', 'metadata', 'ring_timeout_ms', 'reason', 'callee']
    const answer = fc.record(Object.fromEntries(keys.map((key) => [key, value])), { requiredKeys: [] })
    fc.assert(
      fc.property(
        fc.oneof(
          answer.map((it) => JSON.stringify(it)),
          fc.string(),
        ),
        (text) => {
          const decided = readDecision(text)
          if (decided?.decision === 'refuse') expect(decided.reason ?? 'none').toMatch(/^[a-z0-9_]{1,64}$/)
          if (decided?.decision === 'allow') expect(decided.ringTimeoutMs ?? 1).toBeGreaterThan(0)
        },
      ),
    )
  })
})
