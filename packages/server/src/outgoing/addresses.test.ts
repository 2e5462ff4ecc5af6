import { expect, test } from 'bun:test'
import { createSocket } from 'node:dgram'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { startProcess } from '@ringwire/testkit/process'
import fc from 'fast-check'
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
  '2606:2800:21f:cb07:0:5efe:7f00:1',
  '2606:2800:21f:cb07:200:5efe:a00:1',
  'fe80::5efe:10.0.0.1',
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

/** Address blocks of the IANA registries that are not public unicast: special-purpose, multicast, and IPv6 outside 2000::/3. */
const specialIPv4 = [
  '0.0.0.0/8 0.0.0.0/32 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.0.0/29',
  '192.0.0.8/32 192.0.0.9/32 192.0.0.10/32 192.0.0.170/32 192.0.0.171/32 192.0.2.0/24 192.31.196.0/24 192.52.193.0/24',
  '192.88.99.0/24 192.88.99.2/32 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24',
  '224.0.0.0/4 240.0.0.0/4 255.255.255.255/32',
].flatMap((line) => line.split(' '))
const specialIPv6 = [
  '::1/128 ::/128 ::/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 100:0:0:1::/64 2001::/23 2001::/32 2001:1::1/128',
  '2001:1::2/128 2001:1::3/128 2001:2::/48 2001:3::/32 2001:4:112::/48 2001:10::/28 2001:20::/28 2001:30::/28',
  '2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20 5f00::/16 fc00::/7 fe80::/10 fec0::/10 ff00::/8',
  '::/8 100::/8 200::/7 400::/6 800::/5 1000::/4 4000::/3 6000::/3 8000::/3 a000::/3 c000::/3 e000::/4 f000::/5 f800::/6 fe00::/9',
].flatMap((line) => line.split(' '))

const widthOf = (text: string) => (text.includes(':') ? 128n : 32n)
/** Without the library that is tested. */
function numberOf(text: string): bigint {
  if (!text.includes(':')) return text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n)
  const [head = '', tail] = text.split('::')
  const read = (half = '') => half.split(':').filter((part) => part !== '')
  const [before, after] = [read(head), read(tail)]
  const zeros = Array<string>(8 - before.length - after.length).fill('0')
  return [...before, ...zeros, ...after].reduce((sum, part) => sum * 65_536n + BigInt(`0x${part}`), 0n)
}
function textOf(value: bigint, width: bigint): string {
  const size = width === 32n ? 8n : 16n
  const parts = Array.from(
    { length: Number(width / size) },
    (_, n) => (value >> (width - size * BigInt(n + 1))) & ((1n << size) - 1n),
  )
  return width === 32n ? parts.join('.') : parts.map((part) => part.toString(16)).join(':')
}
function blockOf(text: string): { first: bigint; last: bigint; width: bigint } {
  const [address = '', bits = ''] = text.split('/')
  const width = widthOf(address)
  const first = numberOf(address)
  return { first, last: first + (1n << (width - BigInt(bits))) - 1n, width }
}
const blocks = [...specialIPv4, ...specialIPv6].map(blockOf)
const isSpecial = (value: bigint, width: bigint) =>
  blocks.some((block) => block.width === width && value >= block.first && value <= block.last)
/** The half of an IPv6 address that begins with 0000:5efe, 0100:5efe, 0200:5efe or 0300:5efe. */
const isIsatap = (value: bigint) => ((value >> 32n) & 0xfcff_ffffn) === 0x5efen

test('[HOOK4] the first and the last address of every special block are refused', () => {
  const guard = createAddressGuard([])
  for (const { first, last, width } of blocks) {
    for (const value of [first, last, (first + last) / 2n]) {
      const address = textOf(value, width)
      expect([address, guard.allows(address)]).toEqual([address, false])
    }
  }
})

test('[HOOK4] property: what is allowed is public unicast, and all of that is', () => {
  const guard = createAddressGuard([])
  const anywhere = (width: bigint) => fc.bigInt(0n, (1n << width) - 1n)
  // Most of IPv6 is outside 2000::/3.
  const unicast = anywhere(125n).map((low) => (1n << 125n) | low)
  const isatap = fc
    .tuple(anywhere(61n), fc.integer({ min: 0, max: 3 }), anywhere(32n))
    .map(([prefix, flags, ipv4]) => (1n << 125n) | (prefix << 64n) | (BigInt(flags) << 56n) | (0x5efen << 32n) | ipv4)
  const beside = fc.constantFrom(...blocks.filter(({ width }) => width === 128n)).map(({ last }) => last + 1n)
  const ipv6 = fc.oneof(anywhere(128n), unicast, isatap, beside).map((value) => value & ((1n << 128n) - 1n))
  fc.assert(
    fc.property(ipv6, (value) => {
      const isMapped = value >> 32n === 0xffffn
      if (!isMapped) expect(guard.allows(textOf(value, 128n))).toBe(!isSpecial(value, 128n) && !isIsatap(value))
    }),
    { numRuns: 2_000 },
  )
  fc.assert(
    fc.property(anywhere(32n), (value) => {
      const isAllowed = !isSpecial(value, 32n) && textOf(value, 32n) !== '168.63.129.16'
      expect(guard.allows(textOf(value, 32n))).toBe(isAllowed)
      // An IPv4-mapped text means the same address. The IPv4-compatible form leads nowhere.
      expect(guard.allows(textOf((0xffffn << 32n) | value, 128n))).toBe(isAllowed)
      expect(guard.allows(textOf(value, 128n))).toBe(false)
    }),
    { numRuns: 2_000 },
  )
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

/** Asks for names that nobody answers for, then does what has to go on meanwhile; says what is over, in that order. */
const besideSilence = `
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { resolveHost } from ${JSON.stringify(join(import.meta.dir, 'addresses.ts'))}
const say = (what) => () => console.log(what)
const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
for (let n = 0; n < ${2 * availableParallelism()}; n++) resolveHost('silent' + n + '.example').finally(say('silence')).catch(() => {})
await Promise.all([
  resolveHost('localhost').then(say('a name')),
  readFile('/etc/hosts').then(say('a file')),
  new Promise((resolve) => connect(server.port, 'localhost', resolve)).then(say('a connection')),
])
process.exit()
`

// It needs root on Linux, to give a process a name server of its own.
test('[HOOK4] names whose name servers are silent hold up no other name, no file and no connection', async () => {
  const silent = createSocket('udp4')
  await new Promise<void>((resolve) => silent.bind(53, '127.53.53.53', resolve))
  const directory = mkdtempSync(join(tmpdir(), 'ringwire-names-'))
  try {
    const [settings, program] = [join(directory, 'resolv.conf'), join(directory, 'beside-silence.mjs')]
    writeFileSync(settings, 'nameserver 127.53.53.53\n')
    writeFileSync(program, besideSilence)
    const script = 'mount --bind "$1" /etc/resolv.conf; shift; exec "$@"'
    const command = ['sh', '-ec', script, 'sh', settings, process.execPath, program]
    const child = startProcess(['unshare', '--mount', '--propagation', 'private', '--', ...command])
    expect([await child.exited, child.err]).toEqual([0, ''])
    expect(child.out.trim().split('\n').sort()).toEqual(['a connection', 'a file', 'a name'])
  } finally {
    silent.close()
    rmSync(directory, { recursive: true, force: true })
  }
}, 240_000)
