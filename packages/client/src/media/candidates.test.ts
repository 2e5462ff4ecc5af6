import { expect, test } from 'bun:test'
import { createCandidateQueue } from './candidates.ts'

const of = (usernameFragment: string, n = 0) => ({ candidate: `candidate:${n}`, usernameFragment })
const sdpOf = (ufrag: string) => `v=0\r\na=ice-ufrag:${ufrag}\r\n`

test('a candidate waits for the description that it belongs to, and comes in order', () => {
  const queue = createCandidateQueue()
  expect(queue.admit(of('a', 1), undefined)).toBe(false)
  expect(queue.admit(of('b', 2), undefined)).toBe(false)
  expect(queue.admit(of('a', 3), undefined)).toBe(false)
  expect(queue.take(sdpOf('a'))).toEqual([of('a', 1), of('a', 3)])
  expect(queue.admit(of('a', 4), sdpOf('a'))).toBe(true)
  // New credentials whose description is still on its way.
  expect(queue.admit(of('c', 5), sdpOf('a'))).toBe(false)
  expect(queue.take(sdpOf('c'))).toEqual([of('c', 5)])
  expect(queue.take(sdpOf('b'))).toEqual([of('b', 2)])
})

test('a candidate that does not say where it belongs goes to the description that there is', () => {
  const queue = createCandidateQueue()
  const plain = { candidate: 'candidate:1' }
  expect(queue.admit(plain, undefined)).toBe(false)
  expect(queue.take(sdpOf('a'))).toEqual([plain])
  expect(queue.admit(plain, sdpOf('a'))).toBe(true)
})

test('those that nothing ever comes for do not pile up', () => {
  const queue = createCandidateQueue()
  for (let n = 0; n < 1000; n++) queue.admit(of('gone', n), undefined)
  const kept = queue.take(sdpOf('gone'))
  expect([kept.length, kept.at(-1)]).toEqual([256, of('gone', 999)])
})
