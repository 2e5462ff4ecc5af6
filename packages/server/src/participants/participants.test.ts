import { expect, test } from 'bun:test'
import { ringing } from '../ports/call-store.fixture.ts'
import { newSessionId } from '../ports/session-id.ts'
import { openSink } from '../ports/sessions.fixture.ts'
import { StoreError } from '../ports/store-error.ts'
import { createMemorySessions } from '../stores/memory/sessions.ts'
import { noneErased } from './erasures.port.ts'
import { createParticipants, type ParticipantsOptions } from './participants.ts'

const ann = { product: 'shop', role: 'customer', userId: 'ann' }

test('[SRV2] nothing is erased while a socket is open somewhere, and then it is to be asked again', async () => {
  const sessions = createMemorySessions({ windowMs: 120_000, resumeWindowMs: 120_000 })
  // Of a node that hangs: it does not hear that it is to close.
  const sink = openSink({ close() {} })
  const sessionId = newSessionId(ann)
  sessions.open({ sessionId, participant: ann, deviceId: null, extended: false }, sink, 0)
  const done: string[] = []
  const live = [ringing()]
  const doing = async (what: string) => {
    done.push(what)
    return 0
  }
  const participants = createParticipants({
    sessions,
    seenCalls: { page: () => ({ ok: true, data: [], next_cursor: null }) },
    devices: { of: () => [], forgetAll: () => doing('devices') },
    revoked: { revoke: async () => void doing('tokens') },
    calls: { liveCallsOf: () => live.splice(0), erase: () => doing('calls') },
    timeline: { forgetParticipant: () => doing('timeline') },
    webhooks: { erase: () => doing('webhooks') },
    online: { erase: async () => void doing('online') },
    groups: { forget: () => doing('groups') },
    audit: { forget: () => doing('audit') },
    erasures: { add() {}, counted: () => noneErased, forget() {} },
    endCall: () => doing('end'),
    forgetMember: () => doing('member'),
    flush: async () => void doing('flush'),
    hasOthers: () => false,
    now: () => 1_000,
    jumpedMs: () => 0,
  })
  expect(await participants.erase(ann).catch((error) => error)).toBeInstanceOf(StoreError)
  expect(done).toEqual(['tokens'])
  sessions.detach(sessionId, sink, false, 0)
  expect((await participants.erase(ann))?.tokens_from).toBe('1970-01-01T00:00:01.000Z')
  // The calls name it until its entries are found.
  expect(done.slice(1)).toEqual([
    'tokens',
    'flush',
    'groups',
    'end',
    'member',
    'online',
    'devices',
    'timeline',
    'calls',
    'webhooks',
    // A disconnect may be written down meanwhile.
    'audit',
  ])
}, 240_000)

test('[SRV2] [END3] a session is shown with the time at which it connected, by the clock as it is now', async () => {
  const sessions = createMemorySessions({ windowMs: 120_000, resumeWindowMs: 120_000 })
  // Sessions go by a clock that does not jump.
  const openedAt = Date.UTC(2026, 0, 1)
  const sessionId = newSessionId(ann)
  sessions.open({ sessionId, participant: ann, deviceId: null, extended: false }, openSink({}), openedAt)
  const participants = createParticipants({
    sessions,
    seenCalls: { page: () => ({ ok: true, data: [], next_cursor: null }) },
    devices: { of: () => [] },
    now: () => openedAt,
    jumpedMs: () => 3_600_000,
  } as unknown as ParticipantsOptions)
  expect((await participants.show(ann)).sessions).toMatchObject([{ connected_at: '2026-01-01T01:00:00.000Z' }])
})
