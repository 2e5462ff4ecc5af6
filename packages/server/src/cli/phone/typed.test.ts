import { describe, expect, test } from 'bun:test'
import { createPhoneCalls } from './calls.ts'
import { readTyped, typedHelp, typedWords } from './typed.ts'

const [first, second] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'] as const

function setUp(peerRoles: readonly string[] = ['agent']) {
  const calls = createPhoneCalls()
  const rings = (call_uuid: string) =>
    calls.hears({ event: 'call.ringing', data: { call_uuid, caller_user_id: 'ben', caller_role: 'agent' } })
  const read = (line: string) => readTyped(line, { calls, peerRoles })
  return { calls, rings, read }
}
const sent = (event: string, data: object) => ({ kind: 'send', envelope: { event, data } }) as never
const mistake = (text: string) => ({ kind: 'mistake', message: expect.stringContaining(text) }) as never

describe('what is typed', () => {
  test('an invite: the role may be left out where there is one; quotes keep spaces', () => {
    const { read } = setUp()
    expect(read('invite ben')).toEqual(sent('call.invite', { callee_user_id: 'ben', callee_role: 'agent' }))
    expect(read('  invite "ben b" boss video ')).toEqual(
      sent('call.invite', { callee_user_id: 'ben b', callee_role: 'boss', call_type: 'video' }),
    )
    expect(read('invite')).toEqual(mistake('whom?'))
    expect(read('invite --group support')).toEqual(
      sent('call.invite', { callee_group: 'support', callee_role: 'agent' }),
    )
    expect(read('invite --group "night shift" boss video')).toEqual(
      sent('call.invite', { callee_group: 'night shift', callee_role: 'boss', call_type: 'video' }),
    )
    expect(read('invite --group')).toEqual(mistake('which group?'))
    expect(setUp(['a', 'b']).read('invite --group x')).toEqual(mistake('The token may call a, b.'))
    expect(setUp(['a', 'b']).read('invite ben')).toEqual(mistake('The token may call a, b.'))
    expect(setUp([]).read('invite ben')).toEqual(mistake('which role?'))
  })

  test('a verb means the newest call that fits, or the one that is named', () => {
    const { calls, rings, read } = setUp()
    expect(read('accept')).toEqual(mistake('There is no call to accept.'))
    rings(first)
    rings(second)
    expect(read('accept')).toEqual(sent('call.accept', { call_uuid: second }))
    expect(read('accept 1111')).toEqual(sent('call.accept', { call_uuid: first }))
    expect(read('reject busy')).toEqual(sent('call.reject', { call_uuid: second, reason: 'busy' }))
    expect(read(`reject ${first} busy`)).toEqual(sent('call.reject', { call_uuid: first, reason: 'busy' }))
    expect(read('cancel')).toEqual(mistake('There is no call to cancel.'))
    expect(read('connected')).toEqual(mistake('There is no call to report.'))
    expect(read('accept 9999')).toEqual(mistake('begins with 9999'))
    // Of a call that is not known here the service decides.
    const unknown = '99999999-9999-4999-8999-999999999999'
    expect(read(`end ${unknown}`)).toEqual(sent('call.end', { call_uuid: unknown }))
    calls.hears({ event: 'call.cancelled', data: { call_uuid: second } })
    expect(read('accept')).toEqual(sent('call.accept', { call_uuid: first }))
  })

  test('any request, with JSON that is an object', () => {
    const { read } = setUp()
    expect(read('send webrtc.offer {"a": "b c"}')).toEqual(sent('webrtc.offer', { a: 'b c' }))
    expect(read('send ping')).toEqual(sent('ping', {}))
    for (const json of ['{', '[]', '1', 'null']) expect(read(`send x ${json}`)).toEqual(mistake('not a JSON object'))
  })

  test('a slip names the nearest word; nothing is nothing; the help has every word', () => {
    const { read } = setUp()
    expect(read('acept')).toEqual(mistake('Did you mean accept?'))
    expect(read('constructor')).toEqual(mistake('help lists'))
    expect(read('   ')).toEqual({ kind: 'nothing' })
    for (const word of typedWords) expect(typedHelp().some((line) => line.startsWith(word))).toBe(true)
  })
})

test('what the service refused has changed nothing', () => {
  const { calls, rings } = setUp()
  rings(first)
  calls.says({ event: 'call.accept', request_id: '1', data: { call_uuid: first } })
  expect(calls.list()).toMatchObject([{ state: 'answered', peer: 'ben (agent)' }])
  calls.hears({ event: 'call.error', request_id: '2', data: {} })
  expect(calls.pick('accept')).toBeUndefined()
  calls.hears({ event: 'call.error', request_id: '1', data: {} })
  expect(calls.pick('accept')).toBe(first)
})

test('an invite that comes back as over is no call that can be cancelled', () => {
  const { calls } = setUp()
  calls.says({ event: 'call.invite', request_id: '1', data: { callee_user_id: 'ben', callee_role: 'agent' } })
  calls.hears({ event: 'call.invited', request_id: '1', data: { call_uuid: first, status: 'missed' } })
  expect(calls.list()).toEqual([{ uuid: first, direction: 'outgoing', state: 'over', peer: 'ben (agent)' }])
  expect(calls.pick('cancel')).toBeUndefined()
  calls.hears({ event: 'call.invited', data: { call_uuid: second, status: 'accepted' } })
  expect(calls.pick('connected')).toBe(second)
})
