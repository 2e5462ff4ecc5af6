import { expect, test } from 'bun:test'
import { createListeners } from './listeners.ts'
import { createSignals } from './signals.ts'
import type { CallEvents } from './types.ts'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

test('a listener hears its event until it ends; the same function twice is two listeners', () => {
  const listeners = createListeners<{ a: number; b: string }>()
  const heard: unknown[] = []
  const note = (payload: unknown) => heard.push(payload)
  const first = listeners.on('a', note)
  const second = listeners.on('a', note)
  listeners.on('b', note)
  listeners.emit('a', 1)
  first()
  first()
  listeners.emit('a', 2)
  second()
  listeners.emit('a', 3)
  listeners.emit('b', 'x')
  expect(heard).toEqual([1, 1, 2, 'x'])
  expect([listeners.has('a'), listeners.has('b')]).toEqual([false, true])
})

test('a listener that ends another in the middle is obeyed', () => {
  const listeners = createListeners<{ a: number }>()
  const heard: string[] = []
  listeners.on('a', () => {
    heard.push('first')
    end()
  })
  const end = listeners.on('a', () => heard.push('second'))
  listeners.emit('a', 1)
  expect(heard).toEqual(['first'])
})

test('signals that nobody heard are kept in order across the three events, and given once', async () => {
  const listeners = createListeners<CallEvents>()
  const signals = createSignals(listeners)
  const heard: string[] = []
  const candidate = (name: string) => ({ event: 'candidate', payload: { candidate: name } }) as const
  signals.receive(candidate('before'))
  signals.receive({ event: 'offer', payload: { type: 'offer', sdp: 'o' } })
  signals.receive(candidate('after'))
  signals.on('state', () => {})
  await turn()
  signals.on('candidate', ({ candidate }) => heard.push(candidate))
  // Before the kept ones were given, a new one must not overtake them.
  signals.receive(candidate('new'))
  signals.on('offer', ({ sdp }) => heard.push(sdp))
  expect(heard).toEqual([])
  await turn()
  expect(heard).toEqual(['before', 'o', 'after', 'new'])
  signals.receive(candidate('live'))
  expect(heard.at(-1)).toBe('live')
})

test('what a listener brings about while kept signals are given comes after them', async () => {
  const listeners = createListeners<CallEvents>()
  const signals = createSignals(listeners)
  const heard: string[] = []
  const candidate = (name: string) => ({ event: 'candidate', payload: { candidate: name } }) as const
  signals.receive(candidate('1'))
  signals.receive(candidate('2'))
  signals.on('candidate', ({ candidate: name }) => {
    heard.push(name)
    if (name === '1') signals.receive(candidate('3'))
  })
  await turn()
  expect(heard).toEqual(['1', '2', '3'])
})
