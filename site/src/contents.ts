/** All pages of the site: documents, references and the files that documents link to. */
import { type AsyncApi, eventPages } from './events.ts'
import { assetPath, filePath, folderPath, type Site } from './pages.ts'
import { type GeneratedPage, type OpenApi, restPages } from './rest.ts'

export function references(read: (file: string) => string): readonly GeneratedPage[] {
  const rest = JSON.parse(read('docs/generated/openapi.json')) as OpenApi
  const events = JSON.parse(read('docs/generated/asyncapi.json')) as AsyncApi
  return [...restPages(rest), ...eventPages(events)]
}

/** A fence that is longer than any in the text. */
function fenced(text: string): string {
  const longest = Math.max(3, ...Array.from(text.matchAll(/`+/g), ([ticks]) => ticks.length + 1))
  const fence = '`'.repeat(longest)
  return `${fence}txt\n${text.trimEnd()}\n${fence}\n`
}

/** A file of the project as a page, without colours: with them these pages took half of the build. */
function filePage(file: string, read: (file: string) => string): GeneratedPage {
  return { path: filePath(file), title: file, text: `# ${file}\n\n${fenced(read(file))}` }
}

function folderPage(folder: string, site: Site): GeneratedPage {
  const pages = site.pages.filter(({ source }) => source.startsWith(`${folder}/`))
  const files = site.files.filter((file) => file.startsWith(`${folder}/`))
  const assets = site.assets.filter((file) => file.startsWith(`${folder}/`))
  const lines = [
    ...pages.map(({ path, title }) => `- [${title}](/${path}.md)`),
    ...files.map((file) => `- [${file}](/${filePath(file)}.md)`),
    ...assets.map((file) => `- [${file}](/${assetPath(file)})`),
  ]
  const title = folder === 'docs/decisions' ? 'Decisions' : folder
  return { path: folderPath(folder), title, text: `# ${title}\n\n${lines.join('\n')}\n` }
}

export const filePages = (site: Site, read: (file: string) => string): readonly GeneratedPage[] => [
  ...site.folders.map((folder) => folderPage(folder, site)),
  ...site.files.map((file) => filePage(file, read)),
]

/** The README as the start page: its title, first paragraph and picture stand in the head. */
export function startPage(readme: string): string {
  const [, title = '', intro = ''] = /^# (.+)\n\n([\s\S]+?)\n\n/.exec(readme) ?? []
  const [image = '', alt = '', src = ''] = /!\[([^\]]*)\]\(([^)]+)\)\n\n/.exec(readme) ?? []
  const [tagline = '', ...more] = intro.replaceAll('\n', ' ').split(/(?<=\.) /)
  const head = {
    layout: 'home',
    title,
    titleTemplate: ':title: call signaling',
    hero: {
      name: title,
      text: tagline.replace(/\.$/, ''),
      tagline: more.join(' '),
      actions: [
        { theme: 'brand', text: 'Five minutes', link: '#two-commands' },
        { theme: 'alt', text: 'The rule book', link: '/protocol.md' },
        { theme: 'alt', text: 'REST API', link: '/reference/rest/index.md' },
      ],
      image: { src: `/${assetPath(src)}`, alt },
    },
  }
  const rest = readme.slice(readme.indexOf(intro) + intro.length).replace(image, '')
  return `---\n${JSON.stringify(head, null, 2)}\n---\n${rest}`
}
