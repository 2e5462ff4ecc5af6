import { describe, expect, test } from 'bun:test'
import Type from 'typebox'
import { createValidator } from './validate.ts'

/** The message about a value that a schema does not allow. */
function problem(schema: Type.TSchema, value: unknown): string {
  const result = createValidator(schema)(value)
  return result.ok ? 'right' : `${result.field || '(all)'} ${result.message}`
}
const inField = (schema: Type.TSchema, value: unknown) => problem(Type.Object({ a: schema }), { a: value })

describe('the field and what it must be', () => {
  const cases: [string, string][] = [
    [problem(Type.String(), 5), '(all) must be a string'],
    [problem(Type.Object({}), []), '(all) must be an object'],
    [problem(Type.Object({ a: Type.String(), b: Type.String() }), {}), 'a is required'],
    [inField(Type.Object({ b: Type.Object({ c: Type.Null() }) }), { b: {} }), 'a.b.c is required'],
    [inField(Type.Number(), '5'), 'a must be a number'],
    [inField(Type.Integer(), 0.5), 'a must be an integer'],
    [inField(Type.Boolean(), 1), 'a must be a boolean'],
    [inField(Type.Array(Type.String()), {}), 'a must be an array'],
    [inField(Type.Array(Type.String()), ['x', 5]), 'a.1 must be a string'],
    [inField(Type.Array(Type.String(), { maxItems: 1 }), ['x', 'y']), 'a must have at most 1 items'],
    [inField(Type.Literal('x'), 'y'), 'a must be "x"'],
    [inField(Type.Enum(['x', 'y']), 'z'), 'a must be one of x, y'],
    [inField(Type.String({ minLength: 2 }), 'z'), 'a must have at least 2 characters'],
    [inField(Type.String({ minLength: 1 }), ''), 'a must not be blank'],
    [inField(Type.String({ maxLength: 2 }), 'zzz'), 'a must have at most 2 characters'],
    [inField(Type.String({ pattern: '^[a-z]+$' }), 'A'), 'a must match [a-z]+'],
    [inField(Type.Integer({ minimum: 2, maximum: 3 }), 1), 'a must be at least 2'],
    [inField(Type.Integer({ minimum: 2, maximum: 3 }), 4), 'a must be at most 3'],
    [inField(Type.Union([Type.Null(), Type.String()]), 5), 'a must be a string or null'],
    [inField(Type.Union([Type.Null(), Type.Integer({ minimum: 2 })]), 1), 'a must be at least 2'],
    [inField(Type.Union([Type.Object({ b: Type.Null() }), Type.Null()]), { b: 5 }), 'a.b must be null'],
    [inField(Type.Number({ multipleOf: 2 }), 3), 'a is invalid'],
  ]
  for (const [said, expected] of cases) test(expected, () => expect(said).toBe(expected))
})

test('a right value is given back as it is', () => {
  const value = { a: 'x', more: 5 }
  const result = createValidator(Type.Object({ a: Type.String() }))(value)
  expect(result.ok && result.value).toBe(value)
})
