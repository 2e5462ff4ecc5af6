import { items, type Parsed, type ValueType } from './values.ts'

/** A share, from 0 to 1. */
export function ratio(): ValueType<number> {
  return {
    label: 'number from 0 to 1',
    parse(value): Parsed<number> {
      const number = /^(\d+\.?\d*|\.\d+)$/.test(value) ? Number(value) : Number.NaN
      return number >= 0 && number <= 1
        ? { ok: true, value: number }
        : { ok: false, problem: 'must be a number from 0 to 1, as 0.1' }
    },
  }
}

/** RFC 9110 section 5.6.2, and what OpenTelemetry calls its attributes. */
const names = { header: /^[\w!#$%&'*+.^`|~-]+$/, attribute: /^[\x21-\x7e]{1,255}$/ }

/** A header has visible characters and spaces; an attribute may have any but controls. */
const values = { header: /^[\x20-\x7e]*$/, attribute: /^\P{C}*$/u }

/** `name=value` pairs with commas between them, values percent-encoded, as OpenTelemetry writes them. */
export function keyValues(kind: keyof typeof names): ValueType<Readonly<Record<string, string>>> {
  return {
    label: 'name=value,…',
    parse(text): Parsed<Readonly<Record<string, string>>> {
      const pairs = items(text).map((item) => pairOf(item, values[kind]))
      const wrong = pairs.findIndex((pair) => pair === undefined || !names[kind].test(pair[0]))
      // The wrong part may be a secret.
      if (wrong >= 0) return { ok: false, problem: `has an entry ${wrong + 1} that is not ${kind}=value` }
      return { ok: true, value: Object.fromEntries(pairs.filter((pair) => pair !== undefined)) }
    },
  }
}

function pairOf(item: string, allowed: RegExp): [string, string] | undefined {
  const at = item.indexOf('=')
  if (at < 0) return undefined
  try {
    const value = decodeURIComponent(item.slice(at + 1).trim())
    return allowed.test(value) ? [decodeURIComponent(item.slice(0, at).trim()), value] : undefined
  } catch {
    return undefined
  }
}
