import type { TSchema } from 'typebox'

export type Json = null | boolean | number | string | Json[] | JsonObject
export interface JsonObject {
  [name: string]: Json
}

/** A schema as plain JSON Schema: what only the validator needs does not survive. */
export function plainSchema(schema: TSchema): JsonObject {
  return JSON.parse(JSON.stringify(schema))
}

/** Puts a `$ref` wherever a named schema stands inside another one. */
export function withReferences(schema: JsonObject, named: Readonly<Record<string, JsonObject>>): JsonObject {
  const names = new Map(Object.entries(named).map(([name, it]) => [JSON.stringify(it), name]))
  const visit = (value: Json, isRoot: boolean): Json => {
    if (Array.isArray(value)) return value.map((it) => visit(it, false))
    if (typeof value !== 'object' || value === null) return value
    const name = isRoot ? undefined : names.get(JSON.stringify(value))
    if (name !== undefined) return { $ref: `#/components/schemas/${name}` }
    return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, visit(it, false)]))
  }
  return visit(schema, true) as JsonObject
}

export const reference = (name: string): JsonObject => ({ $ref: `#/components/schemas/${name}` })
