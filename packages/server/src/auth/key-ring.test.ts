import { describe, expect, test } from 'bun:test'
import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'
import { publicJwks } from '../config/signing-key.ts'
import { createKeyRing } from './key-ring.ts'
import { createRingTickets } from './ring-ticket.ts'
import { createTokens, type TokenInput } from './tokens.ts'

const ed = generateKeyPairSync('ed25519').privateKey
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const secret = Buffer.alloc(32, 1)
const ring = [
  { kid: 'ed', key: ed },
  { kid: 'ec', key: ec },
  { kid: 'hs', key: secret },
]
const algorithms = { ed: 'EdDSA', ec: 'ES256', hs: 'HS256' } as const
const start = Date.UTC(2026, 0, 1)
const now = () => start
const input: TokenInput = {
  participant: { product: 'shop', role: 'customer', userId: 'ann' },
  displayName: 'Ann',
  contextType: 'order',
  contextId: '17',
  allowedPeerRoles: ['agent'],
}
const tokens = createTokens({ secrets: ring, ttlS: 3600, now })
const invalid = { ok: false, expired: false } as const

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const decode = (part: string | undefined) => JSON.parse(Buffer.from(part ?? '', 'base64url').toString())
const bodyOf = (header: object) => `${encode({ typ: 'JWT', ...header })}.${issued.ed.split('.')[1]}`
const withSignature = (body: string, signature: Uint8Array) => `${body}.${Buffer.from(signature).toString('base64url')}`
const bytesOf = (text: string) => Buffer.from(text)

/** A good token of each key. */
const issued = Object.fromEntries(
  ring.map(({ kid, key }) => [kid, createTokens({ secrets: [{ kid, key }], ttlS: 3600, now }).issue(input).token]),
) as Record<keyof typeof algorithms, string>

const byHand = {
  ed: (header: object, key: KeyObject = ed) => withSignature(bodyOf(header), sign(null, bytesOf(bodyOf(header)), key)),
  ec: (header: object, key: KeyObject = ec, dsaEncoding: 'ieee-p1363' | 'der' = 'ieee-p1363', hash = 'sha256') =>
    withSignature(bodyOf(header), sign(hash, bytesOf(bodyOf(header)), { key, dsaEncoding })),
  hs: (header: object, key: Uint8Array | string = secret) =>
    withSignature(bodyOf(header), createHmac('sha256', key).update(bodyOf(header)).digest()),
}
const edHeader = { alg: 'EdDSA', kid: 'ed' }
const ecHeader = { alg: 'ES256', kid: 'ec' }
const hsHeader = { alg: 'HS256', kid: 'hs' }

describe('[KEY1] a ring of keys of all kinds', () => {
  test('the first signs with its own algorithm, all verify, one that was taken out does not', () => {
    for (const [index, { kid }] of ring.entries()) {
      const others = ring.filter((key) => key.kid !== kid)
      const own = createTokens({ secrets: [ring[index]!, ...others], ttlS: 3600, now })
      const { token } = own.issue(input)
      expect(decode(token.split('.')[0])).toEqual({ alg: algorithms[kid as 'ed'], typ: 'JWT', kid })
      expect([own.verify(token).ok, tokens.verify(token).ok]).toEqual([true, true])
      expect(createTokens({ secrets: others, ttlS: 3600, now }).verify(token)).toEqual(invalid)
    }
  })

  test('the signature is that of the standard, and its bytes are checked with the public key alone', () => {
    for (const [kid, key, hash] of [['ed', ed, null] as const, ['ec', ec, 'sha256'] as const]) {
      const [head, body, signature = ''] = issued[kid].split('.')
      const bytes = Buffer.from(signature, 'base64url')
      expect(bytes).toHaveLength(64)
      const options = { key: createPublicKey(key), dsaEncoding: 'ieee-p1363' } as const
      expect(verify(hash, bytesOf(`${head}.${body}`), options, bytes)).toBe(true)
    }
  })

  test('what these tests sign by hand is good, so the bad ones are bad for their reason', () => {
    for (const token of [byHand.ed(edHeader), byHand.ec(ecHeader), byHand.hs(hsHeader)]) {
      expect(tokens.verify(token).ok).toBe(true)
    }
  })

  test('[TICK1] ring tickets are signed and read with every kind of key', () => {
    const call = { product: 'shop', callUuid: '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55', ringExpiresAt: start + 45_000 }
    const all = createRingTickets({ secrets: ring, now })
    for (const key of ring) {
      const ticket = createRingTickets({ secrets: [key], now }).sign(call, input.participant, 'phone')
      expect(all.verify(ticket)).toMatchObject({ callUuid: call.callUuid, deviceId: 'phone' })
      expect(tokens.verify(ticket)).toEqual(invalid)
    }
  })
})

describe('[KEY1] [TOK2] the algorithm is that of the key, never what a token says', () => {
  const refused = (token: string) => expect([token, tokens.verify(token)]).toEqual([token, invalid])
  const publicTexts = [ed, ec].flatMap((key) => {
    const open = createPublicKey(key)
    const pem = open.export({ format: 'pem', type: 'spki' }) as string
    const jwk = open.export({ format: 'jwk' })
    const der = open.export({ format: 'der', type: 'spki' })
    const point = Buffer.from(jwk.x ?? '', 'base64url')
    return [pem, pem.trim(), `${pem.trim()}\r\n`, JSON.stringify(jwk), jwk.x ?? '', der, point]
  })
  const documents = publicJwks(ring).keys.map((jwk) => JSON.stringify(jwk))

  test('HS256 with a public key as the secret, in each form that it is published in', () => {
    for (const kid of ['ed', 'ec', 'hs', 'none']) {
      for (const text of [...publicTexts, ...documents]) refused(byHand.hs({ alg: 'HS256', kid }, text))
    }
  })

  test('no algorithm, and no signature', () => {
    for (const kid of Object.keys(algorithms)) {
      for (const alg of ['none', 'None', 'NONE', '', null, undefined, ['none']]) {
        refused(`${bodyOf({ alg, kid })}.`)
        refused(bodyOf({ alg, kid }))
        for (const token of Object.values(issued)) refused(`${bodyOf({ alg, kid })}.${token.split('.')[2]}`)
      }
    }
  })

  test('the algorithm of another key of the ring, signed with that key', () => {
    for (const [name, signed] of Object.entries(byHand)) {
      const { alg } = { ed: edHeader, ec: ecHeader, hs: hsHeader }[name] ?? edHeader
      for (const kid of Object.keys(algorithms)) if (kid !== name) refused(signed({ alg, kid }))
    }
  })

  test('a header that says another algorithm over a signature of the key itself', () => {
    for (const alg of ['HS256', 'ES256', 'ES384', 'ES512', 'RS256', 'PS256', 'none', 'eddsa', 'Ed25519', undefined]) {
      refused(byHand.ed({ ...edHeader, alg }))
      if (alg !== 'ES256') refused(byHand.ec({ ...ecHeader, alg }))
    }
  })

  test('swapped, unknown and missing kids, and a key that the token brings along', () => {
    const stranger = generateKeyPairSync('ed25519').privateKey
    const jwk = createPublicKey(stranger).export({ format: 'jwk' })
    for (const kid of ['ec', 'hs', 'x', '', 1, null, undefined, '__proto__']) refused(byHand.ed({ alg: 'EdDSA', kid }))
    refused(byHand.ed(edHeader, stranger))
    refused(byHand.ed({ ...edHeader, jwk }, stranger))
    refused(byHand.ed({ alg: 'EdDSA', jwk }, stranger))
    refused(byHand.ed({ ...edHeader, jku: 'http://127.0.0.1:9/jwks.json' }, stranger))
    const two = [
      { kid: 'one', key: ed },
      { kid: 'two', key: stranger },
    ]
    const swapped = createTokens({ secrets: two, ttlS: 3600, now })
    expect(swapped.verify(byHand.ed({ alg: 'EdDSA', kid: 'one' })).ok).toBe(true)
    expect(swapped.verify(byHand.ed({ alg: 'EdDSA', kid: 'two' }))).toEqual(invalid)
  })

  test('keys of other curves', () => {
    for (const [namedCurve, hash] of [['P-384', 'sha384'] as const, ['P-521', 'sha512'] as const]) {
      const other = generateKeyPairSync('ec', { namedCurve }).privateKey
      for (const alg of ['ES256', 'ES384', 'ES512']) {
        refused(byHand.ec({ alg, kid: 'ec' }, other, 'ieee-p1363', hash))
        refused(byHand.ec({ alg, kid: 'ec' }, other, 'ieee-p1363', 'sha256'))
      }
      expect(() => createKeyRing([{ kid: 'x', key: other }])).toThrow('signs no token')
    }
    refused(byHand.ec({ alg: 'EdDSA', kid: 'ed' }))
    refused(byHand.ed({ alg: 'ES256', kid: 'ec' }))
    refused(byHand.ec(ecHeader, ec, 'ieee-p1363', 'sha384'))
  })

  test('signatures of another length or form, and those that hold for everything where they are not looked at', () => {
    refused(byHand.ec(ecHeader, ec, 'der'))
    const lengths = [1, 31, 32, 63, 65, 70, 72, 96, 128, 1000]
    for (const header of [edHeader, ecHeader]) {
      const good = Buffer.from((header === edHeader ? byHand.ed : byHand.ec)(header).split('.')[2] ?? '', 'base64url')
      for (const length of lengths) {
        refused(
          withSignature(
            bodyOf(header),
            good.subarray(0, length).length < 64
              ? good.subarray(0, length)
              : Buffer.concat([good, good, good]).subarray(0, length),
          ),
        )
        refused(withSignature(bodyOf(header), Buffer.alloc(length)))
        refused(withSignature(bodyOf(header), Buffer.alloc(length, 0xff)))
      }
      for (const bytes of [Buffer.alloc(64), Buffer.alloc(64, 0xff)]) refused(withSignature(bodyOf(header), bytes))
      for (let at = 0; at < 64; at++) {
        const changed = Buffer.from(good)
        changed[at] = (changed[at] ?? 0) ^ 1
        refused(withSignature(bodyOf(header), changed))
      }
    }
    // r = 0 and s = 0 are what accepts anything where they are not refused (CVE-2022-21449).
    const order = Buffer.from('ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551', 'hex')
    for (const r of [Buffer.alloc(32), order]) {
      for (const s of [Buffer.alloc(32), order]) refused(withSignature(bodyOf(ecHeader), Buffer.concat([r, s])))
    }
  })

  test('a payload that was changed under a signature', () => {
    for (const token of Object.values(issued)) {
      const [head, body = '', signature] = token.split('.')
      const forged = encode({ ...decode(body), role: 'admin' })
      refused(`${head}.${forged}.${signature}`)
    }
  })

  test('what is nearly a token that a secret signed, under the header of this service', () => {
    const [head = '', body = '', signature = ''] = issued.hs.split('.')
    const good = Buffer.from(signature, 'base64url')
    for (let at = 0; at < good.length; at++) {
      const changed = Buffer.from(good)
      changed[at] = (changed[at] ?? 0) ^ 1
      refused(withSignature(`${head}.${body}`, changed))
    }
    for (const length of [0, 1, 31]) refused(withSignature(`${head}.${body}`, good.subarray(0, length)))
    refused(withSignature(`${head}.${body}`, Buffer.concat([good, good])))
    for (const odd of ['=', ' ', '\n', '+', '.', 'é']) {
      refused(`${issued.hs}${odd}`)
      refused(`${odd}${issued.hs}`)
      refused(`${head}.${body}${odd}.${signature}`)
    }
    for (const text of [head, `${head}.`, `${head}..`, `${head}.${body}`, `${head}.${body}.`, `${head}..${signature}`])
      refused(text)
    // The last letter has two bits that no byte needs.
    const last = (letter: number) => `${issued.hs.slice(0, -1)}${letters[letter]}`
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const same = letters.indexOf(issued.hs.at(-1) ?? '')
    for (const bits of [1, 2, 3]) refused(last(same ^ bits))
    const signed = (payload: string) =>
      withSignature(`${head}.${payload}`, createHmac('sha256', secret).update(`${head}.${payload}`).digest())
    for (const value of [null, [], 'text', 1]) refused(signed(encode(value)))
    refused(signed(Buffer.from('{').toString('base64url')))
    refused(withSignature(head, createHmac('sha256', secret).update(head).digest()))
    expect(tokens.verify(signed(body)).ok).toBe(true)
  })

  test('one token leaves nothing for the next, though all are read into the same memory', () => {
    const own = createTokens({ secrets: [{ kid: 'hs', key: secret }], ttlS: 3600, now })
    const nameOf = (token: string) => {
      const verified = own.verify(token)
      return verified.ok ? verified.claims.displayName : undefined
    }
    const names = ['Ann', 'é'.repeat(9_000), 'B', '💡'.repeat(300), '']
    const all = names.map((displayName) => own.issue({ ...input, displayName }).token)
    for (const order of [all, all.toReversed()])
      expect(order.map(nameOf)).toEqual(order === all ? names : names.toReversed())
    for (const token of all) {
      // What is left of the good one just before would make it whole.
      for (const odd of ['é', '', 'éé', '💡']) {
        expect(own.verify(token).ok).toBe(true)
        expect(own.verify(`${token.slice(0, -1)}${odd}`)).toEqual(invalid)
        expect(own.verify(`${token.slice(0, -2)}${odd}`)).toEqual(invalid)
      }
    }
  })
})
