import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { createMessageParser } from './envelope.ts'
import { relaySender } from './relay-text.ts'
import { readUsualCandidate } from './usual-candidate.ts'

const parse = createMessageParser()
const sender = relaySender('ann "7"', 'customer')
const call_uuid = '8f14e45f-ceea-467f-9b2d-0a1b2c3d4e5f'
const candidate = { candidate: 'candidate:1 1 udp 2 192.0.2.1 5 typ host', sdpMid: '0', sdpMLineIndex: 0 }
const withFragment = { ...candidate, usernameFragment: 'Yx4k' }
const ofFirefox = {
  candidate: 'candidate:0 1 UDP 2122187007 192.0.2.2 4 typ host',
  sdpMLineIndex: 1,
  sdpMid: '1',
  usernameFragment: 'd8',
}
const event = 'webrtc.ice_candidate'
const written = (data: object, head: object = {}) => JSON.stringify({ event, ...head, data })

/** With a space before it a text means the same, and is read as any other JSON. */
const otherwise = (text: string) => parse(` ${text}`, sender)

describe('[REL4] a candidate as browsers write it', () => {
  test.each([
    written({ call_uuid, candidate }),
    written({ call_uuid, candidate: withFragment }),
    written({ call_uuid, candidate: ofFirefox }),
    written({ call_uuid, candidate: withFragment }, { request_id: "r 'data':" }),
    written({ call_uuid, candidate }, { request_id: 'r1', n: 17 }),
    written(
      { call_uuid, candidate: { ...candidate, candidate: '', sdpMLineIndex: 9_999 } },
      { n: 900_719_925_474_099 },
    ),
  ])('is read by its pattern, and as JSON it is the same: %s', (text) => {
    const usual = readUsualCandidate(text, sender)
    expect(usual).toBeDefined()
    const { data, ...rest } = usual!
    expect(otherwise(text)).toMatchObject({
      kind: 'request',
      request: { ...rest, data: data },
    })
    expect(parse(text, sender)).toEqual({ kind: 'request', request: usual! })
  })

  test.each([
    written({ call_uuid: call_uuid.toUpperCase(), candidate }),
    written({ call_uuid, candidate: null }),
    written({ call_uuid, candidate: { ...candidate, sdpMLineIndex: 65_536 } }),
    written({ call_uuid, candidate: { ...candidate, sdpMLineIndex: -0.5 } }),
    written({ call_uuid, candidate: { ...candidate, sdpMid: 'é' } }),
    written({ call_uuid, candidate: { ...candidate, sdpMid: '"' } }),
    written({ call_uuid, candidate: { ...candidate, sdpMid: null } }),
    written({ call_uuid, candidate, from_user_id: 'eve' }),
    written({ call_uuid, candidate }, { n: 0 }),
    written({ call_uuid, candidate }, { n: 2 ** 53 }),
    written({ call_uuid, candidate }, { request_id: 'r'.repeat(129) }),
    written({ call_uuid, candidate: { ...candidate, candidate: 'c'.repeat(4_097) } }),
    written({ call_uuid, candidate: { ...candidate, sdpMid: 'm'.repeat(256) } }),
    written({ call_uuid, candidate: { ...withFragment, usernameFragment: 'u'.repeat(257) } }),
    `${written({ call_uuid, candidate })} `,
    written({ call_uuid, candidate }).replace('"sdpMLineIndex":0', '"sdpMLineIndex":00'),
    written({ call_uuid, candidate }).replace('"sdpMid":"0"', '"sdpMid":"\u0001"'),
    written({ call_uuid, candidate }).replace('"sdpMid":"0"', '"sdpMid":"0","sdpMid":"1"'),
    written({ call_uuid, candidate }).replace('webrtc.ice', 'webrtc_ice'),
  ])('anything else is not: %s', (text) => {
    expect(readUsualCandidate(text, sender)).toBeUndefined()
  })

  test('whatever the pattern takes means the same as JSON', () => {
    const pieces = /"[^"]*"|\d+|[{}[\],:]/g
    const tokens = [...written({ call_uuid, candidate: withFragment }, { request_id: 'r1', n: 17 }).match(pieces)!]
    const strange = fc.oneof(
      fc.constantFrom(
        '""',
        '"\\u0000"',
        '"\\n"',
        '"é"',
        '"\\\\"',
        '0',
        '01',
        '-1',
        '1e3',
        'null',
        '{}',
        '[]',
        '',
        ' ',
        ',',
      ),
      fc.string({ maxLength: 6 }).map((text) => JSON.stringify(text)),
      fc.nat().map(String),
      fc.constantFrom(...tokens),
    )
    const changed = fc
      .array(fc.tuple(fc.nat(tokens.length - 1), strange, fc.boolean()), { maxLength: 2 })
      .map((changes) => {
        const text = [...tokens]
        for (const [at, put, isMore] of changes) text.splice(at, isMore ? 0 : 1, put)
        return text.join('')
      })
    let taken = 0
    fc.assert(
      fc.property(changed, (text) => {
        const usual = readUsualCandidate(text, sender)
        if (usual === undefined) return
        taken += 1
        const { data, ...rest } = usual
        const other = otherwise(text)
        expect(other).toMatchObject({ kind: 'request', request: { ...rest, data: data } })
        expect(JSON.parse(usual.passedOn!).data).toEqual({
          ...JSON.parse(text).data,
          from_user_id: 'ann "7"',
          from_role: 'customer',
        })
      }),
      { numRuns: 3_000 },
    )
    expect(taken).toBeGreaterThan(100)
  })
})
