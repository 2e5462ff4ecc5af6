import { expect, test } from 'bun:test'
import type { Entry, Header } from '../recording.ts'
import { createPatience } from './patience.ts'
import { read } from './reading.ts'

const header: Header = {
  seed: 1,
  nodes: 3,
  store: 'postgresql',
  users: 2,
  durationS: 100,
  startedAt: 0,
  resumeWindowMs: 120_000,
  faults: [{ kind: 'Redis killed', target: 'Redis', from: 60_000, until: 61_000 }],
  crashes: [],
  stuck: [],
}

const hello = (recovered: boolean) => ({ event: 'auth.ok', data: { session_id: 's', epoch: 'e', recovered } })

/** A socket that its phone had from an instant on, until another one. */
function socket(number: number, from: number, until: number, recovered = true): Entry[] {
  return [
    { kind: 'open', at: from, socket: number, node: 0 },
    { kind: 'in', at: from, socket: number, frame: hello(recovered) },
    { kind: 'close', at: until, socket: number, code: 1006 },
  ]
}

/** Whether what was due at 25 s may be missing, where the phone had these sockets, and one with a new session at the end. */
function isExcused(online: readonly (readonly [from: number, until: number])[], lostAt = 90_000): boolean {
  const entries = online.flatMap(([from, until], i) => socket(i, from, until, i > 0))
  const reading = read({ user: 'user-1', entries: [...entries, ...socket(online.length, lostAt, 99_000, false)] })
  return createPatience(header).excuses(reading, reading.stretches[0]!, 25_000)
}

test('what waited for a phone that was away until its log was lost may be missing', () => {
  expect(isExcused([[10_000, 24_000]])).toBe(true)
  // A socket that was there for a moment was closed before the news could come.
  expect(
    isExcused([
      [10_000, 24_000],
      [30_000, 30_500],
    ]),
  ).toBe(true)
})

test('not where the phone was there in between, or no log was lost', () => {
  expect(
    isExcused([
      [10_000, 24_000],
      [30_000, 40_000],
    ]),
  ).toBe(false)
  expect(
    isExcused([
      [10_000, 26_500],
      [26_600, 40_000],
    ]),
  ).toBe(false)
  expect(isExcused([[10_000, 24_000]], 55_000)).toBe(false)
})
