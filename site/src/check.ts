/**
 * Whether the built pages hold together: every link of the site leads to a file and to an anchor of it, and nothing is
 * loaded from another host.
 */
import { posix } from 'node:path'

export interface Built {
  /** Path from the root of the site → text. Of files that are not HTML the text is not read. */
  readonly files: ReadonlyMap<string, string>
  /** Begins and ends with a slash. */
  readonly base: string
}

interface Reference {
  readonly name: string
  readonly target: string
  readonly tag: string
}

const decode = (text: string): string =>
  text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&lt;', '<').replaceAll('&amp;', '&')

function referencesIn(html: string): Reference[] {
  return [...html.matchAll(/<(\w+)\s[^>]*?>/g)].flatMap(([tag, name = '']) =>
    [...tag.matchAll(/\s(?:href|src)="([^"]*)"/g)].map(([, target = '']) => ({ name, target: decode(target), tag })),
  )
}

const anchorsIn = (html: string): ReadonlySet<string> =>
  new Set(Array.from(html.matchAll(/\sid="([^"]+)"/g), ([, id = '']) => decode(id)))

/** One line for each link that leads nowhere, and for each file of another host. */
export function brokenLinks({ files, base }: Built): readonly string[] {
  const anchors = new Map<string, ReadonlySet<string>>()
  const anchorsOf = (file: string) => {
    if (!anchors.has(file)) anchors.set(file, anchorsIn(files.get(file) ?? ''))
    return anchors.get(file) ?? new Set()
  }
  const problemOf = (page: string, { name, target, tag }: Reference): string | undefined => {
    if (/^[a-z]+:|^\/\//i.test(target)) {
      return name === 'a' || /^data:/.test(target) || /rel="canonical"/.test(tag) ? undefined : 'is on another host'
    }
    const [path = '', anchor] = target.split('#')
    const isAbsolute = path.startsWith('/')
    if (isAbsolute && !path.startsWith(base)) return `is outside ${base}`
    const file = isAbsolute ? path.slice(base.length) : posix.join(posix.dirname(page), path)
    const found = path === '' ? page : file === '' || file.endsWith('/') ? `${file}index.html` : file
    if (!files.has(found)) return 'leads to no file'
    if (anchor === undefined || anchor === '' || !found.endsWith('.html')) return undefined
    return anchorsOf(found).has(decodeURIComponent(anchor)) ? undefined : 'leads to no anchor'
  }
  return [...files].flatMap(([page, html]) =>
    page.endsWith('.html')
      ? referencesIn(html).flatMap((reference) => {
          const problem = problemOf(page, reference)
          return problem === undefined ? [] : [`${page}: ${reference.target} ${problem}`]
        })
      : [],
  )
}
