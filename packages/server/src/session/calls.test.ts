import { describe, expect, test } from 'bun:test'
import { callOf, copiedCalls, finish, knowsOver, leaveCall, ringsAt, type SessionCall } from './calls.ts'

const newSession = (): { calls: Map<string, SessionCall> | undefined } => ({ calls: undefined })

describe('calls of a session', () => {
  test('the session forgets calls that it left first, and never one that it has a part in', () => {
    const session = newSession()
    callOf(session, 'rings').isRinging = true
    callOf(session, 'place').place = 'settled'
    for (let n = 0; n < 600; n++) finish(session, `over-${n}`)
    expect(ringsAt(session, 'rings')).toBe(true)
    expect(session.calls?.get('place')?.place).toBe('settled')
    expect([knowsOver(session, 'over-330'), knowsOver(session, 'over-350')]).toEqual([false, true])
    expect(session.calls?.size).toBeLessThanOrEqual(256)
    const copied = new Map(copiedCalls(session.calls!))
    expect([copied.size, copied.has('rings'), copied.has('place'), copied.has('over-599')]).toEqual([
      64,
      true,
      true,
      true,
    ])
  })

  test('a call that was left again is forgotten last', () => {
    const session = newSession()
    for (const call of ['first', 'second']) callOf(session, call).version = 1
    leaveCall(session, 'first')
    for (let n = 0; n < 255; n++) finish(session, `over-${n}`)
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
