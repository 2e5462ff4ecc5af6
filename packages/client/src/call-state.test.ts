import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { type CallInput, nextCallState, overFromWire } from './call-state.ts'
import type { CallState } from './types.ts'

const outgoing: CallState = {
  ...{ name: 'ringing', direction: 'outgoing', invited: false, delivered: undefined, alerting: false },
  expiresAt: undefined,
} as const
const incoming: CallState = { name: 'ringing', direction: 'incoming', answering: false, expiresAt: 5 }

const inputs: CallInput[] = [
  { type: 'invited', delivered: true, expiresAt: 9 },
  { type: 'alerting' },
  { type: 'answering', on: true },
  { type: 'answering', on: false },
  { type: 'rings until', expiresAt: 7 },
  { type: 'taken', expiresAt: 7 },
  { type: 'accepted' },
  { type: 'connected' },
  { type: 'stands', status: 'ringing' },
  { type: 'stands', status: 'accepted' },
  { type: 'stands', status: 'missed' },
  { type: 'over', reason: 'hangup', status: 'ended' },
]
const rank = { ringing: 0, accepted: 1, connected: 2, over: 3 }

test('nothing goes back, and what is over stays over', () => {
  const begin = fc.constantFrom(outgoing, incoming)
  fc.assert(
    fc.property(begin, fc.array(fc.constantFrom(...inputs)), (first, path) => {
      let state: CallState = first
      for (const input of path) {
        const next = nextCallState(state, input)
        if (rank[next.name] < rank[state.name]) return false
        if (rank[state.name] === 3 && next !== state) return false
        state = next
      }
      return true
    }),
  )
})

test('what changes nothing gives the same object: a snapshot of an external store', () => {
  for (const state of [outgoing, incoming]) {
    for (const input of inputs) {
      const once = nextCallState(state, input)
      if (input.type !== 'taken') expect(nextCallState(once, input)).toEqual(once)
    }
  }
  const accepted = nextCallState(incoming, { type: 'accepted' })
  for (const type of ['accepted', 'alerting'] as const) expect(nextCallState(accepted, { type })).toBe(accepted)
  expect(nextCallState(incoming, { type: 'alerting' })).toBe(incoming)
  expect(nextCallState(outgoing, { type: 'answering', on: true })).toBe(outgoing)
  expect(nextCallState(outgoing, { type: 'rings until', expiresAt: 1 })).toBe(outgoing)
})

test('after glare an outgoing call is an incoming one that is being answered', () => {
  expect(nextCallState(outgoing, { type: 'taken', expiresAt: 7 })).toEqual({
    ...incoming,
    answering: true,
    expiresAt: 7,
  })
})

test('[END2] a final notice with and without somebody who did it', () => {
  expect(overFromWire({ status: 'ended', reason: 'hangup', by: { user_id: 'a', role: 'b' } })).toEqual({
    ...{ type: 'over', status: 'ended', reason: 'hangup' },
    by: { userId: 'a', role: 'b' },
  })
  expect(overFromWire({ status: 'missed', reason: 'no_answer' })).toMatchObject({ by: null })
})
