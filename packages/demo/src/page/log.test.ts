import { expect, test } from 'bun:test'
import { copyText, createLog, type EnvelopeEntry, type LogEntry } from './log.ts'

const message = (event: string, data: object = {}) => JSON.stringify({ event, data })
const candidate = (type: string) =>
  message('webrtc.ice_candidate', {
    candidate: { candidate: `candidate:1 1 udp 1 192.0.2.7 5000 typ ${type}`, usernameFragment: 'uFrag' },
  })
const lines = (entries: readonly LogEntry[]) =>
  entries.map((entry) =>
    'note' in entry
      ? entry.note
      : `${entry.direction} ${entry.event} ×${entry.envelopes.length} ${entry.about}`.trimEnd(),
  )

test('candidates and their acknowledgements are one line each, until something else passes', () => {
  const log = createLog()
  for (const type of ['host', 'srflx', 'host']) {
    log.sent(candidate(type))
    log.received(message('call.ack', { status: 'ringing' }))
  }
  log.received(candidate('relay'))
  log.received(message('call.accepted', { status: 'accepted' }))
  log.sent(candidate('host'))
  log.note('closed')
  log.sent(candidate('host'))
  expect(lines(log.entries.get())).toEqual([
    'sent webrtc.ice_candidate ×3 host, srflx',
    'received call.ack ×3 ringing',
    'received webrtc.ice_candidate ×1 relay',
    'received call.accepted ×1 accepted',
    'sent webrtc.ice_candidate ×1 host',
    'closed',
    'sent webrtc.ice_candidate ×1 host',
  ])
})

test('the oldest of 400 entries goes', () => {
  const log = createLog()
  for (let count = 0; count < 402; count++) log.note(`${count}`)
  expect(log.entries.get()).toHaveLength(400)
  expect(lines(log.entries.get())[0]).toBe('2')
})

test('tokens and the passwords of TURN servers are never kept', () => {
  const log = createLog()
  log.received(message('auth.refreshed', { token: `eyJh${'x'.repeat(9)}.eyJz.c2ln`, note: 'Bearer eyJh.eyJz.c2ln' }))
  log.received(message('ice.servers', { ice_servers: [{ urls: ['turn:x'], username: '1:a', credential: 'pass' }] }))
  log.received('{"event": "cut')
  const kept = JSON.stringify(log.entries.get())
  expect(kept).not.toMatch(/eyJ|"pass"/)
  expect(kept).toContain('Bearer (token)')
  expect((log.entries.get()[2] as EnvelopeEntry).event).toBe('unreadable')
})

test('a copy has no description and no address', () => {
  const log = createLog()
  log.sent(message('webrtc.offer', { sdp: { type: 'offer', sdp: 'v=0\r\na=ice-pwd:geheim\r\n' } }))
  log.sent(candidate('host'))
  log.note('closed')
  const text = copyText(log.entries.get())
  expect(text).not.toMatch(/geheim|192\.0\.2\.7|uFrag/)
  const [offer, sent, note] = JSON.parse(text)
  expect(offer.sent[0]).toEqual({ event: 'webrtc.offer', data: { sdp: { type: 'offer', sdp: '(3 lines)' } } })
  expect(sent.sent[0].data.candidate).toEqual({ candidate: '(typ host)' })
  expect(note.note).toBe('closed')
})
