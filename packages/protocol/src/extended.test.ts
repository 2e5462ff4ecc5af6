import { describe, expect, test } from 'bun:test'
import { ActiveCall, AuthOk, AuthRefresh, ExtendedAuthOk, SessionReset } from './events/auth.ts'
import { CallAck, CallAlertingBy, CallMedia, CallPeerAway, CallPeerBack, CallStatusChanged } from './events/call.ts'
import { extendedQuery } from './extended.ts'
import { callStatuses, IceServersResponse } from './rest.ts'
import { serverEvents } from './server-events.ts'
import { createValidator } from './validate.ts'

const call_uuid = '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55'
const by = { user_id: 'ben', role: 'agent' }
const activeCall = {
  call_uuid,
  status: 'accepted',
  version: 2,
  direction: 'outgoing',
  peer: { ...by, display_name: null },
  call_type: 'audio',
  context_type: 'order',
  context_id: '1042',
  started_at: '2026-03-02T09:05:00.000Z',
  expires_at: '2026-03-02T09:05:45.000Z',
  holds_place: true,
}
const state = { session_id: 'aK4Jm2dY0wXhQz4c1uKkq7V3g', epoch: 'Rm9v', active_calls: [activeCall] }
const base = { user_id: 'ann', role: 'customer', display_name: 'Ann', socket_id: 'aK4q5Xc0mX9T3uYb1cQm1V8wA' }
const extended = {
  ...base,
  ...state,
  resume_window_ms: 120_000,
  server_time: '2026-03-02T09:05:10.000Z',
  recovered: false,
  handled: 0,
}

/** Right as it is, and wrong without any one of its members. */
function needsAll(schema: Parameters<typeof createValidator>[0], data: Readonly<Record<string, unknown>>) {
  const validate = createValidator(schema)
  expect(validate(data)).toMatchObject({ ok: true })
  for (const field of Object.keys(data)) {
    const { [field]: _, ...rest } = data
    expect(validate(rest)).toEqual({ ok: false, field, message: 'is required' })
  }
}

test('[RES1] the query of an extended connection', () => {
  expect(extendedQuery).toEqual({
    extended: 'ext',
    can: 'can',
    resume: 'resume',
    epoch: 'epoch',
    seq: 'seq',
    replied: 'n',
  })
})

describe('[EXT1] auth.ok of an extended session', () => {
  test('has all that a base one has, and more', () => {
    needsAll(AuthOk, base)
    needsAll(ExtendedAuthOk, extended)
    expect(Object.keys(ExtendedAuthOk.properties)).toEqual(expect.arrayContaining(Object.keys(AuthOk.properties)))
  })

  test('a call of the snapshot has its version, its peer and whose place it is', () => {
    needsAll(ActiveCall, activeCall)
    const validate = createValidator(ActiveCall)
    for (const status of callStatuses) {
      expect(validate({ ...activeCall, status }).ok).toBe(['ringing', 'accepted', 'connected'].includes(status))
    }
    for (const version of [0, 1.5, '2']) expect(validate({ ...activeCall, version }).ok).toBe(false)
  })
})

test('[RES4] session.reset names the session, the new epoch and the live calls', () => {
  needsAll(SessionReset, state)
})

test('[EXT2] [EXT5] the replies and pushes of extended sessions', () => {
  needsAll(CallAck, { call_uuid, status: 'ringing' })
  needsAll(CallStatusChanged, { call_uuid, status: 'connected', by })
  needsAll(CallAlertingBy, { call_uuid, by })
  needsAll(AuthRefresh, { token: 'a.b.c' })
  needsAll(IceServersResponse, { ice_servers: [], expires_at: null })
  for (const status of callStatuses) expect(createValidator(CallAck)({ call_uuid, status }).ok).toBe(true)
  expect(createValidator(CallStatusChanged)({ call_uuid, status: 'accepted', by }).ok).toBe(false)
})

const peer = ['call.media', 'call.peer_away', 'call.peer_back']

test('[MEDIA1] [PEER1] what peers see of each other', () => {
  needsAll(CallMedia, { call_uuid, audio: true, video: false, screen: false })
  needsAll(CallPeerAway, { call_uuid, since: activeCall.started_at, ends_at: activeCall.started_at })
  needsAll(CallPeerBack, { call_uuid })
  for (const audio of ['true', 1, null])
    expect(createValidator(CallMedia)({ call_uuid, audio, video: false, screen: false }).ok).toBe(false)
})

test('[HOLD1] a side says that it holds the call, or does not; anything else is no hold', () => {
  const sends = { call_uuid, audio: false, video: false, screen: false }
  const fits = (more: object) => createValidator(CallMedia)({ ...sends, ...more }).ok
  expect([{}, { held: true }, { held: false }].map(fits)).toEqual([true, true, true])
  expect([{ held: 'true' }, { held: 1 }, { held: null }].map(fits)).toEqual([false, false, false])
})

test('no new event has a name that the interface gives to another direction', () => {
  const fresh = [
    'call.ack',
    'call.status',
    'call.alerting',
    'ice.servers',
    'auth.refreshed',
    'session.reset',
    'presence.state',
    'presence.changed',
    ...peer,
  ]
  expect(Object.keys(serverEvents)).toEqual(expect.arrayContaining(fresh))
  for (const event of ['call.invite', 'call.accept', 'call.reject', 'call.cancel', 'call.end', 'call.connected']) {
    expect(Object.keys(serverEvents)).not.toContain(event)
  }
})
