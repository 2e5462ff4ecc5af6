/** Writes the pages for VitePress. The documents stay where they are: what is written here is made anew each time. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { filePages, references, startPage } from './contents.ts'
import { assetPath } from './pages.ts'
import { projectRoot, readProjectFile, readSite, stagedFolder } from './project.ts'

function write(path: string, text: string): void {
  const file = join(stagedFolder, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

const site = readSite()
rmSync(stagedFolder, { recursive: true, force: true })
for (const { path, text } of site.pages) write(`${path}.md`, path === 'index' ? startPage(text) : text)
for (const { path, text } of references(readProjectFile)) write(`${path}.md`, text)
for (const { path, text } of filePages(site, readProjectFile)) {
  write(`${path}.md`, `---\nsearch: false\noutline: false\neditLink: false\n---\n\n${text}`)
}
for (const file of site.assets) cpSync(join(projectRoot, file), join(stagedFolder, 'public', assetPath(file)))
cpSync(join(projectRoot, 'packages/demo/src/page/icon.svg'), join(stagedFolder, 'public', 'icon.svg'))
