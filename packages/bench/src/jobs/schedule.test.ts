import { expect, test } from 'bun:test'
import { Schedule } from './schedule.ts'

const us = 1000

/** A message each 100 µs for one millisecond; the first half is warm-up. */
const schedule = () => new Schedule(2, 10_000, { start: 0, from: 500 * us, until: 1000 * us })

test('senders take turns, each message leaves once, and none before its time', async () => {
  const times = schedule()
  const sent: number[] = []
  const send = (sender: number) => void sent.push(sender)
  expect(times.sendDue(send, () => 250 * us)).toBe(true)
  expect(times.sendDue(send, () => 299 * us)).toBe(false)
  expect(sent).toEqual([0, 1, 0])
  times.sendDue(send, () => 5000 * us)
  expect(sent).toHaveLength(10)
  await times.finished
})

test('a latency counts from the time at which the message had to leave', () => {
  const times = schedule()
  // The generator slept until 900 µs: the messages of 500 to 900 µs are up to 400 µs late.
  times.sendDue(
    () => {},
    () => 900 * us,
  )
  expect(times.lateness.counts().length - 1).toBe(400)
  expect(times.lateness.percentile(0.5)).toBe(200)
  // The messages of sender 0 were due at 0, 200, 400, 600 and 800 µs.
  times.arrived(0, 5, 950 * us)
  expect([times.latencies.percentile(0.5), times.latencies.percentile(1)]).toEqual([150, 350])
})
