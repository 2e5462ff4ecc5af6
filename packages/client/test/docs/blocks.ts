import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** What is not packed has no JavaScript: the packages' source is taken, as Bun does. */
export const fromSource = ['bun']

const root = join(import.meta.dir, '..', '..', '..', '..')

/** The first code of that language after the words. */
function codeAfter(file: string, language: string, words: string): string {
  const page = readFileSync(join(root, file), 'utf8')
  const start = page.indexOf(`\`\`\`${language}\n`, page.indexOf(words))
  const from = start + language.length + 4
  return page.slice(from, page.indexOf('\n```', from) + 1)
}

export const block = (language: string, heading: string) => codeAfter('docs/client.md', language, `\n## ${heading}\n`)
export const readmePhone = () => codeAfter('README.md', 'js', 'this is a whole phone')

/** Puts files where an application has them: beside a `node_modules` with the packages in it. */
export function writeApplication(directory: string, files: Record<string, string>): void {
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
}

export async function bundle(file: string, target: 'browser' | 'node'): Promise<string> {
  const { outputs } = await Bun.build({ entrypoints: [file], target, minify: true, conditions: fromSource })
  return outputs[0]!.text()
}

/** Types of the application's files, with the settings that such an application has. */
export async function checkTypes(directory: string): Promise<string> {
  const compilerOptions = {
    ...{ target: 'esnext', module: 'preserve', moduleResolution: 'bundler', jsx: 'react-jsx', strict: true },
    ...{ noEmit: true, skipLibCheck: true, allowImportingTsExtensions: true, preserveSymlinks: true },
    lib: ['esnext', 'dom', 'dom.iterable'],
    types: ['bun'],
    customConditions: fromSource,
  }
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts', '*.tsx'] }))
  const tsc = Bun.spawn([join(root, 'node_modules', '.bin', 'tsc'), '-p', directory], { stdout: 'pipe' })
  const said = await new Response(tsc.stdout).text()
  await tsc.exited
  return said
}
