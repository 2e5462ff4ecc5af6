import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'

/** Which folder of the service imports which, as the table in docs/architecture.md says: neither more nor less. */
const root = dirname(import.meta.dir)
const source = join(root, 'packages/server/src')

const folderOf = (file: string) => (file.includes('/') ? `${file.split('/')[0]}/` : 'a file of src/')

/** What is shipped; tests and fixtures import what they need. */
function importsOfFolders(): Record<string, string[]> {
  const found: Record<string, Set<string>> = {}
  const imports = /(?:^|\n)(?:import|export)\b[^'"]*?['"](\.[^'"]+\.ts)['"]|\bimport\(\s*['"](\.[^'"]+\.ts)['"]\s*\)/g
  for (const file of new Bun.Glob('*/**/*.ts').scanSync(source)) {
    if (/\.(test|fixture)\.ts$/.test(file)) continue
    const from = folderOf(file)
    found[from] ??= new Set()
    const text = readFileSync(join(source, file), 'utf8')
    for (const [, still, moving] of text.matchAll(imports)) {
      const to = folderOf(relative(source, join(source, dirname(file), still ?? moving ?? '')))
      if (to !== from) found[from].add(to)
    }
  }
  return Object.fromEntries(Object.entries(found).map(([folder, imported]) => [folder, [...imported].sort()]))
}

/** Rows of the table: in its order. */
function documented(): [string, string[]][] {
  const text = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  const table = /\n\| Folder \|.*\n\|[-|]+\n((?:\|.*\n)+)/.exec(text)?.[1] ?? ''
  return table
    .trim()
    .split('\n')
    .map((row) => {
      const [, folder = '', , imported = ''] = row.split('|')
      const names = (cell: string) => Array.from(cell.matchAll(/`([\w-]+\/)`/g), ([, name]) => name ?? '')
      return [names(folder)[0] ?? '', names(imported).sort()]
    })
}

test('the table of folders says who imports whom', () => {
  const rows = documented()
  expect(rows.length).toBeGreaterThan(20)
  expect(Object.fromEntries(rows)).toEqual(importsOfFolders())
})

test('no folder imports one of a later row, so they form no circle', () => {
  const order = documented().map(([folder]) => folder)
  const back = documented().flatMap(([folder, imported]) =>
    imported.filter((it) => order.indexOf(it) >= order.indexOf(folder)).map((it) => `${folder} imports ${it}`),
  )
  expect(back).toEqual([])
})

test('migrations are numbered from 1, each number once', () => {
  for (const store of ['sqlite', 'postgres']) {
    const files = [...new Bun.Glob('*.sql').scanSync(join(root, 'packages/server/sql', store))].sort()
    expect(files.map((file) => Number.parseInt(file, 10))).toEqual(files.map((_, index) => index + 1))
  }
})

test('a source file says at its head why it has more than 350 lines, if it has', () => {
  const folders = ['packages/*/src/**/*.{ts,tsx}', 'scripts/**/*.{ts,mjs}', 'site/src/**/*.ts']
  const files = folders
    .flatMap((pattern) => [...new Bun.Glob(pattern).scanSync(root)])
    .filter((file) => !file.includes('node_modules/') && !/\.test\.tsx?$/.test(file))
  expect(files.length).toBeGreaterThan(500)
  const wrong = files.filter((file) => {
    const lines = readFileSync(join(root, file), 'utf8').trimEnd().split('\n')
    return lines.length > 350 !== lines.slice(0, 12).some((line) => /^(\/\/| \*) Over 350 lines: /.test(line))
  })
  expect(wrong).toEqual([])
})
