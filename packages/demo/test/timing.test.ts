import { expect, test } from 'bun:test'
import { createPeople } from '../src/backend/people.ts'
import { afterClose, backoffDelay } from '../src/page/signaling.ts'
import { renewalDelay } from '../src/page/tokens.ts'

test('reconnects wait longer each time, jittered, up to a bound', () => {
  for (let attempt = 0; attempt < 20; attempt++) {
    const [least, most] = [backoffDelay(attempt, 0), backoffDelay(attempt, 1)]
    expect(most).toBe(least * 2)
    expect(most).toBeLessThanOrEqual(15_000)
    expect(most).toBeGreaterThanOrEqual(attempt === 0 ? 0 : backoffDelay(attempt - 1, 1))
  }
})

test('[CLOSE] a refused token asks for a new one, a replaced session never comes back, the rest reconnects', () => {
  expect(afterClose(4401)).toBe('new-token')
  expect(afterClose(4409)).toBe('stop')
  expect(afterClose(4403)).toBe('stop')
  for (const code of [1001, 1006, 1011, 1012, 1013, 4400, 4408, 4429, 4008]) expect(afterClose(code)).toBe('reconnect')
})

test('[TOK3] a token is renewed before it expires, however short it lives', () => {
  const now = Date.parse('2026-01-01T00:00:00Z')
  expect(renewalDelay('2026-01-01T01:00:00Z', now)).toBe(3480_000)
  expect(renewalDelay('2026-01-01T00:01:00Z', now)).toBe(48_000)
  expect(renewalDelay('2025-12-31T23:59:00Z', now)).toBe(0)
})

test('who is silent is forgotten, but not a hidden tab that speaks once a minute', () => {
  let now = 0
  const people = createPeople(() => now)
  people.join({ user_id: 'ada', role: 'customer', display_name: 'Ada', device_id: 'one' })
  people.join({ user_id: 'ada', role: 'customer', display_name: 'Ada', device_id: 'two' })
  now = 60_000
  expect(people.seen('one')).toBe(true)
  now = 80_000
  expect(people.list()).toEqual([{ user_id: 'ada', role: 'customer', display_name: 'Ada', devices: 1 }])
  people.leave('one')
  expect(people.list()).toEqual([])
  expect(people.seen('one')).toBe(false)
})
