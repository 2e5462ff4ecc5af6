/** The parts of the call centre that need no service. */
import { afterAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeTemporaryDirectory } from '@ringwire/testkit/process'

const part = (name: string) => import(join(import.meta.dir, '..', 'callcenter', `${name}.mjs`))
const { createQueue } = await part('queue')
const { openHours } = await part('hours')
const { aboutText, outcomeText } = await import(join(import.meta.dir, '..', 'callcenter', 'page', 'words.ts'))
const directory = await makeTemporaryDirectory()
afterAll(() => directory.remove())

const customer = (user_id: string) => ({ user_id, role: 'customer' })
const agent = { user_id: 'ben', role: 'agent' }
const nobody = () => false
const names = (queue: { list(): { userId: string }[] }) => queue.list().map(({ userId }) => userId)

function waiting(...userIds: string[]) {
  const queue = createQueue()
  for (const [n, userId] of userIds.entries())
    queue.heard({ status: 'missed', caller: customer(userId), callee: agent, by: null }, n)
  return queue
}

test('a caller waits after a call that nobody answered, and keeps the place when that happens again', () => {
  const queue = waiting('ann', 'dan', 'ann')
  expect(names(queue)).toEqual(['ann', 'dan'])
  queue.heard({ status: 'rejected', caller: customer('eve'), callee: agent, by: agent })
  queue.heard({ status: 'busy', caller: customer('fay'), callee: agent, by: null })
  expect(names(queue)).toEqual(['ann', 'dan', 'eve', 'fay'])
})

test('the list of calls tells a page that had two calls already from an agent who declined', () => {
  const caller = { ...customer('ann'), display_name: 'Ann' }
  const callee = { ...agent, display_name: 'Ben' }
  const textOf = (end_reason: string) =>
    outcomeText({ status: 'rejected', end_reason, caller, callee }, () => caller).text
  expect(['busy', 'declined', 'closed'].map(textOf)).toEqual(['Busy · Ben', 'Declined · Ben', 'We were closed · Ben'])
})

test('a call says what it is about, or between whom it was', () => {
  const textOf = (...[caller, callee]: object[]) => aboutText({ caller, callee, context_id: '1042' })
  expect(textOf(customer('ann'), agent)).toBe('order 1042')
  expect(textOf(agent, agent)).toBe('between colleagues')
  expect(textOf(customer('ann'), customer('dan'))).toBe('between customers')
})

test('nobody waits after giving up, or because the backend refused', () => {
  const queue = createQueue()
  for (const [status, by] of [
    ['cancelled', customer('ann')],
    ['ended', agent],
    ['rejected', null],
  ])
    queue.heard({ status, caller: customer('ann'), callee: agent, by })
  expect(names(queue)).toEqual([])
})

test('whoever talks, or does not answer an agent, waits no more; a call that the agent gave up changes nothing', () => {
  const queue = waiting('ann', 'dan', 'eve')
  queue.heard({ status: 'cancelled', caller: agent, callee: customer('ann'), by: agent })
  expect(names(queue)).toEqual(['ann', 'dan', 'eve'])
  queue.heard({ status: 'missed', caller: agent, callee: customer('ann'), by: null })
  queue.heard({ status: 'accepted', caller: agent, callee: customer('dan'), by: customer('dan') })
  expect(names(queue)).toEqual(['eve'])
})

test('colleagues among themselves change nothing, nor does a transfer that fails', () => {
  const queue = waiting('ann')
  for (const status of ['missed', 'accepted']) queue.heard({ status, caller: agent, callee: agent, by: null })
  queue.heard({ status: 'rejected', caller: customer('dan'), callee: agent, by: agent, transferred_from: 'a call' })
  expect(names(queue)).toEqual(['ann'])
  queue.heard({ status: 'accepted', caller: customer('ann'), callee: agent, by: agent, transferred_from: 'a call' })
  expect(names(queue)).toEqual([])
})

test('the next one is for one agent, who has 10 s to call, and is in no call', () => {
  const queue = waiting('ann', 'dan')
  expect(queue.next(nobody, 1000)).toBe('ann')
  expect(queue.next(nobody, 1000)).toBe('dan')
  expect(queue.next(nobody, 10_999)).toBeUndefined()
  expect(queue.next((userId: string) => userId === 'ann', 11_000)).toBe('dan')
  expect(queue.next(nobody, 11_000)).toBe('ann')
})

test('a page may be away for 20 s', () => {
  const queue = waiting('ann', 'dan')
  queue.seen(new Set(['ann']), 20_000)
  queue.seen(new Set(), 20_002)
  expect(names(queue)).toEqual(['ann'])
  queue.seen(new Set(), 40_001)
  expect(names(queue)).toEqual([])
})

test('opening hours are those of their zone, and a change of the file counts at once', () => {
  const file = join(directory.path, 'hours.json')
  const hours = openHours(file)
  const at = (iso: string): boolean => hours.isOpen(new Date(iso))
  expect(at('2026-03-01T03:00:00Z')).toBe(true)
  const days = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri']
  writeFileSync(file, JSON.stringify({ days, from: '08:00', to: '18:00', zone: 'Europe/Berlin' }))
  expect(hours.text()).toBe('Mon, Tue, Wed, Thu, Fri, 08:00 to 18:00')
  // In winter Berlin is one hour ahead, in summer two.
  expect(['2026-03-02T06:59:59Z', '2026-03-02T07:00:00Z', '2026-03-02T17:00:00Z'].map(at)).toEqual([false, true, false])
  expect(['2026-07-06T05:59:59Z', '2026-07-06T06:00:00Z', '2026-07-06T16:00:00Z'].map(at)).toEqual([false, true, false])
  // A Sunday at home; and a Monday there, which is Sunday in UTC.
  expect(at('2026-03-01T10:00:00Z')).toBe(false)
  writeFileSync(file, JSON.stringify({ days: ['Mon'], zone: 'Asia/Tokyo' }))
  expect(at('2026-03-01T16:00:00Z')).toBe(true)
})
