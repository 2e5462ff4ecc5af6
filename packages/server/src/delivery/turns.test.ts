import { expect, test } from 'bun:test'
import { StoreError } from '../ports/store-error.ts'
import { createTurns } from './turns.ts'

function setUp() {
  const undelivered = new Set<string>()
  const errors: unknown[] = []
  const order: string[] = []
  const inTurn = createTurns(undelivered, (error) => errors.push(error))
  return { undelivered, errors, order, inTurn }
}

test('[ORD3] the steps of one call are handed on one after another, and no other call waits for them', async () => {
  const { order, inTurn } = setUp()
  const { promise, resolve } = Promise.withResolvers<void>()
  const first = inTurn('a', async () => {
    await promise
    order.push('first')
  })
  const second = inTurn('a', () => void order.push('second'))
  const other = inTurn('b', () => void order.push('other'))
  expect([other, order]).toEqual([true, ['other']])
  resolve()
  expect(await Promise.all([first, second])).toEqual([true, true])
  expect(order).toEqual(['other', 'first', 'second'])
  // Nothing is under way any more, so nothing has to be waited for.
  expect(inTurn('a', () => {})).toBe(true)
})

test('[ORD3] what fails keeps no later step waiting: a store that is away leaves the call undelivered, a bug does not', async () => {
  const { undelivered, errors, order, inTurn } = setUp()
  const away = inTurn('a', () => Promise.reject(new StoreError('unavailable', 'away')))
  const later = inTurn('a', () => void order.push('later'))
  expect(await Promise.all([away, later])).toEqual([false, true])
  expect([order, [...undelivered], errors]).toEqual([['later'], ['a'], []])
  const bug = new Error('a bug')
  const throwing = inTurn('b', () => {
    throw bug
  })
  expect([throwing, undelivered.has('b'), errors]).toEqual([true, false, [bug]])
})
