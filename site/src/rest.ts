/** The REST API as Markdown: one page for each subject of openapi.json, one of all schemas, and a list of all endpoints. */
import { anchorOf } from './markdown.ts'
import { fieldTable, plain, type Schema, schemaName, schemaPage, typeOf } from './schema.ts'

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description?: string
  readonly schema: Schema
}

interface Body {
  readonly description?: string
  readonly content?: Readonly<Record<string, { readonly schema?: Schema; readonly examples?: Examples }>>
}

type Examples = Readonly<Record<string, { readonly value: unknown }>>

interface Operation {
  readonly summary: string
  readonly description?: string
  readonly tags: readonly string[]
  readonly security?: readonly Readonly<Record<string, unknown>>[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: Body
  readonly responses: Readonly<Record<string, Body>>
}

type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>

export interface OpenApi {
  readonly info: { readonly description: string }
  readonly paths: Paths
  readonly webhooks: Paths
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>
    readonly securitySchemes: Readonly<Record<string, { readonly description: string }>>
  }
}

export interface GeneratedPage {
  readonly path: string
  readonly title: string
  readonly text: string
}

/** Subjects in the order of the sidebar. Endpoints of backends are one tag in the document and several pages here. */
const subjects: Readonly<Record<string, string>> = {
  tokens: 'Session tokens',
  'server-calls': 'Backends: calls',
  'server-participants': 'Backends: participants',
  'server-product': 'Backends: the product',
  'server-groups': 'Backends: groups',
  'server-webhooks': 'Backends: webhook endpoints',
  webhooks: 'Webhooks that are sent',
  signaling: 'The WebSocket upgrade',
  history: 'Call history',
  ice: 'ICE servers',
  ring: 'Ring tickets',
  devices: 'Devices',
  health: 'Health',
}

interface Endpoint {
  readonly subject: string
  readonly title: string
  readonly operation: Operation
}

const endpointsOf = (paths: Paths, titleOf: (method: string, path: string) => string): Endpoint[] =>
  Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => {
      const tag = operation.tags[0] ?? ''
      return {
        subject: tag === 'server' ? `server-${path.split('/')[3]}` : tag,
        title: titleOf(method, path),
        operation,
      }
    }),
  )

const titleOf = (subject: string): string => {
  const title = subjects[subject]
  if (title === undefined) throw new Error(`site/src/rest.ts has no title for the subject "${subject}"`)
  return title
}

const exampleBlock = (value: unknown): string => `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\`\n`

/** The first example is shown, the others can be opened. */
export function exampleBlocks(examples: readonly (readonly [name: string, value: unknown])[]): string {
  return examples
    .map(([name, value], index) =>
      index === 0 ? exampleBlock(value) : `::: details Example: ${plain(name)}\n${exampleBlock(value)}:::\n`,
    )
    .join('\n')
}

function bodySection(title: string, body: Body, schemas: OpenApi['components']['schemas']): string {
  const { schema, examples = {} } = Object.values(body.content ?? {})[0] ?? {}
  if (schema === undefined) return ''
  const name = schema.$ref === undefined ? undefined : schemaName(schema.$ref)
  const fields = fieldTable(name === undefined ? schema : (schemas[name] ?? {}))
  const shown = exampleBlocks(Object.entries(examples).map(([key, { value }]) => [key, value] as const))
  return `**${title}:** ${typeOf(schema)}. ${plain(body.description ?? '')}\n\n${fields}\n${shown}`
}

function parameterTable(parameters: readonly Parameter[]): string {
  if (parameters.length === 0) return ''
  const rows = parameters.map(
    ({ name, in: place, required, description, schema }) =>
      `| \`${name}\`${required ? '' : ' ?'} | ${place} | ${typeOf(schema)} | ${plain(description ?? '')} |`,
  )
  return `| Parameter | In | Value | What it is |\n|---|---|---|---|\n${rows.join('\n')}\n`
}

/** Codes of errors stand at the beginning of lines: `CODE: message`. */
const withCodes = (text: string): string =>
  plain(text).replaceAll(/(^|<br>)([A-Z][A-Z\\_]+): /g, (_, before, code) => {
    return `${before}\`${code.replaceAll('\\', '')}\`: `
  })

function responseTable(responses: Operation['responses']): string {
  const rows = Object.entries(responses).map(
    ([status, { description }]) => `| ${status} | ${withCodes(description ?? '')} |`,
  )
  return `| Status | When |\n|---|---|\n${rows.join('\n')}\n`
}

function securityLine({ security = [] }: Operation, { securitySchemes }: OpenApi['components']): string {
  if (security.length === 0) return ''
  const ways = security.map((way) => Object.keys(way).map((name) => plain(securitySchemes[name]?.description ?? name)))
  const said = ways.map((names) => names.map((name) => name.replace(/\.$/, '')).join(' and ')).join('; or: ')
  return said === '' ? '' : `**Credentials:** ${said}.\n`
}

function section({ title, operation }: Endpoint, { components }: OpenApi): string {
  const { summary, description, parameters = [], requestBody, responses } = operation
  const success = Object.entries(responses).find(([status]) => status.startsWith('2'))
  return [
    `## \`${title}\``,
    plain(summary),
    plain(description ?? ''),
    securityLine(operation, components),
    parameterTable(parameters),
    requestBody === undefined ? '' : bodySection('Body', requestBody, components.schemas),
    success === undefined ? '' : bodySection('Answer', { ...success[1], description: '' }, components.schemas),
    responseTable(responses),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

function overview(document: OpenApi, endpoints: readonly Endpoint[], known: readonly string[]): GeneratedPage {
  const rows = endpoints
    .toSorted((a, b) => known.indexOf(a.subject) - known.indexOf(b.subject))
    .map(
      ({ subject, title, operation }) =>
        `| [\`${title}\`](/reference/rest/${subject}.md#${anchorOf(title)}) | ${plain(operation.summary)} |`,
    )
  const text = `# REST API

${plain(document.info.description)}

These pages show [openapi.json](/generated/openapi.json). [Error codes](/generated/errors.md) has what each error means.
A question mark after a name says that the field may be missing.

| Endpoint or webhook | What it does |
|---|---|
${rows.join('\n')}
`
  return { path: 'reference/rest/index', title: 'REST API', text }
}

export function restPages(document: OpenApi): readonly GeneratedPage[] {
  const endpoints = [
    ...endpointsOf(document.paths, (method, path) => `${method.toUpperCase()} ${path}`),
    ...endpointsOf(document.webhooks, (_, name) => name),
  ]
  const known = Object.keys(subjects)
  const found = [...new Set(endpoints.map(({ subject }) => subject))]
  const pages = found
    .toSorted((a, b) => known.indexOf(a) - known.indexOf(b))
    .map((subject): GeneratedPage => {
      const title = titleOf(subject)
      const own = endpoints.filter((endpoint) => endpoint.subject === subject)
      const text = `# ${title}\n\n${own.map((endpoint) => section(endpoint, document)).join('\n\n')}\n`
      return { path: `reference/rest/${subject}`, title, text }
    })
  const schemas = Object.entries(document.components.schemas).map(
    ([name, schema]) =>
      `## ${name}\n\n${plain(schema.description ?? '')}\n\n${fieldTable(schema) || `${typeOf(schema)}\n`}`,
  )
  const schemasPage = { path: schemaPage, title: 'Schemas', text: `# Schemas\n\n${schemas.join('\n\n')}\n` }
  return [overview(document, endpoints, known), ...pages, schemasPage]
}
