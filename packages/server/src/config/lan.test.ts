import { expect, test } from 'bun:test'
import { localNetworks } from './lan.ts'

const entry = (address: string, cidr: string, internal = false) => ({
  ...{ address, cidr, internal, netmask: '', mac: '' },
  ...(address.includes(':') ? { family: 'IPv6' as const, scopeid: 0 } : { family: 'IPv4' as const }),
})

const lan = localNetworks({
  lo: [entry('127.0.0.1', '127.0.0.1/8', true)],
  wlan0: [entry('192.168.1.20', '192.168.1.20/24'), entry('fe80::1', 'fe80::1/64')],
  docker0: [entry('172.17.0.1', '172.17.0.1/16')],
  eth0: [entry('8.8.4.4', '8.8.4.4/24')],
  wwan0: [entry('100.64.3.4', '100.64.3.4/10')],
})

test('its own addresses are those of local networks: not loopback, and none that is public', () => {
  expect(lan.addresses).toEqual(['192.168.1.20', '172.17.0.1'])
})

test('who is in one of these networks', () => {
  for (const address of ['192.168.1.31', '::ffff:192.168.1.31', '172.17.9.9']) expect(lan.has(address)).toBe(true)
  for (const address of ['192.168.2.31', '8.8.4.5', '100.64.9.9', '127.0.0.1', '::1', 'fe80::2', '', 'phone'])
    expect([address, lan.has(address)]).toEqual([address, false])
})
