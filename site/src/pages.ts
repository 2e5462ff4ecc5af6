/**
 * Which pages the site has, and which document each of them is.
 *
 *   findSite(files, read)             → the pages, and what they link to
 *   site.targetOf('docs/x.md', href)  → where a link of a document leads on the site
 */
import { dirname, join, normalize } from 'node:path/posix'

export interface Page {
  /** Path from the root of the project. */
  readonly source: string
  /** Path on the site, without the leading slash and the ending. */
  readonly path: string
  readonly title: string
  readonly text: string
}

export interface Site {
  readonly pages: readonly Page[]
  /** Files of the project that documents link to: each has a page that shows it. */
  readonly files: readonly string[]
  /** Folders that documents link to and that have no README. */
  readonly folders: readonly string[]
  /** Files that are served as they are. */
  readonly assets: readonly string[]
  /** Links to other sites and inside the page stay as they are. Paths begin with a slash; pages end in `.md`. */
  targetOf(source: string, href: string): string
}

const isDocument = (file: string) =>
  /^(README|SECURITY)\.md$|^docs\/.*\.md$|^(packages|examples)\/[^/]+\/README\.md$/.test(file)

/** docs/ is the root of the site; what is outside it keeps its path. */
export function pathOf(source: string): string {
  if (source === 'README.md') return 'index'
  if (source === 'SECURITY.md') return 'reporting'
  return source.replace(/^docs\//, '').replace(/(\/README)?\.md$/, '')
}

/** Of a file that is served as it is. */
export const assetPath = (file: string) => file.replace(/^docs\//, '')
const isAsset = (file: string) => /\.(json|png)$/.test(file)
const isElsewhere = (href: string) => /^[a-z]+:|^#/.test(href)

export const withoutFences = (text: string): string => text.replaceAll(/^( *)```[\s\S]*?^\1```$/gm, '')

const withoutCode = (text: string): string => withoutFences(text).replaceAll(/`[^`\n]*`/g, '')

/** The path that a link of a document means, from the root of the project. */
function meant(source: string, href: string): string {
  return normalize(join(dirname(source), href.replace(/#.*$/, ''))).replace(/\/$/, '')
}

export function findSite(files: readonly string[], read: (file: string) => string): Site {
  const pages = files.filter(isDocument).map((source): Page => {
    const text = read(source)
    return { source, path: pathOf(source), title: /^# (.+)$/m.exec(text)?.[1]?.replaceAll('`', '') ?? source, text }
  })
  const paths = new Map(pages.map(({ source, path }) => [source, path]))
  const linked = new Set(
    pages.flatMap(({ source, text }) =>
      [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)]
        .map(([, href = '']) => href)
        .filter((href) => !isElsewhere(href))
        .map((href) => meant(source, href)),
    ),
  )
  const known = new Set(files)
  const isFolder = (path: string) => !known.has(path) && !paths.has(`${path}/README.md`)
  const folders = [...linked].filter(isFolder).sort()
  const inFolders = files.filter((file) => folders.some((folder) => file.startsWith(`${folder}/`)))
  const others = [...new Set([...linked, ...inFolders])].filter((file) => known.has(file) && !paths.has(file)).sort()

  return {
    pages,
    folders,
    files: others.filter((file) => !isAsset(file)),
    assets: others.filter(isAsset),
    targetOf(source, href) {
      if (isElsewhere(href)) return href
      const path = meant(source, href)
      const anchor = /#.*$/.exec(href)?.[0] ?? ''
      const page = paths.get(path) ?? paths.get(`${path}/README.md`)
      if (page !== undefined) return `/${page}.md${anchor}`
      if (folders.includes(path)) return `/${folderPath(path)}.md`
      return isAsset(path) ? `/${assetPath(path)}` : `/${filePath(path)}.md`
    },
  }
}

/** Of the page that shows a file. */
export const filePath = (file: string) => `files/${file}`

/** Of the page that lists a folder. The decisions are documents, so their list stands with them. */
export const folderPath = (folder: string) =>
  folder === 'docs/decisions' ? 'decisions/index' : `files/${folder}/index`
