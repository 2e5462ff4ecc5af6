import { expect, test } from 'bun:test'
import { aliceOne, answeredCall, durations, leftBy, overCall, ringingCall, start } from './call.fixture.ts'
import { type Call, deadlineOf, isLive } from './call.ts'
import { byClock, jumpedSince } from './clock.ts'

const of = 'database'
const hour = 3_600_000

const deadline = (call: Call) => (isLive(call) ? deadlineOf(call, durations) : undefined)

test('[END3] a call that was written before a jump has what remained after it, and one that was written after it the same', () => {
  const lost = { callerPlace: leftBy(aliceOne, start) }
  for (const call of [ringingCall(), ringingCall(lost), answeredCall(), answeredCall(lost)]) {
    for (const ms of [hour, -hour]) {
      const after = byClock(call, { of, jumpedMs: ms })
      expect(deadline(after)).toBe((deadline(call) as number) + ms)
      // A call that already names this clock stays as it is.
      expect(byClock(after, { of, jumpedMs: ms })).toBe(after)
      expect(deadline(byClock(after, { of, jumpedMs: 0 }))).toBe(deadline(call) as number)
      expect(deadline(byClock(after, { of, jumpedMs: 3 * ms }))).toBe((deadline(call) as number) + 3 * ms)
    }
  }
})

test('[END3] what another clock has jumped does not move a call', () => {
  const call = byClock(ringingCall(), { of: 'another', jumpedMs: hour })
  expect(jumpedSince(call, { of, jumpedMs: 0 })).toBe(0)
  expect(byClock(call, { of, jumpedMs: 0 })).toBe(call)
  expect(deadline(byClock(call, { of, jumpedMs: 1_000 }))).toBe((deadline(call) as number) + 1_000)
})

test('a call that is over stays as it is', () => {
  const call = overCall()
  expect(byClock(call, { of, jumpedMs: hour })).toBe(call)
})
