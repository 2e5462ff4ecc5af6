import { expect, test } from 'bun:test'
import { createAddressGuard, hostOf, resolveHost } from './addresses.ts'

const forbidden = [
  '127.0.0.1',
  '127.255.255.254',
  '0.0.0.0',
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '169.254.169.254',
  '100.64.0.1',
  '192.0.0.192',
  '100.100.100.200',
  '168.63.129.16',
  '198.18.0.1',
  '203.0.113.7',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:10.0.0.1',
  '::127.0.0.1',
  '::a9fe:a9fe',
  '::ffff:a9fe:a9fe',
  'fe80::1',
  'fe80::1%eth0',
  'fc00::1',
  'fd00:ec2::254',
  'ff02::1',
  '64:ff9b::7f00:1',
  '2002:7f00:1::',
  '2001:0:7f00:1::',
  '2001:db8::1',
]

test('[HOOK4] no request goes anywhere but to the public internet', () => {
  const guard = createAddressGuard([])
  for (const address of forbidden) expect([address, guard.allows(address)]).toEqual([address, false])
  for (const address of ['93.184.215.14', '8.8.8.8', '2606:2800:21f:cb07:6820:80da:af6b:8b2c', '::ffff:8.8.8.8']) {
    expect([address, guard.allows(address)]).toEqual([address, true])
    expect(guard.allowsPlain(address)).toBe(false)
  }
  for (const text of ['', 'localhost', '1', '0x7f.1', '127.1', '2130706433', '0177.0.0.1', '10.0.0.1/8', '[::1]']) {
    expect([text, guard.allows(text)]).toEqual([text, false])
  }
})

test('[HOOK4] RINGWIRE_WEBHOOK_ALLOW opens what it names; without TLS on the machine itself alone', () => {
  const guard = createAddressGuard(['127.0.0.1', '10.1.0.0/16', 'fd00:1::/32'])
  expect(['127.0.0.1', '10.1.255.1', 'fd00:1::5', '::ffff:10.1.0.1'].map(guard.allows)).toEqual([
    true,
    true,
    true,
    true,
  ])
  expect(['127.0.0.2', '10.2.0.1', 'fd00:2::5', '::1'].map(guard.allows)).toEqual([false, false, false, false])
  expect(['127.0.0.1', '10.1.0.1', '127.0.0.2'].map(guard.allowsPlain)).toEqual([true, false, false])
})

test('a URL that writes an address in another way means the address', () => {
  for (const text of ['http://0x7f.1/', 'http://2130706433/', 'http://127.1/', 'http://0177.0.0.1/']) {
    expect(hostOf(new URL(text))).toBe('127.0.0.1')
  }
  expect(hostOf(new URL('http://[::1]:80/'))).toBe('::1')
})

test('a name has all of its addresses, an address is one', async () => {
  expect(await resolveHost('127.0.0.2')).toEqual(['127.0.0.2'])
  expect(await resolveHost('localhost')).toContainAnyValues(['127.0.0.1', '::1'])
})
