import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import Type from 'typebox'
import { boundedText, fitsBytes, id, isStorable, maxIdBytes, utf8Length, uuid } from './text.ts'
import { createValidator } from './validate.ts'

/** Any sequence of UTF-16 units: half of all pairs of surrogates in it are broken. */
const anyText = fc
  .array(fc.oneof(fc.integer({ min: 0, max: 0xffff }), fc.integer({ min: 0xd7f0, max: 0xe00f })), { maxLength: 40 })
  .map((units) => String.fromCharCode(...units))

/** One character of each length in UTF-8. */
const charactersByBytes = { 1: 'a', 2: 'é', 3: '通', 4: '📞' } as const

/** Text of exactly `bytes` bytes, made of characters of `width` bytes and filled up with single ones. */
function textOfBytes(bytes: number, width: 1 | 2 | 3 | 4): string {
  return charactersByBytes[width].repeat(Math.floor(bytes / width)) + 'a'.repeat(bytes % width)
}

test('utf8Length is what UTF-8 takes, for any text', () => {
  fc.assert(fc.property(anyText, (text) => utf8Length(text) === Buffer.byteLength(text)))
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => utf8Length(text) === Buffer.byteLength(text)))
  for (const broken of ['\ud800', '\udfff', '\ud800é', '\ud800\ud800', '\udc00\ud800', 'a\ud83d']) {
    expect(utf8Length(broken)).toBe(Buffer.byteLength(broken))
  }
})

test('fitsBytes agrees with Buffer.byteLength, for any text and any bound', () => {
  fc.assert(
    fc.property(anyText, fc.nat({ max: 130 }), (text, max) => fitsBytes(text, max) === Buffer.byteLength(text) <= max),
  )
})

test('isStorable is true where UTF-8 gives the same text back, and there is no NUL', () => {
  fc.assert(
    fc.property(
      anyText,
      (text) => isStorable(text) === (Buffer.from(text).toString() === text && !text.includes('\0')),
    ),
  )
})

describe('[WS6] ids are at most 255 bytes of UTF-8', () => {
  const validate = createValidator(Type.Object({ id: id('An id.'), text: boundedText(maxIdBytes, 'A text.') }))
  for (const width of [1, 2, 3, 4] as const) {
    test(`255 and 256 bytes in characters of ${width}`, () => {
      const [whole, over] = [textOfBytes(255, width), textOfBytes(256, width)]
      expect([Buffer.byteLength(whole), Buffer.byteLength(over)]).toEqual([255, 256])
      expect(validate({ id: whole, text: whole }).ok).toBe(true)
      expect(validate({ id: over, text: whole })).toMatchObject({ ok: false, field: 'id' })
      expect(validate({ id: whole, text: over })).toMatchObject({ ok: false, field: 'text' })
    })
  }

  test('an id is not blank; a bounded text may be', () => {
    for (const blank of ['', ' ', '\t\n', '\u00a0\u2003']) {
      expect(validate({ id: blank, text: '' })).toEqual({ ok: false, field: 'id', message: 'must not be blank' })
      expect(validate({ id: 'a', text: blank }).ok).toBe(true)
    }
  })

  test('neither holds NUL or a lone surrogate', () => {
    for (const broken of ['a\0', '\ud800', 'a\udc00b']) {
      expect(validate({ id: broken, text: '' })).toMatchObject({ ok: false, field: 'id' })
      expect(validate({ id: 'a', text: broken })).toMatchObject({ ok: false, field: 'text' })
    }
  })
})

test('[UUID1] a call_uuid comes in any case, and nothing else passes for one', () => {
  const validate = createValidator(Type.Object({ call_uuid: uuid() }))
  const right = '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55'
  fc.assert(fc.property(fc.uuid(), (value) => validate({ call_uuid: value }).ok))
  fc.assert(fc.property(fc.uuid(), (value) => validate({ call_uuid: value.toUpperCase() }).ok))
  for (const wrong of ['', `${right}\n`, ` ${right}`, right.slice(1), `{${right}}`, right.replaceAll('-', '')]) {
    expect(validate({ call_uuid: wrong })).toEqual({ ok: false, field: 'call_uuid', message: 'must be a UUID' })
  }
})
