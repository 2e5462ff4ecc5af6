import { expect, test } from 'bun:test'
import { created, ended, participant, ringing, touched } from '../test/contracts/calls.ts'
import { createMemorySessions } from './adapters/memory/sessions.ts'
import type { LiveCall } from './call/call.ts'
import { overData, ringingData, type Step } from './call/effects.ts'
import { createDelivery } from './delivery.ts'

/** A callee with one session, and what it was told. */
function setUp() {
  const sessions = createMemorySessions({ windowMs: 120_000, resumeWindowMs: 120_000, onLogLost: () => {} })
  const callee = participant('callee', 'doctor')
  const told: string[] = []
  const nothing = async () => {}
  sessions.open(
    { sessionId: 's', participant: callee, deviceId: null, extended: false },
    {
      send: (text) => told.push(JSON.parse(text).event),
      pushed: () => {},
      probe: async () => true,
      close: () => {},
      retire: nothing,
      isBusy: false,
    },
  )
  sessions.ready('s')
  const delivery = createDelivery({ sessions, onApplied: () => {} })
  const call = ringing(participant('caller'), callee)
  const invited = withNotice(created(call), 'call.ringing', ringingData(call, call.startedAt))
  const over = ended(call)
  if (over.call.status === 'ringing' || !('endedAt' in over.call)) throw new Error('unreachable')
  return { delivery, told, call, invited, final: withNotice(over, 'call.ended', overData(over.call, null)) }
}

function withNotice(step: Step, event: 'call.ringing' | 'call.ended', data: object): Step {
  const notice = { to: { place: 'rung', except: [] }, event, data } as Step['event']['notices'][number]
  return { ...step, event: { ...step.event, notices: [notice] } }
}

test('a read that overtakes the answer to a commit does not swallow its notices', () => {
  const { delivery, told, call, invited, final } = setUp()
  delivery.learn(call)
  delivery.apply(invited)
  delivery.apply(invited)
  expect(told).toEqual(['call.ringing'])
  // A version that is known only from a read is not taken before its step.
  delivery.learn(final.call)
  expect(delivery.known.get(call.callUuid + call.product)?.version).toBe(1)
  delivery.apply(final)
  expect(told).toEqual(['call.ringing', 'call.ended'])
})

test('several steps may be due of a call that was learned in its last version', () => {
  const { delivery, told, call, invited } = setUp()
  const second = touched(call, 'other')
  delivery.learn(second.call)
  expect(delivery.toldOf(call)).toBe(0)
  delivery.apply(invited)
  expect(delivery.toldOf(call)).toBe(1)
  expect(delivery.known.get(call.callUuid + call.product)?.version).toBe(2)
  delivery.apply(second)
  delivery.apply(second)
  expect(delivery.toldOf(call)).toBe(2)
  expect(told).toEqual(['call.ringing'])
})

test('what was adopted at the start has been told before', () => {
  const { delivery, told, call, invited } = setUp()
  delivery.adopt(call as LiveCall)
  expect(delivery.toldOf(call)).toBe(1)
  delivery.apply(invited)
  expect(told).toEqual([])
})
