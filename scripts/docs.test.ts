import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

const root = dirname(import.meta.dir)
const written = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md') && !name.startsWith('generated'))
  .map((name) => join('docs', name))
const documents = ['README.md', 'SECURITY.md', ...written]

interface Named {
  readonly file: string
  readonly tests: readonly string[]
}

/** Links to files of tests, as `[name.ts](path) “a test”, “another one”`, their paths from the root of the repository. */
function namedIn(document: string, text: string): Named[] {
  const links = text.matchAll(/\]\((?!https?:)([^)#\s]+\.ts)\)((?:,? “[^”]+”)*)/g)
  return [...links].map(([, path = '', names = '']) => ({
    file: normalize(join(dirname(document), path)),
    tests: [...names.matchAll(/“([^”]+)”/g)].map(([, name = '']) => name),
  }))
}

/** What tests are called in a file: a title that is put together matches whatever its parts are. */
function titlesIn(text: string): RegExp[] {
  const calls = text.matchAll(/\b(?:test|scenario)(?:\.\w+)?\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g)
  return [...calls].map(([, , title = '']) => {
    const parts = title.replaceAll(/\\(.)/g, '$1').split(/\$\{[^}]*\}/)
    return new RegExp(`^${parts.map((part) => RegExp.escape(part)).join('.+')}$`)
  })
}

function wrongIn(document: string, text: string): string[] {
  return namedIn(document, text).flatMap(({ file, tests }) => {
    if (!existsSync(join(root, file))) return [`${document}: no file ${file}`]
    const titles = titlesIn(readFileSync(join(root, file), 'utf8'))
    return tests
      .filter((name) => !titles.some((title) => title.test(name)))
      .map((name) => `${document}: no “${name}” in ${file}`)
  })
}

test('every file and test that a document links to is there', () => {
  const texts = documents.map((document) => [document, readFileSync(join(root, document), 'utf8')] as const)
  expect(texts.flatMap(([document, text]) => wrongIn(document, text))).toEqual([])
  // If nothing was found, nothing was compared.
  const compared = texts.flatMap(([document, text]) => namedIn(document, text)).flatMap(({ tests }) => tests)
  expect(compared.length).toBeGreaterThan(50)
})

test('a file that is gone and a test that is called otherwise are named', () => {
  const link = '[a](../scripts/docs.test.ts) “a file that is gone and a test that is called otherwise are named”'
  expect(wrongIn('docs/x.md', link)).toEqual([])
  expect(wrongIn('docs/x.md', `${link}, “a file that is gone”`)).toEqual([
    'docs/x.md: no “a file that is gone” in scripts/docs.test.ts',
  ])
  expect(wrongIn('docs/x.md', '[a](../scripts/gone.test.ts)')).toEqual(['docs/x.md: no file scripts/gone.test.ts'])
})
