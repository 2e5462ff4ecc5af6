import { describe, expect, test } from 'bun:test'
import type { CallView, TimelineEntry } from '@ringwire/protocol/backend'
import { endReasons } from '@ringwire/protocol/end-reasons'
import fc from 'fast-check'
import { summaryOf } from './summary.ts'

const start = Date.UTC(2026, 2, 2, 9)
const at = (ms: number) => new Date(start + ms).toISOString()
const ann = { user_id: 'ann', role: 'customer' }
const ben = { user_id: 'ben', role: 'agent' }

/** A call of Ann's to Ben that nobody answered within 45 s. */
function call(fields: Partial<CallView> = {}): CallView {
  return {
    call_uuid: crypto.randomUUID(),
    version: 2,
    status: 'missed',
    end_reason: 'no_answer',
    caller: { ...ann, display_name: 'Ann' },
    callee: { ...ben, display_name: null },
    call_type: 'audio',
    context_type: 'order',
    context_id: '1',
    metadata: null,
    started_at: at(0),
    accepted_at: null,
    connected_at: null,
    ended_at: at(45_000),
    by: null,
    ...fields,
  }
}

const entry = (what: string, ms: number, fields: Partial<TimelineEntry> = {}): TimelineEntry => ({
  at: at(ms),
  what,
  who: ben,
  detail: {},
  ...fields,
})
const rung = (session_id = 's1', device_id = 'phone') => entry('rung', 5, { session_id, device_id })
const proven = (session_id = 's1') => entry('proven', 90, { session_id, device_id: 'phone' })
const noDevice = (detail: TimelineEntry['detail']) => entry('no_device', 8, { detail })
const push = (result: string, reason: string, platform = 'fcm') =>
  entry('push', 210, { device_id: 'phone', detail: { type: 'call.wake', platform, result, reason, after_ms: 190 } })
const lost = (cause: string, ms: number, session_id = 's1', who = ben) =>
  entry('socket_lost', ms, { session_id, who, detail: { cause } })
const refused = (detail: TimelineEntry['detail']) => entry('refused', 0, { who: ann, detail })

const groupCall = (fields: Partial<CallView> = {}) =>
  call({ callee: { user_id: null, role: 'agent', group: 'support', display_name: null }, ...fields })
const members = (count: number, woken: number) => entry('members', 9, { detail: { members: count, woken } })
const rang = (count: number) => entry('members', 5, { detail: { rang: count } })

/** Each way in which a phone does not ring: what is said of it. */
const ways: readonly [way: string, call: CallView | null, entries: TimelineEntry[], said: string][] = [
  [
    '[GROUP1] nobody of a group answered',
    groupCall(),
    [rang(2), members(3, 1), entry('declined', 900)],
    'Ann called the group support (3 members); 2 rang, 1 was woken, 1 declined; nobody answered within 45 s.',
  ],
  [
    '[GROUP1] nothing is known of the members',
    groupCall({ status: 'cancelled', end_reason: 'caller_cancelled', ended_at: at(4_000) }),
    [],
    'Ann called the group support; Ann gave up after 4 s, before an answer.',
  ],
  [
    '[GROUP1] all have declined',
    groupCall({ status: 'rejected', end_reason: 'all_declined', ended_at: at(4_000) }),
    [members(1, 0), entry('rejected', 4_000)],
    'Ann called the group support (1 member); nobody was left who had not declined, 4 s after the call began.',
  ],
  [
    '[GROUP1] it still rings',
    groupCall({ status: 'ringing', end_reason: null, ended_at: null }),
    [members(500, 0)],
    'Ann called the group support (500 members); the call rings.',
  ],
  [
    '[GROUP1] the caller was gone',
    groupCall({ status: 'cancelled', end_reason: 'caller_lost', ended_at: at(4_000) }),
    [rang(0), members(2, 2), lost('no pong', 500, 's9', ann)],
    'Ann called the group support (2 members); none rang, 2 were woken; Ann was gone: its socket was lost (no pong), and nobody came back.',
  ],
  [
    '[GROUP1] the group was removed',
    groupCall({ status: 'cancelled', end_reason: 'ended_by_server', ended_at: at(4_000) }),
    [members(2, 0)],
    'Ann called the group support (2 members); the backend ended the call after 4 s, before it was answered.',
  ],
  [
    '[GROUP1] a member answered, and talks',
    groupCall({
      ...{ status: 'connected', end_reason: null, ended_at: null, accepted_at: at(4_000), connected_at: at(4_500) },
      callee: { ...ben, group: 'support', display_name: null },
    }),
    [members(3, 1)],
    'Ann called the group support (3 members); 1 was woken; the call goes on: agent ben answered after 4 s.',
  ],
  [
    '[GROUP1] a member answered, and hung up',
    groupCall({
      ...{
        status: 'ended',
        end_reason: 'hangup',
        accepted_at: at(4_000),
        connected_at: at(4_500),
        ended_at: at(9_000),
      },
      ...{ callee: { ...ben, group: 'support', display_name: null }, by: ben },
    }),
    [members(3, 1), entry('declined', 900)],
    'Ann called the group support (3 members); 1 was woken, 1 declined; agent ben answered after 4 s; agent ben hung up after 5 s.',
  ],
  [
    'nothing was seen of a ring',
    call(),
    [],
    'No ring to agent ben is known, neither over a socket nor as a push; nobody answered within 45 s.',
  ],
  [
    'offline, the push refused',
    call(),
    [push('refused', '403 SENDER_ID_MISMATCH')],
    "Agent ben's phone was offline; push refused by FCM (403 SENDER_ID_MISMATCH), no client came within 45 s.",
  ],
  [
    'offline, the device given up by its push service',
    call(),
    [push('gone', '410 Unregistered', 'apns')],
    "Agent ben's phone was offline; APNs has given its device up (410 Unregistered), no client came within 45 s.",
  ],
  [
    'rung, no answer to the ping, woken',
    call(),
    [rung(), entry('unsure', 2_100, { session_id: 's1', device_id: 'phone' }), push('accepted', '201', 'webpush')],
    "The ring was sent to agent ben's client (phone), which did not answer the ping; push accepted by Web Push after 0.2 s, no client came within 45 s.",
  ],
  [
    'rung and received, asleep later, woken',
    call(),
    [rung(), proven(), entry('unsure', 9_000, { session_id: 's1', device_id: 'phone' }), push('accepted', '200')],
    "The ring reached agent ben's client (phone), which never said that it alerts, and left a later ping without an answer; push accepted by FCM after 0.2 s; nobody answered within 45 s.",
  ],
  [
    'offline, no push came through',
    call(),
    [push('expired', 'timeout', 'webpush')],
    "Agent ben's phone was offline; no push came through to Web Push in time (timeout), no client came within 45 s.",
  ],
  [
    'offline, the push service not to be reached',
    call(),
    [push('failed', 'ECONNREFUSED')],
    "Agent ben's phone was offline; no push came through to FCM, which could not be asked (ECONNREFUSED), no client came within 45 s.",
  ],
  [
    'offline, the push service full',
    call(),
    [push('limited', '429 QUOTA_EXCEEDED')],
    "Agent ben's phone was offline; FCM took no push for now (429 QUOTA_EXCEEDED), no client came within 45 s.",
  ],
  [
    'offline, and too many pushes waited',
    call(),
    [push('dropped', 'too many')],
    "Agent ben's phone was offline; no push was sent, for too many waited for FCM, no client came within 45 s.",
  ],
  [
    'nobody there',
    call(),
    [noDevice({ connected: 0, registered: 0 })],
    'Agent ben was not connected and has no registered device.',
  ],
  [
    'nobody there, with a name',
    call({ callee: { user_id: 'ben', role: 'agent', display_name: 'Ben' } }),
    [noDevice({ connected: 0, registered: 0 })],
    'Ben was not connected and has no registered device.',
  ],
  [
    'nobody there, and the caller did not wait',
    call({ status: 'cancelled', end_reason: 'caller_cancelled', ended_at: at(5_000) }),
    [noDevice({ connected: 0, registered: 0 })],
    'Ann gave up after 5 s; agent ben was not connected and has no registered device.',
  ],
  [
    'offline, and the service does not push to its device',
    call(),
    [noDevice({ connected: 0, registered: 1 })],
    'Agent ben was not connected, and the service cannot push to its 1 registered device; nobody answered within 45 s.',
  ],
  [
    'connected, or back in time, without a device',
    call(),
    [noDevice({ connected: 0, registered: 0 }), rung(), entry('alerting', 900, { device_id: 'watch' })],
    "Agent ben's phone (watch) rang; nobody answered within 45 s.",
  ],
  [
    'offline, without a device, as earlier versions wrote it',
    call(),
    [entry('no_device', 8)],
    'No ring to agent ben over a socket is known, and no device was there that could be woken; nobody answered within 45 s.',
  ],
  [
    'the push accepted, and nobody came',
    call(),
    [push('refused', '403'), push('accepted', '200')],
    "Agent ben's phone was offline; push accepted by FCM after 0.2 s, no client came within 45 s.",
  ],
  [
    'the socket dead, and found dead only by a ping',
    call(),
    [rung(), lost('no pong to a keep-alive', 20_400), entry('socket_found', 44_000)],
    "Agent ben's socket was dead, and found so 20.4 s later (no pong to a keep-alive); nobody answered within 45 s.",
  ],
  [
    'the same with a push beside it',
    call(),
    [rung(), push('accepted', '200'), lost('no pong after a push', 12_000)],
    "Agent ben's socket was dead, and found so 12 s later (no pong after a push); push accepted by FCM after 0.2 s, no client came within 45 s.",
  ],
  [
    'sent, and never proven',
    call(),
    [rung()],
    'The ring was sent to agent ben, whose client was never proven to have received it; nobody answered within 45 s.',
  ],
  [
    'reached, but never alerting',
    call(),
    [rung(), proven()],
    "The ring reached agent ben's client (phone), which never said that it alerts; nobody answered within 45 s.",
  ],
  [
    'it rang, and nobody answered',
    call(),
    [rung(), proven(), entry('alerting', 300, { device_id: 'phone' })],
    "Agent ben's phone (phone) rang; nobody answered within 45 s.",
  ],
  [
    'declined elsewhere',
    call({ status: 'rejected', end_reason: 'declined', ended_at: at(3_200), by: ben }),
    [rung('s1'), rung('s2', 'desk'), entry('rejected', 3_200, { session_id: 's2', device_id: 'desk' })],
    'Agent ben declined on desk after 3.2 s, so it stopped ringing at 1 other session.',
  ],
  [
    'declined where it rang alone, with a reason',
    call({ status: 'rejected', end_reason: 'in_meeting', ended_at: at(3_000), by: ben }),
    [rung('s1'), entry('rejected', 3_000, { session_id: 's1' })],
    'Agent ben declined after 3 s (in_meeting).',
  ],
  [
    'busy',
    call({ status: 'busy', end_reason: 'busy', ended_at: at(0) }),
    [],
    'Agent ben was in another call, and the product refuses a second one.',
  ],
  [
    'refused by the backend',
    call({ version: 1, status: 'rejected', end_reason: 'blocked', ended_at: at(0) }),
    [entry('invite_hook', 0, { detail: { result: 'refuse', after_ms: 40 } })],
    'The backend refused the call (blocked), so it did not ring.',
  ],
  [
    'refused by the backend without a reason',
    call({ version: 1, status: 'rejected', end_reason: 'refused', ended_at: at(0) }),
    [],
    'The backend refused the call, so it did not ring.',
  ],
  [
    'the backend did not decide',
    call({ version: 1, status: 'rejected', end_reason: 'unavailable', ended_at: at(0) }),
    [entry('invite_hook', 0, { detail: { result: 'failed', after_ms: 2_000, instead: 'refuse' } })],
    'The backend gave no valid answer in time, and the product then refuses calls, so it did not ring.',
  ],
  [
    'given up before the backend decided',
    call({ version: 1, status: 'cancelled', end_reason: 'caller_cancelled', ended_at: at(0), by: ann }),
    [entry('invite_hook', 0, { detail: { result: 'withdrawn', after_ms: 300 } })],
    'Ann gave up before the backend had decided on the call, so it did not ring.',
  ],
  [
    'the caller gone',
    call({ status: 'cancelled', end_reason: 'caller_lost', ended_at: at(24_000) }),
    [rung(), proven(), lost('the connection was lost', 4_000, 's9', ann)],
    "Ann was gone: its socket was lost (the connection was lost), and nobody came back; the ring reached agent ben's client (phone), which never said that it alerts.",
  ],
  [
    'the caller gave up',
    call({ status: 'cancelled', end_reason: 'caller_cancelled', ended_at: at(2_000), by: ann }),
    [rung(), proven(), entry('alerting', 100)],
    "Ann gave up after 2 s; agent ben's phone rang.",
  ],
  [
    'over a limit',
    null,
    [refused({ code: 'RATE_LIMITED', limit: 'pair_invites', peer_role: 'agent' })],
    'No call began: the invite of customer ann was refused, over the limit pair_invites.',
  ],
  [
    'the wrong role',
    null,
    [refused({ code: 'CALL_PEER_ROLE_NOT_ALLOWED', peer_role: 'doctor' })],
    'No call began: the invite of customer ann was refused, for its token allows no calls to the role doctor.',
  ],
  [
    'both called at once',
    null,
    [refused({ code: 'CALL_GLARE', peer_role: 'agent' })],
    'No call began: the invite of customer ann was refused, for the other side was just calling.',
  ],
  [
    'an action that the token does not allow',
    null,
    [refused({ code: 'ACTION_NOT_ALLOWED', peer_role: 'agent' })],
    'No call began: the invite of customer ann was refused with ACTION_NOT_ALLOWED.',
  ],
]

describe('[TRACE1] why a phone did not ring', () => {
  for (const [way, of, entries, said] of ways) test(way, () => expect(summaryOf(of, entries)).toBe(said))

  test('no two ways are told alike', () => {
    expect(new Set(ways.map(([, , , said]) => said)).size).toBe(ways.length)
  })
})

test('[TRACE1] where no ring was seen, nothing is said of sockets and devices that may be there all the same', () => {
  const said = 'No ring to agent ben is known, neither over a socket nor as a push'
  const began = entry('invited', 0, { who: ann })
  const over = entry('missed', 45_000)
  for (const [why, seen] of [
    ['its node died between the commit and the push', [began, over]],
    ['entries were dropped', [began, entry('webhook', 20, { detail: { result: 'delivered' } }), over]],
    ['a device is registered at a push service of which the node has no credentials', [began, lost('closed', 9), over]],
    ['what was pushed was not a ring', [began, entry('push', 9, { detail: { type: 'call.wake_cancelled' } }), over]],
  ] as const)
    expect([why, summaryOf(call(), seen)]).toEqual([why, `${said}; nobody answered within 45 s.`])
  expect(summaryOf(call({ status: 'ringing', end_reason: null, ended_at: null }), [began])).toBe(
    `The call rings; ${said.replace('No', 'no')}.`,
  )
})

test('[TRACE1] calls that were answered: how they ended, and whether media was there', () => {
  const talked = {
    accepted_at: at(4_000),
    connected_at: at(5_000),
    ended_at: at(64_000),
    callee: { ...ben, display_name: 'Ben' },
  }
  const ended = (fields: Partial<CallView>) => summaryOf(call({ status: 'ended', ...talked, ...fields }), [])
  expect(ended({ end_reason: 'hangup', by: ben })).toBe('Ben hung up after 60 s.')
  expect(ended({ end_reason: 'hangup', by: ann })).toBe('Ann hung up after 60 s.')
  expect(ended({ end_reason: 'peer_lost', connected_at: null })).toBe(
    'One side lost its connection and did not come back, so the call ended after 60 s; no media was reported.',
  )
  expect(ended({ end_reason: 'ended_by_server' })).toBe('The backend ended the call after 60 s.')
  expect(ended({ end_reason: 'max_duration' })).toBe('The call reached the longest time that calls may take, 60 s.')
  expect(summaryOf(call({ status: 'connected', ...talked, ended_at: null, end_reason: null }), [])).toBe(
    'The call goes on: Ben answered after 4 s.',
  )
})

test('[TAKE1] [TRACE1] who went on at another device, and when', () => {
  const talked = { accepted_at: at(4_000), connected_at: at(5_000), callee: { ...ben, display_name: 'Ben' } }
  const taken = (side: 'caller' | 'callee', ms: number, who = ann) =>
    entry('place_taken', ms, {
      who,
      device_id: 'desk',
      detail: { version: 4, places: [{ side, from: 's1', taken: true }] },
    })
  const passed = entry('place_taken', 50_000, { detail: { version: 5, places: [{ side: 'caller', from: 's1' }] } })
  const ended = { ...talked, status: 'ended', end_reason: 'hangup', ended_at: at(64_000), by: ben } as const
  expect(summaryOf(call(ended), [taken('caller', 14_000), passed])).toBe(
    'Ben hung up after 60 s; Ann went on at another device (desk) after 10 s.',
  )
  const goesOn = { ...talked, status: 'connected', ended_at: null, end_reason: null } as const
  expect(summaryOf(call(goesOn), [taken('caller', 14_000), taken('callee', 24_000, ben)])).toBe(
    'The call goes on: Ben answered after 4 s; Ben went on at another device (desk) after 20 s.',
  )
})

test('[HOLD1] [TRACE1] who had the call on hold, and for how long', () => {
  const talked = { accepted_at: at(4_000), connected_at: at(5_000), callee: { ...ben, display_name: 'Ben' } }
  const held = (what: 'held' | 'resumed', ms: number, who = ann) => entry(what, ms, { who })
  const seen = [held('held', 10_000), held('held', 12_000, ben), held('resumed', 22_500)]
  const ended = { ...talked, status: 'ended', end_reason: 'hangup', ended_at: at(64_000), by: ben } as const
  expect(summaryOf(call(ended), seen)).toBe(
    'Ben hung up after 60 s; Ann had it on hold for 12.5 s, Ben had it on hold for 52 s.',
  )
  const goesOn = { ...talked, status: 'connected', ended_at: null, end_reason: null } as const
  const said = (...entries: TimelineEntry[]) => summaryOf(call(goesOn), entries)
  expect(said(...seen)).toBe('The call goes on: Ben answered after 4 s; Ben has it on hold.')
  expect(said(...seen.slice(0, 2))).toBe('The call goes on: Ben answered after 4 s; Ann and Ben have it on hold.')
  expect(said(...seen.slice(0, 1), held('resumed', 11_000))).toBe('The call goes on: Ben answered after 4 s.')
})

test('[XFER1] [TRACE1] of a transfer: who transferred whom to whom, and what came of it', () => {
  const eva = { user_id: 'eva', role: 'agent', display_name: 'Eva' }
  const by = { transferred_from: crypto.randomUUID(), transferred_by: { ...eva } }
  const said = (fields: Partial<CallView>) => summaryOf(call({ ...by, ...fields }), [])
  const answered = { callee: { ...ben, display_name: 'Ben' }, accepted_at: at(4_000), connected_at: at(5_000) } as const
  const live = { status: 'connected', end_reason: null, ended_at: null } as const
  const over = { status: 'ended', end_reason: 'hangup', ended_at: at(64_000), by: ben } as const
  expect(said({ ...answered, ...live })).toBe('Eva transferred Ann to Ben, who answered after 4 s.')
  expect(said({ ...answered, ...over })).toBe(
    'Eva transferred Ann to Ben, who answered after 4 s; Ben hung up after 60 s.',
  )
  const joined = { ...answered, accepted_at: at(0) }
  expect(said({ ...joined, ...live })).toBe('Eva transferred Ann to Ben, after calls with both.')
  expect(said({ ...joined, ...over })).toBe(
    'Eva transferred Ann to Ben, after calls with both; Ben hung up after 64 s.',
  )
  expect(said({})).toBe(
    'Eva transferred Ann to agent ben; no ring to agent ben is known, neither over a socket nor as a push; nobody answered within 45 s.',
  )
  const cancelled = { status: 'cancelled', end_reason: 'transfer_cancelled' } as const
  expect(said(cancelled)).toBe(
    'Eva transferred Ann to agent ben, but the first call ended after 45 s, before an answer.',
  )
  const erased = { transferred_by: { user_id: '', role: 'agent', display_name: null } }
  expect(said({ ...answered, ...live, ...erased })).toBe('Somebody transferred Ann to Ben, who answered after 4 s.')
  const first = summaryOf(call({ ...answered, ...over, end_reason: 'transferred' }), [])
  expect(first).toBe('Ben transferred the call after 60 s.')
  const failed = (status?: string): TimelineEntry => ({
    ...{ at: at(9_000), what: 'transfer_failed' },
    detail: { version: 5, new_call_uuid: crypto.randomUUID(), ...(status && { status }) },
  })
  const tried = [failed('rejected'), failed('missed'), failed()]
  expect(summaryOf(call({ ...answered, ...over }), tried)).toBe(
    'Ben hung up after 60 s; a transfer was declined; a transfer was not answered; a transfer failed.',
  )
  expect(summaryOf(call({ ...answered, ...live }), [failed('cancelled')])).toBe(
    'The call goes on: Ben answered after 4 s; a transfer was given up.',
  )
})

test('[TRACE1] of whatever was seen: one sentence, and names that were erased are not missed', () => {
  const what = fc.constantFrom(
    'rung',
    'proven',
    'alerting',
    'push',
    'socket_lost',
    'rejected',
    'refused',
    'new',
    'relays',
    'held',
    'resumed',
  )
  const detail = fc.record(
    {
      type: fc.constantFrom('call.wake', 'call.wake_cancelled'),
      result: fc.constantFrom('accepted', 'gone', 'refused', 'expired', 'failed', 'limited', 'dropped', 'new'),
      platform: fc.constantFrom('fcm', 'apns', 'webpush', 'new'),
      cause: fc.string(),
      after_ms: fc.oneof(fc.integer(), fc.constant(null)),
    },
    { requiredKeys: [] },
  )
  const session_id = fc.constantFrom('s1', 's2')
  const entries = fc.array(
    fc.record(
      { what, detail, session_id, at: fc.constant(at(1)), who: fc.constantFrom(ann, { user_id: '', role: '' }) },
      { requiredKeys: ['what', 'detail', 'at'] },
    ),
  )
  const status = fc.constantFrom<CallView['status']>(
    ...(['ringing', 'accepted', 'connected', 'ended', 'rejected', 'cancelled', 'missed', 'busy'] as const),
  )
  const reason = fc.constantFrom(...Object.keys(endReasons), 'x', 'constructor', null)
  const nobody = { user_id: '', role: '', display_name: null }
  fc.assert(
    fc.property(entries, status, reason, fc.boolean(), (seen, status, end_reason, isCall) => {
      const said = summaryOf(isCall ? call({ status, end_reason, caller: nobody, callee: nobody }) : null, seen)
      expect(said).toMatch(/^[^a-z\s].*[^.]\.$/s)
      expect(said).not.toContain('undefined')
    }),
  )
})
