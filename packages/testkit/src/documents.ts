/**
 * The project's documents as tests read them: what stands between fences is run, compiled or compared, and never copied.
 *
 *   documents()                            → paths of all documents, from the root of the project
 *   blocks('docs/client.md')               → every fenced block, with the words that lead to it
 *   block('README.md', 'sh', 'Make a key') → the text of the first such block after these words
 *   writeApplication, checkTypes           → an application of blocks, beside the packages, and its types
 */
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const projectRoot = join(import.meta.dir, '..', '..', '..')

export interface Block {
  readonly language: string
  readonly text: string
  /** Of the line of its opening fence, from 1. */
  readonly line: number
}

/** The README files, those of the examples, and everything in docs/, generated pages included. */
export function documents(): readonly string[] {
  const under = (folder: string) =>
    readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`)
  const ofPackages = readdirSync(join(projectRoot, 'packages')).flatMap((name) =>
    readdirSync(join(projectRoot, 'packages', name)).map((file) => `packages/${name}/${file}`),
  )
  const ofExamples = readdirSync(join(projectRoot, 'examples')).map((name) => `examples/${name}/README.md`)
  const all = [
    'README.md',
    ...under('docs'),
    ...ofPackages,
    ...ofExamples.filter((file) => existsSync(join(projectRoot, file))),
  ]
  return all.filter((file) => file.endsWith('.md')).sort()
}

export function readDocument(path: string): string {
  return readFileSync(join(projectRoot, path), 'utf8')
}

/** A fence that is indented, as in a list, ends with the same indent. */
const fence = /^( *)```([\w-]*)\n([\s\S]*?)^\1```$/gm

/** Every block; or those after the first words, up to the next of the second ones. Fails where the page has no such words. */
export function blocks(path: string, after = '', before?: string): readonly Block[] {
  const page = readDocument(path)
  const from = page.indexOf(after)
  const to = before === undefined ? -1 : page.indexOf(before, from)
  if (from < 0) throw new Error(`${path} has no “${after}”`)
  const found = [...page.matchAll(fence)].filter(({ index }) => index >= from && (to < 0 || index < to))
  return found.map(({ 1: indent = '', 2: language = '', 3: text = '', index }) => ({
    language,
    text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
    line: page.slice(0, index).split('\n').length,
  }))
}

/** The text of the first block of that language after these words; fails where there is none, for a document may have changed. */
export function block(path: string, language: string, after: string): string {
  const found = blocks(path, after).find((it) => it.language === language)
  if (found === undefined) throw new Error(`${path} has no ${language} after “${after}”`)
  return found.text
}

/** Puts files where an application has them: beside a `node_modules` with the packages in it. */
export function writeApplication(directory: string, files: Readonly<Record<string, string>>): void {
  symlinkSync(join(projectRoot, 'node_modules'), join(directory, 'node_modules'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
}

/** What the compiler says of the application's files, with the settings that such an application has: nothing, if right. */
export async function checkTypes(directory: string): Promise<string> {
  const compilerOptions = {
    ...{
      target: 'esnext',
      module: 'preserve',
      moduleResolution: 'bundler',
      moduleDetection: 'force',
      jsx: 'react-jsx',
    },
    ...{ strict: true, noEmit: true, skipLibCheck: true, allowImportingTsExtensions: true, preserveSymlinks: true },
    lib: ['esnext', 'dom', 'dom.iterable'],
    types: ['bun'],
    // An unpacked package has no JavaScript: the packages' source is taken, as Bun does.
    customConditions: ['bun'],
  }
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts', '*.tsx'] }))
  const tsc = Bun.spawn([join(projectRoot, 'node_modules', '.bin', 'tsc'), '-p', directory], { stdout: 'pipe' })
  const said = await new Response(tsc.stdout).text()
  await tsc.exited
  return said
}
