import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type RelayText, relaySender, relayText } from './relay-text.ts'

const callUuid = '8f14e45f-ceea-467f-9b2d-0a1b2c3d4e5f'
const runs = { numRuns: 500 }
/** A bound for a busy machine, never a pace. */
const patienceMs = 120_000

const sender = relaySender('ann "7"', 'customer')
const end = ',"from_user_id":"ann \\"7\\"","from_role":"customer"}}'
const passedOn = (open: string): RelayText => ({ ok: true, text: `{"event":"webrtc.offer","data":${open}${end}` })

/** With an envelope that no text is written of: what is looked at is the walk, not the short way. */
const walk = (text: string, depth = 1_000) =>
  relayText(text, { event: 'webrtc.offer', data: { call_uuid: callUuid, from_role: 'forged' } }, sender, depth)
const read = (text: string) => relayText(text, JSON.parse(text), sender, 1_000)
const problemOf = (text: string, depth?: number) => {
  const found = walk(text, depth)
  return found.ok ? undefined : found.problem
}
const relay = (...members: readonly string[]) =>
  `{"event":"webrtc.offer","data":{"call_uuid":"${callUuid}"${members.map((member) => `,${member}`).join('')}}}`
const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)

/** One of the ways to write a string: the bits of `choice` say which letters are escapes. */
function written(value: string, choice: number): string {
  const units = [...value].flatMap((letter, at) => {
    if (((choice >>> (at % 31)) & 1) === 0) return [JSON.stringify(letter).slice(1, -1)]
    return Array.from({ length: letter.length }, (_, i) => `\\u${hex(letter.charCodeAt(i))}`)
  })
  return `"${units.join('')}"`
}
const hex = (unit: number) => unit.toString(16).padStart(4, '0')

const numberText = fc.oneof(
  fc.constantFrom('0', '-0', '1.0', '1e400', '-1E+2', '12345678901234567890', '0.10', '1e-7', '5e0'),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
)
const space = fc.constantFrom('', '', '', ' ', '\n', '\t \r\n')
const plainText = fc.string({ unit: 'grapheme', maxLength: 8 }).filter((it) => it.isWellFormed() && !it.includes('\0'))
const keyText = fc.tuple(plainText, fc.nat()).map(([value, choice]) => [value, written(value, choice)] as const)
const stringText = keyText.map(([, text]) => text)
const { json, object } = fc.letrec<{ json: string; object: string; array: string }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.oneof(numberText, stringText, fc.constantFrom('true', 'false', 'null')),
    tie('object'),
    tie('array'),
  ),
  array: fc
    .tuple(space, fc.array(tie('json'), { maxLength: 4 }))
    .map(([gap, items]) => `[${gap}${items.join(`${gap},`)}]`),
  object: fc
    .tuple(space, fc.uniqueArray(fc.tuple(keyText, tie('json')), { selector: ([[key]]) => key, maxLength: 20 }))
    .map(([gap, members]) => `{${gap}${members.map(([[, key], value]) => `${key}${gap}:${value}${gap}`).join(',')}}`),
}))

test(
  '[REL4] what is a JSON object with an object data, as JSON.parse reads it, has no problem of syntax',
  () => {
    const broken = fc.tuple(json, fc.nat(), fc.string({ unit: 'binary', maxLength: 3 })).map(([text, at, piece]) => {
      const cut = at % (text.length + 1)
      return text.slice(0, cut) + piece + text.slice(cut + (at % 3))
    })
    const tricky = fc
      .array(fc.constantFrom(...'{}[]",:\\u0123e+-.truefalsn \t\n\f\x01\x7fé', '\\u00e9', '"a":', '\ud800'), {
        maxLength: 12,
      })
      .map((units) => units.join(''))
    fc.assert(
      fc.property(fc.oneof(json, broken, tricky), (text) => {
        for (const each of [relay(`"x":${text}`), text]) {
          const value = parsed(each)
          const problem = problemOf(each)
          if (isObject(value) && isObject((value as { data?: unknown }).data)) expect(problem).not.toBe('syntax')
          // A key that is there twice may be found before the end.
          else expect(problem).toBeOneOf(['syntax', 'repeated', 'repeated outside'])
        }
      }),
      runs,
    )
  },
  patienceMs,
)

test(
  '[REL4] what comes out is what came in, to the letter',
  () => {
    const members = fc.uniqueArray(fc.tuple(plainText, json), { selector: ([key]) => key, maxLength: 20 })
    fc.assert(
      fc.property(members, space, (list, gap) => {
        const texts = list.map(([key, value]) => `${gap}${JSON.stringify(`x${key}`)}:${gap}${value}`)
        expect(walk(relay(...texts))).toEqual(
          passedOn(`{"call_uuid":"${callUuid}"${texts.map((it) => `,${it}`).join('')}`),
        )
      }),
      runs,
    )
  },
  patienceMs,
)

test(
  '[REL4] a forged origin goes, however it is written, and the rest keeps its words and its order',
  () => {
    const forged = fc
      .tuple(fc.constantFrom('from_user_id', 'from_role'), fc.nat(), json)
      .map(([key, choice, value]): [string, string] => [written(key, choice), value])
    const kept = fc.tuple(
      plainText.map((key) => JSON.stringify(`x${key}`)),
      json,
    )
    const members = fc.uniqueArray(fc.oneof(forged, kept), { selector: ([key]) => JSON.parse(key), maxLength: 8 })
    const uuid = fc
      .tuple(fc.constantFrom(callUuid, callUuid.toUpperCase()), fc.constantFrom(0, 5))
      .map(([it, choice]) => written(it, choice))
    fc.assert(
      fc.property(members, uuid, fc.nat(), (list, named, at) => {
        const all = list.map(([key, value]) => `${key}:${value}`)
        all.splice(at % (all.length + 1), 0, `"call_uuid":${named}`)
        const found = walk(`{"event":"webrtc.offer","data":{${all.join(',')}}}`)
        const isKept = (member: string) => !/^"(from_user_id|from_role)"$/.test(JSON.stringify(keyOf(member)))
        const expected = all
          .filter(isKept)
          .map((member) => (keyOf(member) === 'call_uuid' ? `"call_uuid":"${callUuid}"` : member))
        expect(found).toEqual(passedOn(`{${expected.join(',')}`))
      }),
      runs,
    )
  },
  patienceMs,
)

const keyOf = (member: string) => Object.keys(JSON.parse(`{${member}}`) as object)[0]

test(
  '[REL4] a key that is there twice is found, at any level, however it is written',
  () => {
    const choices = fc.tuple(fc.nat(), fc.nat())
    const twice = fc
      .tuple(plainText, choices, fc.array(json, { maxLength: 30 }), fc.nat())
      .map(([key, [first, second], values, at]) => {
        const members = values.map((value, i) => `"${key.length}-${i}":${value}`)
        members.splice(at % (members.length + 1), 0, `${written(key, first)}:1`)
        return `{${members.join(',')},${written(key, second)}:2}`
      })
    fc.assert(
      fc.property(twice, fc.constantFrom('', '[', '{"a":', '[0,{"b":[{"a":{},"b":'), (text, before) => {
        const after = [...before].reverse().map((unit) => ({ '[': ']', '{': '}' })[unit] ?? '')
        expect(problemOf(relay(`"x":${before}${text}${after.join('')}`))).toBe('repeated')
      }),
      runs,
    )
  },
  patienceMs,
)

test(
  '[REL4] the short way gives what the walk gives',
  () => {
    const data = fc.oneof(
      object.map((text) => JSON.parse(text) as object),
      fc.dictionary(
        fc.constantFrom('sdp', 'from_role', '__proto__', 'data', '7', 'x"data'),
        fc.jsonValue({ maxDepth: 2 }),
      ),
    )
    const more = fc.dictionary(fc.constantFrom('x', 'data2', '{"', '\\"data'), fc.jsonValue({ maxDepth: 2 }))
    const uuid = fc.constantFrom(callUuid, callUuid.toUpperCase())
    fc.assert(
      fc.property(data, more, more, uuid, (members, before, after, call_uuid) => {
        const all = { ...before, event: 'webrtc.offer', data: { ...members, call_uuid }, ...after }
        const text = JSON.stringify(all)
        const found = read(text)
        expect(found).toEqual(walk(text))
        expect(found.ok).toBe(true)
      }),
      runs,
    )
  },
  patienceMs,
)

test('[REL4] a text that is almost what JSON.stringify writes takes the walk', () => {
  for (const text of [
    relay('"a":1,"a":1'),
    relay('"a":{"b":{},"b":{}}'),
    '{"event":"webrtc.offer","event":"webrtc.offer","data":{"call_uuid":"8f14e45f-ceea-467f-9b2d-0a1b2c3d4e5f"}}',
    `{"data":{},"event":"webrtc.offer","data":{"call_uuid":"${callUuid}"}}`,
  ]) {
    expect(read(text)).toMatchObject({ ok: false })
  }
})

describe('[REL4] text that no store keeps', () => {
  test('is found in values and in keys, raw and as an escape', () => {
    const bad = [
      '\\u0000',
      '\\ud800',
      '\\uDC00',
      '\\ud800\\u0041',
      '\\ud800x',
      '\\udc00\\ud800',
      '\ud800',
      '\udfff',
      '\\ud83d\\ud83d\\ude00',
    ]
    for (const text of bad) {
      for (const member of [`"x":"${text}"`, `"${text}":1`, `"x":[{"a":["b${text}c"]}]`]) {
        const whole = relay(member)
        expect([member, problemOf(whole)]).toEqual([member, 'text'])
        expect(read(whole)).toEqual({ ok: false, problem: 'text' })
      }
    }
  })

  test('is none of what looks like it', () => {
    for (const text of ['\\ud83d\\ude00', '😀', '\\\\u0000', '\\\\\\\\ud800', '\\u0001', '\\u001f', '\\n']) {
      expect(problemOf(relay(`"x":"${text}"`))).toBeUndefined()
    }
  })

  test('matters in data only: the rest is not passed on', () => {
    expect(problemOf(`{"x":"\\u0000\ud800","data":{"call_uuid":"${callUuid}"},"y\\udfff":0}`)).toBeUndefined()
  })
})

test('[WS6] the depth is exact', () => {
  const nested = (levels: number) => `"x":${'['.repeat(levels)}${']'.repeat(levels)}`
  expect(problemOf(relay(nested(998)))).toBeUndefined()
  expect(problemOf(relay(nested(999)))).toBe('depth')
  expect(problemOf(relay(`"x":${'{"a":'.repeat(998)}1${'}'.repeat(998)}`))).toBeUndefined()
  expect(problemOf(relay(`"x":${'{"a":'.repeat(999)}1${'}'.repeat(999)}`))).toBe('depth')
})

test('[REL4] thousands of keys are compared in no time', () => {
  const members = Array.from({ length: 9_000 }, (_, i) => `"${i.toString(36)}":1`)
  expect(problemOf(relay(...members))).toBeUndefined()
  expect(problemOf(relay(...members, '"0":1'))).toBe('repeated')
})
