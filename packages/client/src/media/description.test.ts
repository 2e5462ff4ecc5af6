import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { fingerprintOf, isAnswerTo, originOf, ufragOf, ufragsOf, withRole } from './description.ts'

const sdp = [
  'v=0',
  'o=- 4611731400430051336 2 IN IP4 127.0.0.1',
  'm=audio 9 UDP/TLS/RTP/SAVPF 111',
  'a=ice-ufrag:aBcD',
  'a=fingerprint:sha-256 AB:CD',
  'm=video 9 UDP/TLS/RTP/SAVPF 96',
  'a=ice-ufrag:aBcD',
  'a=fingerprint:sha-256 AB:CD',
  '',
].join('\r\n')

test('a description tells its connection by the fingerprint, wherever it stands and however it is written', () => {
  expect(fingerprintOf(sdp)).toBe('sha-256 AB:CD')
  expect(fingerprintOf(sdp.replaceAll('\r\n', '\n').toLowerCase())).toBe(fingerprintOf(sdp))
  expect(fingerprintOf('v=0\r\n')).toBe('')
})

const hex = fc.uint8Array({ minLength: 1, maxLength: 64 }).map((bytes) => Buffer.from(bytes).toString('hex'))
const hashes = hex.map((text) => text.match(/../g)!.join(':'))
const algorithms = fc.constantFrom('sha-1', 'sha-256', 'sha-384', 'sha-512', 'x')
const spaces = fc.constantFrom(' ', '  ', '\t', ' \t ')
const ends = fc.constantFrom('\r\n', '\n', '\r')
const otherLines = fc.array(
  fc
    .stringMatching(/^[ -~]{0,40}$/)
    .filter((line) => !/^a=fingerprint:/i.test(line))
    .map((line) => line || 'v=0'),
  { maxLength: 8 },
)
/** The same text with some letters in the other case. */
const anyCase = (text: string) =>
  fc
    .array(fc.boolean(), { minLength: text.length, maxLength: text.length })
    .map((upper) => [...text].map((char, i) => (upper[i] ? char.toUpperCase() : char.toLowerCase())).join(''))
const lineOf = (algorithm: string, hash: string) =>
  fc
    .tuple(anyCase(`a=fingerprint:${algorithm}`), spaces, anyCase(hash), fc.constantFrom('', ' ', '\t'))
    .map((parts) => parts.join(''))
const amid = (own: readonly string[], others: readonly string[], at: number, end: string) =>
  [...others.slice(0, at), ...own, ...others.slice(at)].join(end) + end

test('[SAS1] one fingerprint is read in any case, among any lines, with any line ends and as often as it is there', () => {
  const cases = fc.tuple(algorithms, hashes).chain(([algorithm, hash]) => {
    const lines = fc.array(lineOf(algorithm, hash), { minLength: 1, maxLength: 4 })
    return fc.tuple(fc.constant(`${algorithm} ${hash.toUpperCase()}`), lines, otherLines, fc.nat(8), ends)
  })
  fc.assert(
    fc.property(cases, ([expected, lines, others, at, end]) => {
      expect(fingerprintOf(amid(lines, others, at, end))).toBe(expected)
    }),
  )
})

test('[SAS1] several different fingerprints are refused, and the error names none of them', () => {
  const one = fc.tuple(algorithms, hashes)
  const cases = fc
    .tuple(one, one)
    .filter(([a, b]) => `${a}` !== `${b}`)
    .chain(([a, b]) => fc.tuple(fc.tuple(lineOf(...a), lineOf(...b)), otherLines, fc.nat(8), ends))
  fc.assert(
    fc.property(cases, ([lines, others, at, end]) => {
      expect(() => fingerprintOf(amid(lines, others, at, end))).toThrow(/^A description has several fingerprints$/)
    }),
  )
})

test('[SAS1] whatever else stands in the line makes another fingerprint', () => {
  for (const more of ['AB:CD:00', 'AB:CD 00', 'AB-CD', '"AB:CD"', 'AB:CD;x', '']) {
    expect(() => fingerprintOf(`${sdp}a=fingerprint:sha-256 ${more}\r\n`), more).toThrow('several')
  }
  expect(() => fingerprintOf(`${sdp}a=fingerprint:sha-512 AB:CD\r\n`)).toThrow('several')
  expect(() => fingerprintOf(`${sdp}a=fingerprint:AB:CD\r\n`)).toThrow('several')
})

test('[SAS1] any text at all is read or refused', () => {
  const wild = fc.array(
    fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\r\n', 'a=fingerprint:', 'sha-256 ', 'AB:')),
  )
  fc.assert(
    fc.property(wild, (parts) => {
      const text = parts.join('')
      try {
        expect(fingerprintOf(text).split('\n')).toHaveLength(1)
      } catch (error) {
        expect(String(error)).toBe('Error: A description has several fingerprints')
      }
    }),
  )
})

test('ICE user fragments of descriptions and candidates', () => {
  expect(new Set(ufragsOf(sdp))).toEqual(new Set(['aBcD']))
  expect(ufragOf({ candidate: 'candidate:1 1 udp 1 127.0.0.1 9 typ host', usernameFragment: 'xy' })).toBe('xy')
  expect(ufragOf({ candidate: 'candidate:1 1 udp 1 127.0.0.1 9 typ host generation 0 ufrag zz network-id 1' })).toBe(
    'zz',
  )
  expect(ufragOf({ candidate: 'candidate:1 1 udp 1 127.0.0.1 9 typ host' })).toBeUndefined()
})

test('an answer belongs to the offer that it names, and to any where it names none', () => {
  expect(originOf(sdp)).toBe('4611731400430051336 2')
  expect(originOf('')).toBe(' ')
  expect(isAnswerTo({ type: 'answer', sdp, answers: '4611731400430051336 2' }, sdp)).toBe(true)
  expect(isAnswerTo({ type: 'answer', sdp, answers: '4611731400430051336 1' }, sdp)).toBe(false)
  expect(isAnswerTo({ type: 'answer', sdp }, sdp)).toBe(true)
})

test('a later offer names the role that this side has, a first one leaves it open', () => {
  const of = (role: string) => ({ sdp: `v=0\r\na=setup:${role}\r\n` }) as RTCSessionDescription
  const offer = 'v=0\r\na=setup:actpass\r\nm=video\r\na=setup:actpass\r\n'
  const roles = [
    [null, null],
    [of('active'), of('actpass')],
    [of('passive'), of('actpass')],
    [of('actpass'), of('active')],
    [of('actpass'), of('passive')],
  ] as const
  const found = roles.map(([currentLocalDescription, currentRemoteDescription]) => {
    const sent = withRole(offer, { currentLocalDescription, currentRemoteDescription })
    return [...new Set(sent.match(/(?<=a=setup:)\w+/g))].join()
  })
  expect(found).toEqual(['actpass', 'active', 'passive', 'passive', 'active'])
})
