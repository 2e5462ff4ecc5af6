import { expect, test } from 'bun:test'
import type { TrustProxy } from '../config/config.ts'
import { createLogger, createSilentLogger } from '../observability/logger.ts'
import { createClientAddress } from './client-address.ts'

function client(trust: TrustProxy | null, socket: string | undefined, forwarded?: string): string | undefined {
  const headers = new Headers(forwarded === undefined ? {} : { 'X-Forwarded-For': forwarded })
  return createClientAddress(trust, createSilentLogger())(headers, socket)
}
const hops = (count: number): TrustProxy => ({ kind: 'hops', hops: count })
const networks = (...list: string[]): TrustProxy => ({ kind: 'networks', networks: list })

test('[TOK5] without RINGWIRE_TRUST_PROXY the header is a claim of the client', () => {
  expect(client(null, '192.0.2.1', '203.0.113.7')).toBe('192.0.2.1')
  expect(client(hops(0), '192.0.2.1', '203.0.113.7')).toBe('192.0.2.1')
  expect(client(null, undefined, '203.0.113.7')).toBeUndefined()
})

test('[TOK5] that header while nothing is trusted: one warning, and never the header in it', () => {
  const lines: string[] = []
  const logger = createLogger({ level: 'info', destination: { write: (line) => void lines.push(line) } })
  const clientAddress = createClientAddress(null, logger)
  clientAddress(new Headers(), '192.0.2.1')
  expect(lines).toEqual([])
  for (let i = 0; i < 3; i++) clientAddress(new Headers({ 'X-Forwarded-For': '203.0.113.7' }), '192.0.2.1')
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain('RINGWIRE_TRUST_PROXY')
  expect(lines[0]).not.toContain('203.0.113.7')
})

test('[TOK5] by hops: the entry that the last trusted proxy saw', () => {
  expect(client(hops(1), '10.0.0.1', '6.6.6.6, 203.0.113.7')).toBe('203.0.113.7')
  expect(client(hops(2), '10.0.0.1', '6.6.6.6, 203.0.113.7, 10.0.0.2')).toBe('203.0.113.7')
  // Fewer entries than proxies: nobody further away is known.
  expect(client(hops(3), '10.0.0.1', '203.0.113.7')).toBe('203.0.113.7')
  expect(client(hops(1), '10.0.0.1')).toBe('10.0.0.1')
})

test('[TOK5] by networks: the right-most entry that is no trusted proxy', () => {
  const trust = networks('10.0.0.0/8', '::1', 'fd00::/8')
  expect(client(trust, '10.0.0.1', '6.6.6.6, 203.0.113.7, 10.1.1.1')).toBe('203.0.113.7')
  expect(client(trust, '::ffff:10.0.0.1', '203.0.113.7')).toBe('203.0.113.7')
  expect(client(trust, '::1', '2001:db8::7, fd00::1')).toBe('2001:db8::7')
  // A client that is not a proxy may write anything there.
  expect(client(trust, '192.0.2.1', '203.0.113.7')).toBe('192.0.2.1')
  expect(client(trust, '10.0.0.1', '10.0.0.3, 10.0.0.2')).toBe('10.0.0.3')
  expect(client(trust, '10.0.0.1')).toBe('10.0.0.1')
})

test('[TOK5] entries with a port or brackets are read; anything else ends the search where it was', () => {
  const trust = networks('10.0.0.0/8')
  expect(client(trust, '10.0.0.1', '203.0.113.7:1234')).toBe('203.0.113.7')
  expect(client(trust, '10.0.0.1', '[2001:db8::7]:1234')).toBe('2001:db8::7')
  expect(client(trust, '10.0.0.1', '[2001:db8::7]')).toBe('2001:db8::7')
  expect(client(trust, '10.0.0.1', '::ffff:203.0.113.7')).toBe('203.0.113.7')
  for (const rubbish of ['unknown', '', ',', '_hidden', '1', '0x7f.1', '203.0.113.7 10.0.0.1', '999.1.1.1']) {
    expect(client(trust, '10.0.0.1', `203.0.113.7, ${rubbish}`)).toBe('10.0.0.1')
    expect(client(hops(1), '10.0.0.1', `203.0.113.7, ${rubbish}`)).toBe('10.0.0.1')
  }
})
