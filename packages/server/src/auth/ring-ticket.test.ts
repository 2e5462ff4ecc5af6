import { expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { createRingTickets } from './ring-ticket.ts'
import { createTokens } from './tokens.ts'

const start = Date.UTC(2026, 0, 1)
const key = Buffer.alloc(32, 1)
const secrets = [{ kid: 'k1', key }]
const ben = { product: 'shop', role: 'agent', userId: 'ben' }
const call = { product: 'shop', callUuid: '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55', ringExpiresAt: start + 45_500 }

function setUp() {
  const clock = { at: start }
  const now = () => clock.at
  return { clock, tickets: createRingTickets({ secrets, now }), tokens: createTokens({ secrets, ttlS: 3600, now }) }
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Signs by hand, so that what is tested is not tested with itself. */
function sign(payload: object, header: object = { alg: 'HS256', typ: 'JWT', kid: 'k1' }, secret: Uint8Array = key) {
  const body = `${encode(header)}.${encode(payload)}`
  return `${body}.${createHmac('sha256', secret).update(body).digest('base64url')}`
}
const claims = {
  iss: 'ringwire',
  aud: 'ringwire-ring',
  purpose: 'ring',
  sub: 'ben',
  product: 'shop',
  role: 'agent',
  call_uuid: call.callUuid,
  iat: start / 1000,
  exp: start / 1000 + 45,
}

test('[TICK1] a ticket is for one call and one participant', () => {
  const { tickets } = setUp()
  const said = { participant: ben, callUuid: call.callUuid, issuedAt: start, isOver: false }
  expect(tickets.verify(tickets.sign(call, ben))).toEqual({ ...said, deviceId: null })
  expect(tickets.verify(tickets.sign(call, ben, 'phone'))).toEqual({ ...said, deviceId: 'phone' })
  expect(tickets.verify(sign(claims))).toEqual({ ...said, deviceId: null })
})

test('[TICK1] it is good until the ring is over, and not a moment longer; for a day it is known as one that was', () => {
  const { tickets, clock } = setUp()
  const ticket = tickets.sign(call, ben)
  const isOver = () => tickets.verify(ticket)?.isOver
  clock.at = call.ringExpiresAt - 501
  expect(isOver()).toBe(false)
  clock.at = call.ringExpiresAt - 500
  expect(isOver()).toBe(true)
  clock.at += 86_400_000 - 1
  expect(isOver()).toBe(true)
  clock.at += 1
  expect(tickets.verify(ticket)).toBeUndefined()
})

test('[TICK1] no ticket is a session token, and no session token a ticket', () => {
  const { tickets, tokens } = setUp()
  expect(tokens.verify(tickets.sign(call, ben, 'phone'))).toEqual({ ok: false, expired: false })
  const who = { displayName: 'Ben', contextType: 'order', contextId: '1', allowedPeerRoles: ['customer'] }
  const session = tokens.issue({ participant: ben, ...who }).token
  expect(tickets.verify(session)).toBeUndefined()
  // A token with everything that a ticket has is not a ticket if it has another audience or another purpose.
  const [, body = ''] = session.split('.')
  const whole = { ...JSON.parse(Buffer.from(body, 'base64url').toString()), ...claims }
  expect(tickets.verify(sign(whole))).toBeDefined()
  expect(tokens.verify(sign(whole))).toEqual({ ok: false, expired: false })
  expect(tickets.verify(sign({ ...whole, aud: 'ringwire' }))).toBeUndefined()
  expect(tickets.verify(sign({ ...whole, purpose: undefined }))).toBeUndefined()
  expect(tickets.verify(sign({ ...whole, purpose: 'session' }))).toBeUndefined()
})

test('[TICK1] what is forged, or lacks a claim, is no ticket', () => {
  const { tickets } = setUp()
  const none = { alg: 'none', typ: 'JWT', kid: 'k1' }
  const bad = [
    '',
    'rubbish',
    sign(claims, undefined, Buffer.alloc(32, 2)),
    sign(claims, { alg: 'HS256', typ: 'JWT', kid: 'other' }),
    sign(claims, none),
    `${encode(none)}.${encode(claims)}.`,
    sign({ ...claims, iss: 'other' }),
    sign({ ...claims, iat: undefined }),
    sign({ ...claims, exp: undefined }),
    sign({ ...claims, exp: 'tomorrow' }),
    sign({ ...claims, sub: undefined }),
    sign({ ...claims, call_uuid: 7 }),
    sign({ ...claims, device_id: 7 }),
    sign([claims]),
  ]
  for (const token of bad) expect(tickets.verify(token)).toBeUndefined()
})
