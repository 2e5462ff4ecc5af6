import type { Static, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { uuidPattern } from './text.ts'

export type Validation<T> = { ok: true; value: T } | ({ ok: false } & FieldProblem)

/** The problem of one field: `call_uuid` and `must be a UUID`. Nothing in it comes from the value itself. */
export interface FieldProblem {
  /** Dotted path; empty for the value as a whole. */
  field: string
  message: string
}

/** Compiles a schema once; while the value is right, the check itself allocates nothing but its result. */
export function createValidator<T extends TSchema>(schema: T): (value: unknown) => Validation<Static<T>> {
  const compiled = Compile(schema)
  return (value) => {
    if (compiled.Check(value)) return { ok: true, value: value as Static<T> }
    return { ok: false, ...describe(compiled.Errors(value)) }
  }
}

/** One finding of the schema library. Its own words are never passed on. */
interface Finding {
  readonly keyword: string
  readonly instancePath: string
  readonly params: {
    readonly requiredProperties?: readonly string[]
    readonly type?: string | readonly string[]
    readonly pattern?: string | RegExp
    readonly limit?: number | bigint
    readonly allowedValue?: unknown
    readonly allowedValues?: readonly unknown[]
    readonly message?: string
  }
}

/**
 * Of the first field that is wrong, what was found deepest: where there is a choice of shapes, that is the one that
 * was meant.
 */
function describe(found: readonly object[]): FieldProblem {
  const findings = (found as readonly Finding[]).filter((it) => it.keyword !== 'anyOf')
  const paths = findings.map(pathOf)
  let deepest = paths[0]
  if (deepest === undefined) return { field: '', message: 'is invalid' }
  for (const path of paths) {
    if (path[0] === deepest[0] && path.length > deepest.length) deepest = path
  }
  const field = deepest.join('.')
  const here = findings.filter((_, i) => paths[i]?.join('.') === field)
  const specific = here.find((it) => it.keyword !== 'type')
  return { field, message: specific === undefined ? wrongType(here) : sentence(specific) }
}

function pathOf({ keyword, instancePath, params }: Finding): string[] {
  const path = instancePath === '' ? [] : instancePath.slice(1).split('/')
  const missing = keyword === 'required' ? params.requiredProperties?.[0] : undefined
  return missing === undefined ? path : [...path, missing]
}

const typeNames: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'a boolean',
  object: 'an object',
  array: 'an array',
  null: 'null',
}

function wrongType(findings: readonly Finding[]): string {
  const names = new Set(findings.flatMap(({ params }) => params.type ?? []).map((type) => typeNames[type] ?? type))
  // null is what an optional field may also be: it comes last.
  const ordered = [...names].sort((a, b) => Number(a === 'null') - Number(b === 'null'))
  return ordered.length === 0 ? 'is invalid' : `must be ${ordered.join(' or ')}`
}

function sentence({ keyword, params }: Finding): string {
  switch (keyword) {
    case 'required':
      return 'is required'
    case 'const':
      return `must be ${JSON.stringify(params.allowedValue)}`
    case 'enum':
      return `must be one of ${params.allowedValues?.join(', ')}`
    case 'pattern':
      return patternSentence(String(params.pattern))
    case 'minLength':
      return params.limit === 1 ? 'must not be blank' : `must have at least ${params.limit} characters`
    case 'maxLength':
      return `must have at most ${params.limit} characters`
    case 'maxItems':
      return `must have at most ${params.limit} items`
    case 'minimum':
      return `must be at least ${params.limit}`
    case 'maximum':
      return `must be at most ${params.limit}`
    case '~refine':
      return params.message ?? 'is invalid'
    default:
      return 'is invalid'
  }
}

function patternSentence(pattern: string): string {
  if (pattern === uuidPattern) return 'must be a UUID'
  if (pattern === '\\S') return 'must not be blank'
  return `must match ${pattern.replace(/^\^/, '').replace(/\$$/, '')}`
}
