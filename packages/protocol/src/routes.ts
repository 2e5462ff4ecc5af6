import { type EndpointDefinition, type EndpointName, endpoints } from './endpoints.ts'

/** A path of the registry, and what it answers: one endpoint for each method. */
export interface Route {
  /** As the registry writes it: `/v1/server/calls/{call_uuid}`. */
  readonly path: string
  readonly endpoints: readonly (EndpointDefinition & { readonly name: EndpointName })[]
}

/** The values for `{name}` in a path of the registry, decoded. */
export type PathParams = Readonly<Record<string, string>>

/** In the order of the registry. */
export const routes: readonly Route[] = [...Map.groupBy(named(), ({ path }) => path)].map(([path, endpoints]) => ({
  path,
  endpoints,
}))

function named(): (EndpointDefinition & { readonly name: EndpointName })[] {
  const all = Object.entries<EndpointDefinition>(endpoints)
  return all.map(([name, endpoint]) => ({ ...endpoint, name: name as EndpointName }))
}

const fixed = new Map(routes.filter(({ path }) => !path.includes('{')).map((route) => [route.path, route]))
const patterns = routes
  .filter(({ path }) => path.includes('{'))
  .map((route) => ({ route, parts: route.path.split('/').map(partOf) }))

interface Part {
  readonly text: string
  readonly isName: boolean
}

function partOf(text: string): Part {
  const [, name] = /^\{(\w+)\}$/.exec(text) ?? []
  return name === undefined ? { text, isName: false } : { text: name, isName: true }
}

const none: PathParams = {}

/**
 * The route of a path, as it came, without its query. Undefined where nothing is there, also where a name in it is blank
 * or not UTF-8.
 */
export function routeAt(path: string): { readonly route: Route; readonly params: PathParams } | undefined {
  const route = fixed.get(path)
  if (route !== undefined) return { route, params: none }
  const given = path.split('/')
  for (const { route, parts } of patterns) {
    const params = paramsOf(parts, given)
    if (params !== undefined) return { route, params }
  }
  return undefined
}

function paramsOf(parts: readonly Part[], given: readonly string[]): PathParams | undefined {
  if (parts.length !== given.length) return undefined
  if (parts.some(({ text, isName }, index) => !isName && text !== given[index])) return undefined
  const params: Record<string, string> = {}
  for (const [index, { text, isName }] of parts.entries()) {
    if (!isName) continue
    const value = decode(given[index] ?? '')
    if (value.trim() === '') return undefined
    params[text] = value
  }
  return params
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}
