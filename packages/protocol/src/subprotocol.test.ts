import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { readSubprotocols, subprotocol, webSocketPath } from './subprotocol.ts'

const token = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2ln'

test('[WS1] the names of the interface', () => {
  expect(subprotocol).toBe('jwt')
  expect(webSocketPath).toBe('/v1/ws')
})

describe('[WS1] the subprotocol list carries the token', () => {
  const cases: [string, string | null | undefined, ReturnType<typeof readSubprotocols>][] = [
    ['jwt first', `jwt, ${token}`, { offered: true, token }],
    ['token first', `${token}, jwt`, { offered: true, token }],
    ['no blanks', `jwt,${token}`, { offered: true, token }],
    ['many blanks and a tab', `  jwt  ,\t${token}  `, { offered: true, token }],
    ['empty entries', `,jwt,,${token},`, { offered: true, token }],
    ['jwt alone', 'jwt', { offered: true }],
    ['jwt twice', 'jwt, jwt', { offered: true }],
    ['token alone', token, { offered: false }],
    ['another protocol', 'chat, superchat', { offered: false }],
    ['other case: the literal is jwt', `JWT, ${token}`, { offered: false }],
    ['empty', '', { offered: false }],
    ['blank', ' , ', { offered: false }],
    ['null', null, { offered: false }],
    ['undefined', undefined, { offered: false }],
    ['the first of several tokens', `jwt, ${token}, other`, { offered: true, token }],
  ]
  for (const [name, header, expected] of cases) {
    test(name, () => expect(readSubprotocols(header)).toEqual(expected))
  }
})

test('[WS1] any token comes out as it went in, in either order', () => {
  const anyToken = fc.stringMatching(/^[\w.~+/-]+$/).filter((text) => text !== 'jwt')
  const blanks = fc.stringMatching(/^[ \t]*$/)
  fc.assert(
    fc.property(anyToken, blanks, blanks, fc.boolean(), (value, before, after, first) => {
      const header = first ? `jwt${before},${after}${value}` : `${value}${before},${after}jwt`
      expect(readSubprotocols(header)).toEqual({ offered: true, token: value })
    }),
  )
})

test('[WS1] never throws, for any header', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (header) => typeof readSubprotocols(header).offered === 'boolean'),
  )
})
