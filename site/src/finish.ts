/** After VitePress: llms.txt, the documents as Markdown, and a check of all links. `finish.ts FOLDER BASE`. */
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { brokenLinks } from './check.ts'
import { asMarkdown, llmsText } from './llms.ts'
import { readSite } from './project.ts'

const [folder = '', base = '/'] = process.argv.slice(2)
const site = readSite()
for (const page of site.pages) {
  const file = join(folder, `${page.path}.md`)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, asMarkdown(site, page, base))
}
writeFileSync(join(folder, 'llms.txt'), llmsText(site, base))

const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
  statSync(join(folder, name)).isFile(),
)
const files = new Map(
  names.map((name) => [name, name.endsWith('.html') ? readFileSync(join(folder, name), 'utf8') : '']),
)
const broken = brokenLinks({ files, base })
for (const line of broken) console.error(line)
const pages = names.filter((name) => name.endsWith('.html')).length
console.log(`${pages} pages, ${broken.length} broken links`)
if (broken.length > 0) process.exitCode = 1
