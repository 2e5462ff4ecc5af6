import { expect, test } from 'bun:test'
import type { TransferState } from '@ringwire/client/transfer'
import type { Call } from '@ringwire/client/types'
import type { OverState } from './line-state.ts'
import { durationText, english, errorText, overText } from './words.ts'

const ben = { userId: 'ben', role: 'agent', displayName: 'Ben' }
const ann = { userId: 'ann', role: 'customer' }

function over(state: Partial<OverState>, call: Partial<Call> = {}): string {
  return overText({
    call: { peer: ben, direction: 'outgoing', ...call } as Call,
    state: { name: 'over', status: 'ended', reason: 'hangup', by: null, error: undefined, ...state },
  })
}

test('who hung up, declined or cancelled is told from who is the peer', () => {
  expect(over({ by: ann })).toBe('You hung up.')
  expect(over({ by: ben })).toBe('The call with Ben has ended.')
  expect(over({ status: 'rejected', reason: 'declined', by: ben })).toBe('Ben declined.')
  expect(over({ status: 'rejected', reason: 'declined', by: ann })).toBe('You declined.')
  expect(over({ status: 'rejected', reason: 'busy', by: ben })).toBe('Ben is busy.')
  expect(over({ status: 'cancelled', by: ann })).toBe('You cancelled the call.')
  expect(over({ status: 'cancelled', by: ben }, { direction: 'incoming' })).toBe('Ben cancelled the call.')
})

test('the same id in another role is another participant', () => {
  expect(over({ by: { userId: 'ben', role: 'customer' } })).toBe('You hung up.')
})

test('a missed call reads otherwise at each side', () => {
  expect(over({ status: 'missed', reason: 'no_answer' })).toBe('Ben did not answer.')
  expect(over({ status: 'missed', reason: 'no_answer' }, { direction: 'incoming' })).toBe('You missed a call from Ben.')
})

test('a reason of the service comes before the status', () => {
  expect(over({ reason: 'peer_lost' })).toBe('Ben did not come back.')
  expect(over({ status: 'accepted', reason: 'answered_elsewhere' })).toBe('Answered on another of your devices.')
})

test('a call that failed tells it in words, and so does an error that concerns no call', () => {
  for (const code of ['UNKNOWN_OUTCOME', 'TIMEOUT', 'SERVICE_DRAINING', 'TOKEN_FAILED', 'RATE_LIMITED']) {
    const error = { code, message: `the message of ${code}` } as NonNullable<OverState['error']>
    const text = errorText(error)
    expect(text).not.toContain(code)
    expect(over({ error })).toBe(text)
  }
  expect(errorText({ code: 'NEW_CODE', message: 'What the service says.' })).toBe('What the service says.')
})

test('a peer without a name is called by its id', () => {
  expect(over({ by: ben }, { peer: { ...ben, displayName: null } })).toBe('The call with ben has ended.')
})

test('durations are minutes and seconds, with hours where there are any', () => {
  expect([0, 59.9, 60, 103, 3600, 36_061].map(durationText)).toEqual([
    '0:00',
    '0:59',
    '1:00',
    '1:43',
    '1:00:00',
    '10:01:01',
  ])
  expect(durationText(-3)).toBe('0:00')
})

test('[GROUP1] a group is called by its own name, and its members are no devices of one person', () => {
  const group = { group: 'support', peer: { userId: null, role: 'agent', displayName: null } }
  expect(over({ status: 'missed', reason: 'no_answer' }, group)).toBe('support did not answer.')
  expect(over({ status: 'rejected', reason: 'all_declined', by: ben }, group)).toBe(
    'Nobody at support can take the call.',
  )
  expect(over({ status: 'rejected', reason: 'in_a_meeting', by: ben }, group)).toBe('support declined.')
  expect(over({ status: 'cancelled', by: ann }, group)).toBe('You cancelled the call.')
  const member = { group: 'support', direction: 'incoming' } as const
  expect(over({ status: 'accepted', reason: 'answered_elsewhere' }, member)).toBe('The call for support was answered.')
  const late = { code: 'CALL_ALREADY_ANSWERED', message: '' } as NonNullable<OverState['error']>
  expect(over({ status: 'accepted', reason: 'answered_elsewhere', error: late }, member)).toBe(
    'The call for support was answered.',
  )
  expect(english.incoming({ callType: 'video', group: 'support' } as Call)).toBe('Incoming video call for support')
})

test('[XFER1] a transfer that failed tells why, also where the name of the target is not known', () => {
  const failed = (how: object, name = 'Eva') =>
    english.transferFailed({ name: 'failed', ...how } as TransferState, name)
  expect(failed({ status: 'missed', reason: 'no_answer' })).toBe('Eva did not answer.')
  expect(failed({ status: 'rejected', reason: 'declined' }, english.somebody)).toBe('Somebody else declined.')
  expect(failed({ status: 'rejected', reason: 'in_a_meeting' })).toBe('Eva is busy.')
  expect(failed({ status: 'cancelled', reason: 'caller_cancelled' })).toBe('The transfer was stopped.')
  expect(failed({ error: { code: 'CALL_INVALID_STATE' } })).toBe('This call cannot be transferred right now.')
  expect(failed({ error: { code: 'CALL_PEER_ROLE_NOT_ALLOWED' } })).toBe('You are not allowed to call Eva.')
})
