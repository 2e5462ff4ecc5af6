/**
 * JSON Schema as tables of fields, for the pages of both references.
 *
 *   fieldTable(schema, resolve)   → a Markdown table, or nothing where the schema has no fields
 *   typeOf(schema)                → what a value may be, in words
 *   plain(text)                   → a text as Markdown that shows nothing but this text
 */

export interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly description?: string
  readonly format?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
}

export const plain = (text: string): string =>
  text
    .replaceAll(/[\\*_`<>|&~]/g, (character) => (character === '<' ? '&lt;' : `\\${character}`))
    .replaceAll(/\n+/g, '<br>')

const code = (value: unknown): string => `\`${String(value).replaceAll('|', '\\|')}\``

export const schemaName = (ref: string): string => ref.replace(/^.*\//, '')
export const schemaPage = 'reference/rest/schemas'

function rangeOf(unit: string, least: number | undefined, most: number | undefined): string {
  if (least !== undefined && most !== undefined)
    return least === most ? `${least}${unit}` : `${least} to ${most}${unit}`
  if (most !== undefined) return `at most ${most}${unit}`
  return least !== undefined ? `at least ${least}${unit}` : ''
}

function limitsOf(schema: Schema): string {
  const limits = [
    schema.format ?? '',
    rangeOf(' characters', schema.minLength, schema.maxLength),
    rangeOf(' entries', schema.minItems, schema.maxItems),
    rangeOf('', schema.minimum, schema.maximum),
  ].filter((limit) => limit !== '')
  return limits.length === 0 ? '' : ` (${limits.join(', ')})`
}

export function typeOf(schema: Schema): string {
  if (schema.$ref !== undefined) {
    const name = schemaName(schema.$ref)
    return `[${name}](/${schemaPage}.md#${name.toLowerCase()})`
  }
  if (schema.const !== undefined) return code(JSON.stringify(schema.const))
  if (schema.enum !== undefined) return schema.enum.map((value) => code(JSON.stringify(value))).join(', ')
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeOf))].join(' or ')
  if (schema.items !== undefined) return `list of ${typeOf(schema.items)}${limitsOf(schema)}`
  const types = schema.type === undefined ? [] : [schema.type].flat()
  return types.length === 0 ? 'any' : `${types.join(' or ')}${limitsOf(schema)}`
}

interface Field {
  readonly name: string
  readonly schema: Schema
  readonly isRequired: boolean
}

/** Fields of an object, and of the objects inside it, which no other place describes. */
function fieldsOf(schema: Schema, prefix = ''): Field[] {
  const required = new Set(schema.required ?? [])
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, field]): Field[] => [
    { name: `${prefix}${name}`, schema: field, isRequired: required.has(name) },
    ...fieldsOf(field, `${prefix}${name}.`),
  ])
  const inside = [...(schema.allOf ?? []), ...(schema.anyOf ?? [])].flatMap((part) => fieldsOf(part, prefix))
  const listed = schema.items === undefined ? [] : fieldsOf(schema.items, `${prefix.replace(/\.$/, '')}[].`)
  return [...own, ...inside, ...listed]
}

const descriptionOf = ({ description, anyOf, items }: Schema): string =>
  [description, ...(anyOf ?? []).map((part) => part.description), items?.description]
    .filter((text) => text !== undefined)
    .join(' ')

export function fieldTable(schema: Schema): string {
  const seen = new Set<string>()
  const fields = fieldsOf(schema).filter(({ name }) => !seen.has(name) && seen.add(name))
  if (fields.length === 0) return ''
  const rows = fields.map(
    ({ name, schema: field, isRequired }) =>
      `| ${code(name)}${isRequired ? '' : ' ?'} | ${typeOf(field)} | ${plain(descriptionOf(field))} |`,
  )
  return `| Field | Value | What it is |\n|---|---|---|\n${rows.join('\n')}\n`
}
