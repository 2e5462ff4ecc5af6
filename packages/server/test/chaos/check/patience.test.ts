import { expect, test } from 'bun:test'
import type { Entry } from '../recording.ts'
import { factsOf } from './facts.ts'
import { headerOf } from './header-of.ts'
import { checkNotices } from './notices.ts'
import { createPatience } from './patience.ts'
import { read } from './reading.ts'

const header = headerOf({ kind: 'Redis killed', target: 'Redis', from: 60_000, until: 61_000 })

const hello = (recovered: boolean) => ({ event: 'auth.ok', data: { session_id: 's', epoch: 'e', recovered } })

/** A socket that its phone had from an instant on, until another one. */
function socket(number: number, from: number, until: number, recovered = true): Entry[] {
  return [
    { kind: 'open', at: from, socket: number, node: 0 },
    { kind: 'in', at: from, socket: number, frame: hello(recovered) },
    { kind: 'close', at: until, socket: number, code: 1006 },
  ]
}

/** Whether what was due, at 25 s, may be missing, where the phone had these sockets, and one with a new session at the end. */
function isExcused(
  online: readonly (readonly [from: number, until: number])[],
  lostAt = 90_000,
  at = 25_000,
  faults = header,
): boolean {
  const entries = online.flatMap(([from, until], i) => socket(i, from, until, i > 0))
  const reading = read({ user: 'user-1', entries: [...entries, ...socket(online.length, lostAt, 99_000, false)] })
  return createPatience(faults).excuses(reading, reading.stretches[0]!, at)
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

test('what was due while something was broken takes longer, and a socket at which nothing can arrive does not count', () => {
  const excused = (kind: 'node stopped' | 'Redis stopped', target: string, until: number) => {
    const faults = headerOf(header.faults[0]!, { kind, target, from: 25_010, until: 31_000 })
    return isExcused([[10_000, until]], 90_000, 25_000, faults)
  }
  for (const [kind, target] of [
    ['node stopped', 'node-0'],
    ['Redis stopped', 'Redis'],
  ] as const)
    expect([36_000, 40_500, 41_500].map((until) => excused(kind, target, until))).toEqual([true, true, false])
  // Its socket is at another node, and what is to come may be under way from this one.
  expect([34_500, 35_500].map((until) => excused('node stopped', 'node-1', until))).toEqual([true, false])
})

test('what waited for a phone that stayed away for longer than the resume window went with its session', () => {
  const timedOut = (until: number, backAt?: number) => {
    const entries = [...socket(0, 10_000, until), ...(backAt ? socket(1, backAt, 199_000, false) : [])]
    const reading = read({ user: 'user-1', entries })
    return createPatience(headerOf()).timedOut(reading, reading.stretches[0]!, 25_000)
  }
  expect(timedOut(24_000, 145_000)).toBe(true)
  expect(timedOut(26_500, 147_000)).toBe(true)
  // It came back in time, or was there for long enough.
  expect(timedOut(24_000, 143_000)).toBe(false)
  expect(timedOut(24_000)).toBe(false)
  expect(timedOut(27_500, 148_000)).toBe(false)
})

test('what a store that was away commits later is known later', () => {
  const { storedBy } = createPatience(
    headerOf({ kind: 'PostgreSQL stopped', target: 'PostgreSQL', from: 20_000, until: 26_000 }),
  )
  expect([19_000, 20_000, 25_000, 26_500].map(storedBy)).toEqual([19_000, 26_000, 26_000, 26_500])
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
  expect(
    isExcused([
      [10_000, 24_000],
      [30_000, 31_500],
      [40_000, 41_500],
    ]),
  ).toBe(false)
  expect(isExcused([[10_000, 24_000]], 55_000)).toBe(false)
  // The log that was lost is an earlier one.
  expect(isExcused([[61_500, 62_000]], 90_000, 70_000)).toBe(false)
})

/** What is reported where a call of the phone's came to that at 25 s, and its phone, which was there, heard `told` in its next session. */
function reportsOf(type: 'accepted' | 'missed', told: string): string[] {
  const call = { call_uuid: 'c', caller: 'user-1', callee: 'user-2', version: 2, status: 'missed' }
  const times = { started_at: 20_000, ring_expires_at: 26_000, accepted_at: null, connected_at: null, ended_at: 26_000 }
  const facts = factsOf({
    calls: [{ ...call, ...times, end_reason: 'no_answer' }],
    events: [{ call_uuid: 'c', version: 2, type, at: 25_000, by_user: null }],
  })
  const next = socket(2, 90_000, 99_000, false)
  const frame = { event: told, seq: 1, version: 2, data: { call_uuid: 'c' } }
  next.splice(2, 0, { kind: 'in', at: 90_001, socket: 2, frame })
  const entries = [...socket(0, 10_000, 24_000, false), ...socket(1, 30_000, 40_000), ...next]
  const reports: string[] = []
  const report = (_: string, text: string) => void reports.push(text)
  checkNotices([read({ user: 'user-1', entries })], facts, 0, createPatience(header), report)
  return reports
}

test('how a call ended may be told to the next session; that it was answered may not', () => {
  expect(reportsOf('missed', 'call.missed')).toEqual([])
  expect(reportsOf('missed', 'call.status')).toEqual(['user-1 never got call.missed of version 2'])
  expect(reportsOf('accepted', 'call.accepted')).toEqual(['user-1 never got call.accepted of version 2'])
})

test('what was known when a fault began is due after so much time without any, and no sooner or later', () => {
  const heardBy = (...times: readonly (readonly [from: number, until: number])[]) => {
    const faults = times.map(([from, until]) => ({ kind: 'Redis stopped', target: 'Redis', from, until }) as const)
    return createPatience(headerOf(...faults)).heardBy(10_000, 'user-1', [0])
  }
  expect(heardBy()).toBe(12_000)
  expect(heardBy([11_000, 14_000])).toBe(24_000)
  // An outage that lies in another one is not one more.
  expect(heardBy([11_000, 14_000], [16_000, 18_000], [17_000, 17_500], [26_500, 27_500])).toBe(26_000)
  expect(heardBy([11_000, 14_000], [16_000, 18_000], [25_500, 26_500])).toBe(27_000)
  expect(heardBy([11_000, 14_000], [27_000, 30_000])).toBe(24_000)
})
