import { expect, test } from 'bun:test'
import { isIP } from 'node:net'
import fc from 'fast-check'
import { relayCandidate, relayDescription, relayOnly } from './relay-only.ts'

/** As Chromium writes them, on a machine with two networks, a STUN and a TURN server. */
const chromium = [
  'v=0',
  'o=- 4611731400430051336 2 IN IP4 127.0.0.1',
  's=-',
  't=0 0',
  'a=group:BUNDLE 0 1',
  'a=extmap-allow-mixed',
  'a=msid-semantic: WMS 5d1f0a3c',
  'm=audio 54609 UDP/TLS/RTP/SAVPF 111 63 9 0 8 13 110 126',
  'c=IN IP4 192.168.1.23',
  'a=rtcp:50123 IN IP4 203.0.113.7',
  'a=candidate:1467250027 1 udp 2122260223 192.168.1.23 54609 typ host generation 0 network-id 1 network-cost 10',
  'a=candidate:842163049 1 udp 1677729535 203.0.113.7 50123 typ srflx raddr 192.168.1.23 rport 54609 generation 0 network-id 1',
  'a=candidate:3745641921 1 udp 41885439 198.51.100.5 61234 typ relay raddr 203.0.113.7 rport 50123 generation 0 network-id 1 network-cost 10',
  'a=candidate:999 1 udp 2122262783 2001:db8::1f 54610 typ host generation 0',
  'a=candidate:344579997 1 tcp 1518280447 192.168.1.23 9 typ host tcptype active generation 0',
  'a=candidate:77 1 udp 2113937151 b6b6a3c2-1f0e-4d5c-9c7e-7a1d5a0d7f3e.local 54609 typ host generation 0',
  'a=end-of-candidates',
  'a=ice-ufrag:u6ZK',
  'a=ice-pwd:pn2sYUOmmk2oHYZu1PY4bVlC',
  'a=ice-options:trickle',
  'a=fingerprint:sha-256 0D:8C:5E:1B:AD:BE:EF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:01:02:03:04:05:06:07:08',
  'a=setup:actpass',
  'a=mid:0',
  'a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level',
  'a=sendrecv',
  'a=rtcp-mux',
  'a=rtpmap:111 opus/48000/2',
  'a=fmtp:111 minptime=10;useinbandfec=1',
  'a=ssrc:1001 cname:4TOk42mSjXCkVIa6',
  'm=video 0 UDP/TLS/RTP/SAVPF 96',
  'c=IN IP4 0.0.0.0',
  'a=rtcp:9 IN IP4 0.0.0.0',
  'a=mid:1',
  'a=inactive',
  'm=video 61234 UDP/TLS/RTP/SAVPF 96',
  'c=IN IP4 198.51.100.5',
  'a=rtcp:61234 IN IP4 198.51.100.5',
  '',
].join('\r\n')

test('[PRIV1] of a description of Chromium relayed candidates stay, and its other addresses become 0.0.0.0', () => {
  const removed = (line: string) => line.startsWith('a=candidate:') && !line.includes('typ relay')
  const expected = chromium
    .split('\r\n')
    .filter((line) => !removed(line))
    .map((line) => {
      if (line.includes('typ relay'))
        return 'a=candidate:3745641921 1 udp 41885439 198.51.100.5 61234 typ relay raddr 0.0.0.0 rport 9 generation 0 network-id 1 network-cost 10'
      return line
        .replace('127.0.0.1', '0.0.0.0')
        .replace('c=IN IP4 192.168.1.23', 'c=IN IP4 0.0.0.0')
        .replace('a=rtcp:50123 IN IP4 203.0.113.7', 'a=rtcp:9 IN IP4 0.0.0.0')
        .replace('m=audio 54609', 'm=audio 9')
    })
  expect(relayDescription(chromium).split('\r\n')).toEqual(expected)
})

test('[PRIV1] once more changes nothing', () => {
  const once = relayDescription(chromium)
  expect(relayDescription(once)).toBe(once)
})

test('[PRIV1] other ways to write an address in a description', () => {
  for (const [line, hidden] of [
    ['c=IN IP6 2001:db8::1', 'c=IN IP6 ::'],
    ['c=IN IP4 224.2.1.1/127', 'c=IN IP4 0.0.0.0/127'],
    ['c=IN IP4 phone.example.com', 'c=IN IP4 0.0.0.0'],
    ['C=in ip4  10.0.0.1', 'C=in ip4  0.0.0.0'],
    ['o=alice 1 1 IN IP6 fe80::1', 'o=alice 1 1 IN IP6 ::'],
    ['a=rtcp:5000 IN IP6 2001:db8::1', 'a=rtcp:9 IN IP6 ::'],
    ['a=remote-candidates:1 10.0.0.1 5000', ''],
    ['a=source-filter: incl IN IP4 * 10.0.0.1', 'a=source-filter: incl IN IP4 0.0.0.0 0.0.0.0'],
    ['a=altc:1 IP6 2001:db8::1 45678', 'a=altc:1 IP6 :: 45678'],
    ['a=x-host:10.0.0.1:5000', 'a=x-host:0.0.0.0:5000'],
    ['a=x-host:fe::1', 'a=x-host:::'],
    ['a=x-host:2001:db8:1:2:3:4:5:6:50000', 'a=x-host:::'],
    ['a=x-host:64:ff9b:0:0:0:0:192.0.2.33', 'a=x-host:::'],
    ['a=X-ip6:2001:db8::1', 'a=X-ip::'],
    ['a=ssrc:1 cname:u@2001:db8::1', 'a=ssrc:1 cname:u@::'],
    ['a=ssrc:1 cname:u@fe80::1%eth0', 'a=ssrc:1 cname:u@::%eth0'],
    ['a=ssrc:1 cname:u@10.0.0.1.', 'a=ssrc:1 cname:u@0.0.0.0.'],
    ['a=rtcp:5000 IN IP4 10.0.0.1 10.0.0.2', 'a=rtcp:9 IN IP4 0.0.0.0 0.0.0.0'],
    ['a=A=CANDIDATE:1 1 udp 1 10.0.0.1 5 typ host', ''],
    [' a=candidate:1 1 udp 1 10.0.0.1 5 typ host', ''],
  ] as const) {
    for (const end of ['\r\n', '\n', '\r']) {
      expect(relayDescription(`v=0${end}${line}${end}s=-${end}`)).toBe(
        `v=0${end}${hidden === '' ? '' : hidden + end}s=-${end}`,
      )
    }
  }
})

test('[PRIV1] a candidate: its related address goes, what else a browser says of it stays', () => {
  const relay =
    'candidate:1 1 udp 41885439 198.51.100.5 61234 typ relay raddr 203.0.113.7 rport 50123 generation 0 ufrag u6ZK'
  const passed = 'candidate:1 1 udp 41885439 198.51.100.5 61234 typ relay raddr 0.0.0.0 rport 9 generation 0 ufrag u6ZK'
  const told = { sdpMid: '0', sdpMLineIndex: 0, usernameFragment: 'u6ZK' }
  expect(relayCandidate({ candidate: relay, ...told, relatedAddress: '203.0.113.7' })).toEqual({
    candidate: passed,
    ...told,
  })
  expect(relayCandidate({ candidate: `a=${relay}` })).toEqual({ candidate: `a=${passed}` })
  expect(relayCandidate({ candidate: '', sdpMid: null })).toEqual({ candidate: '', sdpMid: null })
  const six = 'candidate:1 1 udp 1 2001:db8::5 1 typ relay'
  expect(relayCandidate({ candidate: six })).toEqual({ candidate: `${six} raddr :: rport 9` })
  const telling = relay.replace('generation 0', 'generation 0 x-base 10.0.0.1 raddr 10.0.0.1')
  expect(relayCandidate({ candidate: telling })).toEqual({ candidate: passed })
})

test('[PRIV1] whatever is no relayed candidate is not passed on', () => {
  for (const candidate of [
    'candidate:1 1 udp 1 10.0.0.1 5 typ host',
    'candidate:1 1 udp 1 203.0.113.7 5 typ srflx raddr 10.0.0.1 rport 5',
    'candidate:1 1 udp 1 203.0.113.7 5 typ prflx raddr 10.0.0.1 rport 5',
    'candidate:1 1 udp 1 10.0.0.1 5 typ host typ relay',
    'candidate:1 1 udp 1 10.0.0.1 5 typ host x typ relay',
    'candidate:1 1 udp 1 phone.example.com 5 typ relay',
    'candidate:1 1 udp 1 10.0.0.1 5 typ relay\r\na=candidate:2 1 udp 1 10.0.0.1 5 typ host',
    'candidate:1 1 udp 1 a.local 5 typ host',
    'candidate:10.0.0.1 1 udp 1 198.51.100.5 5 typ relay',
    'candidate:2001:db8::1 1 udp 1 198.51.100.5 5 typ relay',
    'candidate:1 1 10.0.0.1 1 198.51.100.5 5 typ relay',
    'candidate:1',
    'nonsense',
    ' ',
  ]) {
    expect([candidate, relayCandidate({ candidate })]).toEqual([candidate, undefined])
  }
})

test('[PRIV1] a candidate: members that browsers would not say so are not passed on', () => {
  const candidate = 'candidate:1 1 udp 1 198.51.100.5 5 typ relay raddr 0.0.0.0 rport 9'
  const line = { sdpMLineIndex: 0 }
  for (const sdpMid of ['10.0.0.1', 'x10.0.0.1', '2001:db8::1', 'phone.local', 'a b', '', 'x'.repeat(65), {}]) {
    expect(relayCandidate({ candidate, sdpMid, ...line })).toEqual({ candidate, ...line })
  }
  for (const usernameFragment of [{ ip: '10.0.0.1' }, '10.0.0.1', '2001:db8::1', 'abc', null]) {
    expect(relayCandidate({ candidate, usernameFragment, ...line })).toEqual({ candidate, ...line })
  }
  expect(relayCandidate({ candidate, sdpMid: 'audio_1', ...line })).toEqual({ candidate, sdpMid: 'audio_1', ...line })
})

test('[PRIV1] of the data of an event what its schema names is passed on, and nothing beside it', () => {
  const call_uuid = '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55'
  const address = '192.168.1.23'
  const candidate = 'candidate:1 1 udp 1 198.51.100.5 5 typ relay raddr 0.0.0.0 rport 9'
  for (const type of ['offer', 'answer'] as const) {
    for (const more of [
      {},
      { localAddress: address },
      { candidate: null },
      { candidate: 'x' },
      { candidate: { address } },
    ]) {
      const data = {
        call_uuid,
        sdp: { type, sdp: 's=-\r\n', candidates: [{ candidate: `… ${address} typ host` }] },
        ...more,
      }
      expect(relayOnly(`webrtc.${type}`, data)).toEqual({ call_uuid, sdp: { type, sdp: 's=-\r\n' } })
    }
  }
  for (const more of [{}, { localAddress: address }, { sdp: null }, { sdp: {} }, { sdp: { sdp: address } }]) {
    const data = { call_uuid, candidate: { candidate, sdpMid: '0', address }, ...more }
    expect(relayOnly('webrtc.ice_candidate', data)).toEqual({ call_uuid, candidate: { candidate, sdpMid: '0' } })
  }
  const host = candidate.replace('typ relay', 'typ host')
  expect(relayOnly('webrtc.ice_candidate', { call_uuid, candidate: { candidate: host } })).toBeUndefined()
  expect(relayOnly('call.media', { call_uuid, audio: true })).toEqual({ call_uuid, audio: true })
})

// Addresses of nobody's relay, and one of a relay.
const host = fc.oneof(fc.ipV4(), fc.ipV6()).filter((address) => !['0.0.0.0', '::'].includes(address))
const relay = fc.oneof(
  fc.nat(255).map((n) => `198.51.100.${n}`),
  fc.nat(9999).map((n) => `2001:db8:5::${n}`),
)
const port = fc.integer({ min: 1024, max: 65535 })
const family = (address: string) => `IN IP${isIP(address)} ${address}`
const anyLine = fc.oneof(
  fc.tuple(host, port).map(([a, p]) => `a=candidate:1 1 udp 1 ${a} ${p} typ host generation 0`),
  fc.tuple(host, host, port).map(([a, b, p]) => `a=candidate:2 1 udp 1 ${a} ${p} typ srflx raddr ${b} rport ${p}`),
  fc
    .tuple(relay, host, port)
    .map(([a, b, p]) => `a=candidate:3 1 udp 1 ${a} ${p} typ relay raddr ${b} rport ${p} ufrag x`),
  fc.tuple(host, port).map(([a, p]) => `a=rtcp:${p} ${family(a)}`),
  host.map((a) => `c=${family(a)}`),
  host.map((a) => `o=- 1 1 ${family(a)}`),
  fc.tuple(host, port).map(([a, p]) => `a=remote-candidates:1 ${a} ${p}`),
  fc.tuple(host, fc.stringMatching(/^[a-z]{1,8}$/)).map(([a, name]) => `a=${name}:1 ${a} x`),
  fc.constantFrom('s=-', 't=0 0', 'm=audio 9 UDP/TLS/RTP/SAVPF 111', 'a=mid:0', 'a=ice-options:trickle'),
)

test('[PRIV1] property: no address but those of relayed candidates is left, and nothing else is lost', () => {
  fc.assert(
    fc.property(fc.array(anyLine, { maxLength: 30 }), fc.constantFrom('\r\n', '\n'), (lines, end) => {
      const passed = relayDescription(lines.map((line) => line + end).join('')).split(end)
      const candidates = lines.filter((line) => line.includes('typ relay'))
      const relayed = new Set(candidates.map((line) => line.split(' ')[4] ?? ''))
      for (const word of passed.flatMap((line) => line.split(/[ =]/))) {
        if (isIP(word) !== 0 && !['0.0.0.0', '::'].includes(word)) expect([...relayed]).toContain(word)
      }
      const stay = lines.filter((line) => !/candidates?:/.test(line) || line.includes('typ relay'))
      expect(passed.length - 1).toBe(stay.length)
      expect(passed.filter((line) => line.includes('typ relay')).map((line) => line.split(' raddr')[0])).toEqual(
        candidates.map((line) => line.split(' raddr')[0]),
      )
      const plain = /^(s=-|t=0|m=|a=mid:0|a=ice-options:)/
      expect(passed.filter((line) => plain.test(line))).toEqual(lines.filter((line) => plain.test(line)))
    }),
    { numRuns: 500 },
  )
})

// Names and values as clients might make them up: pairs that browsers say, and addresses in all places.
const told = fc.oneof(
  fc.constantFrom(...['generation 0', 'ufrag u6ZK', 'network-id 1', 'network-cost 999', 'tcptype active']),
)
const inWord = fc
  .tuple(host, fc.constantFrom('', ':500', '%eth0', '.', '@x'), fc.constantFrom('', 'u@', 'x-', 'ip6:', 'ip', '['))
  .map(([address, after, before]) => before + address + after)
const forged = fc
  .tuple(fc.oneof(fc.constantFrom('x-base', 'raddr', 'generation', 'ufrag', 'network-id', 'tcptype'), inWord), inWord)
  .map((pair) => pair.join(' '))

test('[PRIV1] property: of the extensions of a relay candidate those stay that browsers say, and no other', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(told, forged), { maxLength: 8 }), told, (pairs, known) => {
      const said = [...pairs, known]
      const passed = relayCandidate({ candidate: `candidate:1 1 udp 1 198.51.100.5 5 typ relay ${said.join(' ')}` })
      const kept = said.filter((pair) => /^(generation|ufrag|network-id|network-cost|tcptype) \w+$/.test(pair))
      const expected = `candidate:1 1 udp 1 198.51.100.5 5 typ relay raddr 0.0.0.0 rport 9 ${kept.join(' ')}`
      expect(passed).toEqual({ candidate: expected })
    }),
  )
})

test('[PRIV1] property: an address inside a longer word is hidden', () => {
  const digits = /[2-9a-f]/i
  fc.assert(
    fc.property(inWord, fc.constantFrom('a=x:1 ', 'a=X-ip6:', 'a=ssrc:1 cname:', 'i='), (word, start) => {
      const addresses = (text: string) => text.match(/(?:\d+\.){3}\d+|[\da-f:]*::[\da-f:.]*|(?:[\da-f]+:){7}[\da-f]+/gi)
      const left = addresses(relayDescription(start + word))
      expect(left?.filter((address) => digits.test(address)) ?? []).toEqual([])
    }),
  )
})
