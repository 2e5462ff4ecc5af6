import type { Random } from './random.ts'

type Json = unknown

const deep = (depth: number): Json => JSON.parse('['.repeat(depth) + ']'.repeat(depth))

/** Values that are there to be in the wrong place. */
const strange: readonly ((random: Random) => Json)[] = [
  () => null,
  () => true,
  () => 0,
  () => -1,
  () => 1.5,
  () => 1e308,
  () => Number.MAX_SAFE_INTEGER + 2,
  () => '',
  () => ' ',
  () => '\0',
  () => '\ud800',
  () => '\u202e\u2028\ufeff',
  () => '😀'.repeat(70),
  () => 'a'.repeat(256),
  () => 'x'.repeat(5_000),
  () => [],
  () => ({}),
  () => [[]],
  () => ({ __proto__: null, toString: 1, constructor: { prototype: 1 }, toJSON: 'x' }),
  () => deep(50),
  () => deep(3_000),
  () => crypto.randomUUID(),
  () => '00000000-0000-0000-0000-000000000000',
  (random) => random.bytes(random.int(40)).toString('latin1'),
  (random) => random.int(2 ** 31),
]

/** Changes a value somewhere: a member goes, comes, or becomes something else. */
export function mutateJson(random: Random, value: Json): Json {
  if (typeof value !== 'object' || value === null || random.chance(0.04)) return random.pick(strange)(random)
  if (Array.isArray(value)) return random.chance(0.5) ? [...value, ...value] : { 0: value }
  const entries = Object.entries(value)
  const inside = entries.filter(([, it]) => typeof it === 'object' && it !== null)
  if (inside.length > 0 && random.chance(0.7)) {
    const [name, it] = random.pick(inside)
    return { ...value, [name]: mutateJson(random, it) }
  }
  const at = random.int(entries.length + 1)
  const entry = entries[at]
  if (entry === undefined) return { ...value, [random.pick(names)]: random.pick(strange)(random) }
  const [name] = entry
  switch (random.int(4)) {
    case 0:
      return Object.fromEntries(entries.filter((_, i) => i !== at))
    case 1:
      return { ...value, [name]: random.pick(strange)(random) }
    case 2:
      return Object.fromEntries(entries.map(([key, it], i) => [i === at ? random.pick(names) : key, it]))
    default:
      return { ...value, [name]: random.pick(entries)[1] }
  }
}

const names = [
  '__proto__',
  'toString',
  'constructor',
  '',
  'event',
  'data',
  'call_uuid',
  'sdp',
  'x'.repeat(300),
  '\ud800',
]

/** Changes bytes: flips, cuts, copies, digits that make a number huge. */
export function mutateBytes(random: Random, bytes: Uint8Array): Buffer {
  let out = Buffer.from(bytes)
  for (let rounds = 1 + random.int(3); rounds > 0 && out.length > 0; rounds--) {
    const at = random.int(out.length)
    const until = Math.min(out.length, at + 1 + random.int(16))
    switch (random.int(7)) {
      case 0:
        out[at]! ^= 1 << random.int(8)
        break
      case 1:
        out[at] = random.int(256)
        break
      case 2:
        out = out.subarray(0, at)
        break
      case 3:
        out = Buffer.concat([out.subarray(0, at), random.bytes(1 + random.int(8)), out.subarray(at)])
        break
      case 4:
        out = Buffer.concat([out.subarray(0, until), out.subarray(at)])
        break
      case 5:
        out = Buffer.concat([out.subarray(0, at), out.subarray(until)])
        break
      default:
        out = Buffer.concat([out.subarray(0, at), Buffer.from('9'.repeat(1 + random.int(30))), out.subarray(at)])
    }
  }
  return out
}

/** Spells JSON in another way: some are the same value, some are refused [REL4]. */
export function respell(random: Random, text: string): string {
  switch (random.int(6)) {
    case 0:
      return `\ufeff${text}`
    case 1:
      return text.replaceAll(/[:,]/g, (mark) => `${mark}${random.pick(['', ' ', '\n', '\t \r\n'])}`)
    case 2: {
      const at = random.int(text.length)
      return text.slice(0, at) + text.slice(at).replace(/[a-z]/, escaped)
    }
    case 3:
      return text.replace('"data":{', `"data":{${random.pick(members)},`)
    case 4:
      return text.replaceAll(/\b\d+\b/g, (digits) =>
        random.pick([digits, '1e400', '-0', '0.10', '12345678901234567890']),
      )
    default:
      return text.replace('":"', `":"${random.pick(['\\u0000', '\\ud800', '\\udc00\\ud800', '\\ud83d\\ude00'])}`)
  }
}

const escaped = (letter: string) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`

const members = [
  '"call_uuid":"x"',
  '"\\u0063all_uuid":"x"',
  '"from_user_id":"x","from_user_id":"y"',
  '"from_\\u0072ole":"admin"',
  '"a":{"b":1,"\\u0062":2}',
  Array.from({ length: 40 }, (_, i) => `"k${i}":${i}`).join(),
]
