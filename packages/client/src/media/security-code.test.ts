import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { block } from '@ringwire/testkit/documents'
import fc from 'fast-check'
import { securityCodeOf } from './security-code.ts'

const described = (sdp: string) => ({ type: 'offer', sdp }) as RTCSessionDescription
const codeOf = (mine: string, theirs: string) =>
  securityCodeOf({ currentLocalDescription: described(mine), currentRemoteDescription: described(theirs) })
const line = (fingerprint: string) => `v=0\r\na=fingerprint:${fingerprint}\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\n`

/** The formula once more, with one large number in place of pieces of the hash. */
function codeByHand(one: string, other: string): string {
  const [a, b] = one < other ? [one, other] : [other, one]
  const digest = createHash('sha512').update(`ringwire-sas-1\n${a}\n${b}`, 'ascii').digest('hex').slice(0, 120)
  let rest = BigInt(`0x${digest}`)
  let code = ''
  for (let group = 0; group < 12; group++) {
    code = `${(rest % 2n ** 40n) % 100_000n}`.padStart(5, '0') + (code && ` ${code}`)
    rest /= 2n ** 40n
  }
  return code
}

interface Vector {
  readonly fingerprints: readonly [string, string]
  readonly security_code: string
}

test('[SAS1] the published test vectors hold, in this code and computed in another way', async () => {
  const vectors = JSON.parse(block('docs/protocol.md', 'json', '- **SAS1 ')) as readonly Vector[]
  expect(vectors.length).toBeGreaterThan(1)
  expect(vectors.some(({ security_code }) => / 0/.test(security_code))).toBe(true)
  for (const { fingerprints, security_code } of vectors) {
    const [one, other] = fingerprints
    expect(codeByHand(...fingerprints)).toBe(security_code)
    expect(await codeOf(line(one), line(other))).toBe(security_code)
    expect(await codeOf(line(other.toLowerCase()), line(one.toLowerCase()))).toBe(security_code)
  }
})

test('[SAS1] both sides have the same code, and any other certificate has another one', async () => {
  const print = fc
    .uint8Array({ minLength: 32, maxLength: 32 })
    .map((bytes) => `sha-256 ${Buffer.from(bytes).toString('hex').toUpperCase().match(/../g)!.join(':')}`)
  await fc.assert(
    fc.asyncProperty(print, print, print, async (a, b, c) => {
      fc.pre(new Set([a, b, c]).size === 3)
      const code = await codeOf(line(a), line(b))
      expect(code).toMatch(/^\d{5}( \d{5}){11}$/)
      expect(code).toBe(codeByHand(a, b))
      expect(await codeOf(line(b), line(a))).toBe(code)
      expect(await codeOf(line(a), line(c))).not.toBe(code)
    }),
  )
})

test('[SAS1] there is no code before both sides have described themselves, nor of several fingerprints', async () => {
  const [a, b] = [line('sha-256 AB'), line('sha-256 CD')]
  expect(await codeOf(a, b)).toBeDefined()
  expect(await codeOf(a, '')).toBeUndefined()
  expect(await codeOf('v=0\r\n', b)).toBeUndefined()
  expect(await codeOf(a, a + b)).toBeUndefined()
  expect(await securityCodeOf({ currentLocalDescription: null, currentRemoteDescription: null })).toBeUndefined()
})

test('[SAS1] a page without crypto.subtle has no code', async () => {
  const { subtle } = crypto
  Object.defineProperty(crypto, 'subtle', { value: undefined, configurable: true })
  try {
    expect(await codeOf(line('sha-256 AB'), line('sha-256 CD'))).toBeUndefined()
  } finally {
    Object.defineProperty(crypto, 'subtle', { value: subtle, configurable: true })
  }
})
