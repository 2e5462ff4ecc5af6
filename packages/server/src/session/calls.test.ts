import { describe, expect, test } from 'bun:test'
import { callOf, finish, knowsOver, leaveCall, ringsAt, type SessionCall } from './calls.ts'

const newSession = (): { calls: Map<string, SessionCall> | undefined } => ({ calls: undefined })

describe('calls of a session', () => {
  test('the session forgets calls that it left first, and never one that it has a part in', () => {
    const session = newSession()
    callOf(session, 'rings').isRinging = true
    callOf(session, 'place').place = 'settled'
    for (let n = 0; n < 200; n++) finish(session, `over-${n}`)
    expect(ringsAt(session, 'rings')).toBe(true)
    expect(session.calls?.get('place')?.place).toBe('settled')
    expect([knowsOver(session, 'over-130'), knowsOver(session, 'over-150')]).toEqual([false, true])
    expect(session.calls?.size).toBeLessThanOrEqual(64)
  })

  test('a call that was left again is forgotten last', () => {
    const session = newSession()
    for (const call of ['first', 'second']) callOf(session, call).version = 1
    leaveCall(session, 'first')
    for (let n = 0; n < 63; n++) finish(session, `over-${n}`)
    expect([session.calls?.has('first'), session.calls?.has('second')]).toEqual([true, false])
  })

  test('what is changed of a call that is over changes no other call', () => {
    const session = newSession()
    const other = newSession()
    finish(session, 'call')
    finish(other, 'other')
    callOf(session, 'call').placeVersion = 7
    expect([knowsOver(session, 'call'), session.calls?.get('call')?.placeVersion]).toEqual([true, 7])
    expect(other.calls?.get('other')).toEqual({ isOver: true })
  })
})
