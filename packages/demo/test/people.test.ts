import { expect, test } from 'bun:test'
import { createPeople } from '../src/backend/people.ts'

const signIn = (user_id: string, role: 'customer' | 'agent' = 'agent') => ({
  ...{ user_id, role, display_name: user_id.toUpperCase(), device_id: 'device-1' },
})

test('who signed in is listed to the other role, once, in the order of their names', () => {
  const people = createPeople()
  for (const id of ['ben', 'ada', 'ben']) people.join(signIn(id))
  people.join(signIn('ann', 'customer'))
  expect(people.peersOf({ role: 'customer' })).toEqual([
    { user_id: 'ada', role: 'agent', display_name: 'ADA' },
    { user_id: 'ben', role: 'agent', display_name: 'BEN' },
  ])
  expect(people.peersOf({ role: 'agent' }).map(({ user_id }) => user_id)).toEqual(['ann'])
})

test('an agent hands calls over to the other agents, who are the group that customers call', () => {
  const people = createPeople()
  for (const id of ['eva', 'ben']) people.join(signIn(id))
  people.join(signIn('ann', 'customer'))
  expect(people.colleaguesOf({ role: 'agent', user_id: 'ben' }).map(({ user_id }) => user_id)).toEqual(['eva'])
  expect(people.agents()).toEqual(['eva', 'ben'])
})

test('of more than a session may watch, those who were silent longest are given up', () => {
  const people = createPeople()
  for (let i = 0; i < 200; i++) people.join(signIn(`a${i}`))
  people.join(signIn('a0'))
  for (const id of ['new', 'newer']) people.join(signIn(id))
  const left = people.peersOf({ role: 'customer' }).map(({ user_id }) => user_id)
  expect(left.length).toBe(200)
  expect(left).toEqual(expect.arrayContaining(['a0', 'a3', 'new', 'newer']))
  for (const id of ['a1', 'a2']) expect(left).not.toContain(id)
})
