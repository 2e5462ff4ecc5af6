import { expect, test } from 'bun:test'
import { keysOnEach, slotOf } from './slots.ts'

test('the slot of a key is what a cluster says that it is', () => {
  // As CLUSTER KEYSLOT of a server answers.
  expect(['123456789', 'somekey', 'foo', ''].map(slotOf)).toEqual([12_739, 11_058, 12_182, 0])
})

test('each master gets a key, also one that has few slots', () => {
  const masterOf = (slot: number) => (slot < 10 ? 'small' : slot < 16_000 ? 'big' : undefined)
  const keys = keysOnEach('rw:w:', masterOf)
  expect([...keys.keys()].sort()).toEqual(['big', 'small'])
  for (const [master, key] of keys) expect(masterOf(slotOf(key))).toBe(master)
})
