/** Where each page stands in the sidebar. A document that stands nowhere fails the build. */
import type { Page } from './pages.ts'

export interface Item {
  readonly text: string
  readonly link?: string
  readonly collapsed?: boolean
  readonly items?: readonly Item[]
}

interface Entry {
  readonly path: string
  readonly title: string
}

/** Paths of pages; a name that ends with a slash stands for all pages in that folder that no group names. */
const groups: readonly (readonly [title: string, paths: readonly string[]])[] = [
  [
    'Begin',
    ['index', 'guide/app-developers', 'guide/backend-developers', 'guide/support-line', 'guide/operators', 'examples/'],
  ],
  ['Clients', ['client', 'generated/client-api', 'push', 'base-clients', 'conformance']],
  ['Backends', ['backend', 'webhooks']],
  [
    'Rules',
    [
      ...['protocol', 'generated/call-states', 'generated/end-reasons', 'generated/errors', 'generated/close-codes'],
      'generated/limits',
    ],
  ],
  ['REST API', ['reference/rest/']],
  ['WebSocket messages', ['reference/websocket/']],
  ['Running it', ['deployment', 'operations', 'generated/configuration', 'scaling']],
  ['What it stands', ['reliability', 'benchmarks', 'benchmark-results', 'security', 'asvs', 'reporting']],
  ['Inside', ['architecture', 'packages/', 'decisions/']],
]

/** Pages whose heading says too little in a list. */
const titles: Readonly<Record<string, string>> = {
  index: 'Five minutes',
  protocol: 'The rule book',
  reporting: 'How to report a hole',
  'examples/backends': 'Example: backends',
  'reference/rest/index': 'All endpoints',
  'reference/websocket/index': 'All messages',
}

const nested = new Set(['examples/', 'packages/', 'decisions/'])

export function sidebarOf(pages: readonly (Page | Entry)[]): readonly Item[] {
  const byPath = new Map(pages.map((page) => [page.path, page]))
  const named = new Set(groups.flatMap(([, paths]) => paths))
  const itemOf = ({ path, title }: Entry): Item => ({ text: titles[path] ?? title, link: `/${path}.md` })
  const placed = new Set<string>()
  const inFolder = (folder: string) => pages.filter(({ path }) => path.startsWith(folder) && !named.has(path))
  const items = groups.map(([text, paths]): Item => {
    const own = paths.flatMap((path): Item[] => {
      const found = path.endsWith('/') ? inFolder(path) : [byPath.get(path)].filter((page) => page !== undefined)
      if (found.length === 0) throw new Error(`site/src/sidebar.ts names ${path}, which is no page`)
      for (const page of found) placed.add(page.path)
      if (!nested.has(path)) return found.map(itemOf)
      return [{ text: capital(path.slice(0, -1)), collapsed: true, items: found.map(itemOf) }]
    })
    return { text, collapsed: text.startsWith('REST') || text.startsWith('WebSocket'), items: own }
  })
  const left = pages.filter(({ path }) => !placed.has(path))
  if (left.length > 0) throw new Error(`site/src/sidebar.ts places no ${left.map(({ path }) => path).join(', ')}`)
  return items
}

const capital = (word: string): string => `${word.charAt(0).toUpperCase()}${word.slice(1)}`
