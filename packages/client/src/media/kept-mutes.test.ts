import { expect, test } from 'bun:test'
import { createKeptMutes } from './kept-mutes.ts'

function createStorage() {
  const items = new Map<string, string>()
  return {
    items,
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
    removeItem: (key: string) => void items.delete(key),
  }
}

const none = { audio: false, video: false, held: false }

test('what is muted is found again by the same call, and by no other', () => {
  const storage = createStorage()
  createKeptMutes(storage, () => 'one').save({ audio: true, video: false, held: false })
  expect(createKeptMutes(storage, () => 'one').load()).toEqual({ audio: true, video: false, held: false })
  expect(createKeptMutes(storage, () => 'two').load()).toEqual(none)
})

test('[HOLD1] a hold is kept like a mute; what an earlier version kept says nothing of it', () => {
  const storage = createStorage()
  createKeptMutes(storage, () => 'one').save({ audio: true, video: false, held: true })
  expect(createKeptMutes(storage, () => 'one').load()).toEqual({ audio: true, video: false, held: true })
  storage.setItem('ringwire.muted.two', '{"audio":true,"video":false}')
  expect(createKeptMutes(storage, () => 'two').load()).toEqual({ audio: true, video: false, held: false })
})

test('what is unmuted again is not muted later, and nothing is left of a call that is over', () => {
  const storage = createStorage()
  const kept = createKeptMutes(storage, () => 'one')
  kept.save({ audio: true, video: true, held: false })
  kept.save(none)
  expect(createKeptMutes(storage, () => 'one').load()).toEqual(none)
  kept.forget()
  expect(storage.items.size).toBe(0)
})

test('a call that takes another uuid keeps what is muted', () => {
  const storage = createStorage()
  let uuid = 'asked'
  const kept = createKeptMutes(storage, () => uuid)
  kept.save({ audio: false, video: true, held: false })
  uuid = 'taken'
  kept.save({ audio: false, video: true, held: false })
  expect(createKeptMutes(storage, () => 'taken').load()).toEqual({ audio: false, video: true, held: false })
  expect(storage.items.size).toBe(1)
  uuid = 'merged'
  kept.forget()
  expect(storage.items.size).toBe(0)
})

test('without a storage, and with one that refuses, nothing is kept and nothing fails', () => {
  const refuse = () => {
    throw new Error('QuotaExceededError')
  }
  for (const storage of [undefined, { getItem: refuse, setItem: refuse, removeItem: refuse }]) {
    const kept = createKeptMutes(storage, () => 'one')
    expect(kept.load()).toEqual(none)
    kept.save({ audio: true, video: true, held: false })
    kept.forget()
  }
})
