import { expect, test } from 'bun:test'
import { createPeople } from '../src/backend/people.ts'

test('who is silent is forgotten, and who speaks is not', () => {
  let now = 0
  const people = createPeople(() => now)
  people.join({ user_id: 'ada', role: 'customer', display_name: 'Ada', device_id: 'one' })
  people.join({ user_id: 'ada', role: 'customer', display_name: 'Ada', device_id: 'two' })
  now = 6000
  expect(people.seen('one')).toBe(true)
  now = 8000
  expect(people.list()).toEqual([{ user_id: 'ada', role: 'customer', display_name: 'Ada', devices: 1 }])
  people.leave('one')
  expect(people.list()).toEqual([])
  expect(people.seen('one')).toBe(false)
})
