import { expect, test } from 'bun:test'
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

test('a description tells its connection by the fingerprints, wherever they stand and however they are written', () => {
  expect(fingerprintOf(sdp)).toBe('sha-256 ab:cd')
  expect(fingerprintOf(sdp.replaceAll('\r\n', '\n').toLowerCase())).toBe(fingerprintOf(sdp))
  expect(fingerprintOf(sdp.replace('AB:CD', 'EF:01'))).toBe('sha-256 ab:cd sha-256 ef:01')
  expect(fingerprintOf('v=0\r\n')).toBe('')
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
