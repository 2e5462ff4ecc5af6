import { integer, rate, type ValueType } from './values.ts'

/** One setting: its variable, and what that means. */
export interface Setting<T> {
  readonly name: string
  readonly type: ValueType<T>
  /** What an unset variable means. */
  readonly fallback: () => T
  /** The same in the words of the documents. */
  readonly default: string
  readonly unit: string
  readonly secret: boolean
  /** `NAME_FILE` may name a file that has it: each secret may be in one. */
  readonly hasFile: boolean
  readonly description: string
}

export function setting<T>(
  name: string,
  type: ValueType<T>,
  defaultText: string,
  description: string,
  options: { unit?: string; secret?: boolean; hasFile?: boolean; fallback?: () => T } = {},
): Setting<T> {
  const { unit = '', secret = false, hasFile = secret } = options
  const fallback = options.fallback ?? (() => parseDefault(name, type, defaultText))
  return { name, type, fallback, default: defaultText, unit, secret, hasFile, description }
}

/** The default goes through the parser too, so the table cannot say something that it would not accept. */
function parseDefault<T>(name: string, type: ValueType<T>, defaultText: string): T {
  const parsed = type.parse(defaultText)
  if (!parsed.ok) throw new Error(`the default of ${name} ${parsed.problem}`)
  return parsed.value
}

/** A setting that is `value` where its variable is unset. */
export function unset<T, U>(
  name: string,
  type: ValueType<T>,
  value: U,
  means: string,
  description: string,
  options: { unit?: string; secret?: boolean; hasFile?: boolean } = {},
): Setting<T | U> {
  return setting<T | U>(name, type, means, description, { ...options, fallback: () => value })
}

/** The longest a timer can be asked to wait. */
const longest = 2 ** 31 - 1
/** In ms. */
export const duration = (name: string, ms: number, description: string, max = longest) =>
  setting(name, integer(1, max), String(ms), description, { unit: 'ms' })
export const limit = (name: string, value: string, description: string) => setting(name, rate(), value, description)
