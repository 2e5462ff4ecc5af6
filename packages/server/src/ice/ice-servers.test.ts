import { expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { IceServer } from '@ringwire/protocol/rest'
import { createValidator } from '@ringwire/protocol/validate'
import { createIceServers, turnExpiry } from './ice-servers.ts'

type TurnConfig = Parameters<typeof createIceServers>[0]
const none: TurnConfig = {
  stunUrls: [],
  turnUrls: [],
  turnSecrets: null,
  turnUsername: null,
  turnCredential: null,
  turnTtlS: null,
  tokenTtlS: 3600,
}
const ann = { product: 'shop', role: 'customer', userId: 'ann' }
const now = Date.UTC(2026, 0, 1) + 999
const nowS = Math.floor(now / 1000)
const turn: TurnConfig = { ...none, turnUrls: ['turn:t.test:3478?transport=udp'], turnSecrets: ['north-south'] }

function turnEntry(config: TurnConfig, participant = ann, at = now) {
  const entry = createIceServers(config)(participant, at).at(-1)
  if (entry?.username === undefined || entry.credential === undefined) throw new Error('no TURN credentials')
  return { urls: entry.urls, username: entry.username, credential: entry.credential }
}

test('[ICE1] nothing configured: no entries', () => {
  expect(createIceServers(none)(ann, now)).toEqual([])
})

test('[ICE1] STUN entries have urls only', () => {
  const stunUrls = ['stun:a.test', 'stun:b.test']
  expect(createIceServers({ ...none, stunUrls })(ann, now)).toEqual([{ urls: stunUrls }])
})

test('[ICE1] STUN first, then TURN; both fit the schema', () => {
  const valid = createValidator(IceServer)
  const servers = createIceServers({ ...turn, stunUrls: ['stun:a.test'] })(ann, now)
  expect(servers.map(({ urls }) => urls)).toEqual([['stun:a.test'], ['turn:t.test:3478?transport=udp']])
  for (const server of servers) expect(valid(server).ok).toBe(true)
})

test('[ICE1] the credential is what coturn computes from the user name and the shared secret', () => {
  const { username, credential } = turnEntry(turn)
  // turn_server.c: base64(HMAC-SHA1(static-auth-secret, username)), username = "timestamp:anything".
  expect(credential).toBe(createHmac('sha1', 'north-south').update(username).digest('base64'))
  expect(username).toMatch(/^\d+:[\w-]{24}$/)
})

test('[ICE1] a known answer, so that a change of the scheme cannot go unseen', () => {
  expect(turnEntry(turn)).toEqual({
    urls: ['turn:t.test:3478?transport=udp'],
    username: '1767240000:-8qcbi2jttbPNkYRq7lL1Ywx',
    credential: 'FKRjFdYp9SXk25+kCZb/+s0WrmM=',
  })
})

test('[ICE1] valid for the longer of the token and 4 hours, at most 24', () => {
  const ttl = (tokenTtlS: number) => Number(turnEntry({ ...turn, tokenTtlS }).username.split(':')[0]) - nowS
  expect(ttl(60)).toBe(4 * 3600)
  expect(ttl(4 * 3600 + 1)).toBe(4 * 3600 + 1)
  expect(ttl(86_400)).toBe(24 * 3600)
  expect(ttl(10 * 86_400)).toBe(24 * 3600)
})

test('[ICE1] RINGWIRE_TURN_TTL_S counts before the lifetime of tokens', () => {
  const ttl = (turnTtlS: number) => Number(turnEntry({ ...turn, turnTtlS }).username.split(':')[0]) - nowS
  expect([ttl(1), ttl(600), ttl(86_400)]).toEqual([1, 600, 86_400])
})

test('[EXT5] the expiry is what the user name says, and null where nothing runs out', () => {
  for (const config of [turn, { ...turn, turnTtlS: 7 }, { ...turn, tokenTtlS: 80_000 }]) {
    const [said] = turnEntry(config).username.split(':')
    expect(turnExpiry(config, now)).toBe(Number(said) * 1000)
  }
  expect(turnExpiry(none, now)).toBeNull()
  expect(turnExpiry({ ...none, stunUrls: ['stun:a.test'] }, now)).toBeNull()
  expect(turnExpiry({ ...none, turnSecrets: ['north-south'] }, now)).toBeNull()
  const fixed = { ...none, turnUrls: ['turn:t.test'], turnUsername: 'u', turnCredential: 'c', turnTtlS: 7 }
  expect(turnExpiry(fixed, now)).toBeNull()
})

test('[ICE1] the user name is the same for one participant, another for each other, and shows no user_id', () => {
  const name = (participant: typeof ann, secret = 'north-south') =>
    turnEntry({ ...turn, turnSecrets: [secret] }, participant).username.split(':')[1] ?? ''
  expect(name(ann)).toBe(name({ ...ann }))
  const others = [
    { ...ann, userId: 'bob' },
    { ...ann, role: 'agent' },
    { ...ann, product: 'other' },
  ]
  expect(new Set([ann, ...others].map((participant) => name(participant))).size).toBe(4)
  expect(name(ann, 'another secret')).not.toBe(name(ann))
  expect(Buffer.from(name(ann), 'base64url').toString('latin1')).not.toContain('ann')
})

test('[KEY1] of two secrets the first makes the credentials', () => {
  const both = (...turnSecrets: string[]) => turnEntry({ ...turn, turnSecrets })
  expect(both('new', 'old')).toEqual(both('new'))
  expect(both('old', 'new')).toEqual(both('old'))
  expect(both('new')).not.toEqual(both('old'))
})

test('[ICE1] fixed credentials are given as they are', () => {
  const servers = createIceServers({ ...none, turnUrls: ['turn:t.test'], turnUsername: 'u', turnCredential: 'c' })(
    ann,
    now,
  )
  expect(servers).toEqual([{ urls: ['turn:t.test'], username: 'u', credential: 'c' }])
})

test('[ICE1] callers cannot change what the next one gets', () => {
  const iceServers = createIceServers({ ...none, stunUrls: ['stun:a.test'] })
  iceServers(ann, now)[0]?.urls.push('stun:evil.test')
  expect(iceServers(ann, now)).toEqual([{ urls: ['stun:a.test'] }])
})
