import { afterAll, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import {
  type Block,
  block,
  blocks,
  checkTypes,
  documents,
  projectRoot,
  readDocument,
  writeApplication,
} from '@ringwire/testkit/documents'
import { makeTemporaryDirectory } from '@ringwire/testkit/process'

/* Every document: its links lead somewhere, and what stands between its fences is what it says that it is. Tests beside the
   parts run the commands and the phones; here nothing runs. */

const all = documents()
const directory = await makeTemporaryDirectory()
afterAll(() => directory.remove())

const blocksIn = (...languages: string[]): (Block & { readonly at: string })[] =>
  all.flatMap((document) =>
    blocks(document)
      .filter(({ language }) => languages.includes(language))
      .map((block) => ({ ...block, at: `${document}:${block.line}` })),
  )

/** A heading's anchor as GitHub makes it. */
function anchorsOf(document: string): readonly string[] {
  const text = readDocument(document).replaceAll(/^( *)```[\s\S]*?^\1```$/gm, '')
  const seen = new Map<string, number>()
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) => {
    const words = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const anchor = words.replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '').replaceAll(' ', '-')
    const times = seen.get(anchor) ?? 0
    seen.set(anchor, times + 1)
    return times === 0 ? anchor : `${anchor}-${times}`
  })
}

test('every link inside the project leads to a file, and to a heading of it', () => {
  const broken: string[] = []
  let links = 0
  for (const document of all) {
    const text = readDocument(document).replaceAll(/^( *)```[\s\S]*?^\1```$/gm, '')
    for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue
      links++
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? document : relative(projectRoot, join(projectRoot, dirname(document), path))
      if (!existsSync(join(projectRoot, file))) broken.push(`${document}: ${target}`)
      else if (anchor !== undefined && file.endsWith('.md') && !anchorsOf(file).includes(anchor)) {
        broken.push(`${document}: ${target}`)
      }
    }
  }
  expect(broken).toEqual([])
  expect(links).toBeGreaterThan(100)
})

test('every fence is closed', () => {
  const open = all.filter((document) => {
    const fences = readDocument(document).match(/^ *```.*$/gm) ?? []
    return fences.length !== 2 * blocks(document).length
  })
  expect(open).toEqual([])
})

test('TypeScript compiles under strict, as it stands', async () => {
  const found = blocksIn('ts', 'tsx').filter(({ at }) => !at.startsWith('docs/generated/'))
  const files = found.map(({ at, language, text }): [string, string] => [
    `${at.replaceAll(/\W/g, '_')}.${language}`,
    text,
  ])
  expect(files.length).toBeGreaterThan(3)
  // The page for Next.js names the file before it.
  const phone = block('packages/ui/README.md', 'tsx', '## In Next.js')
  writeApplication(directory.path, { ...Object.fromEntries(files), 'phone.tsx': phone })
  expect(await checkTypes(directory.path)).toBe('')
}, 240_000)

test('JavaScript can be read, and JSON is JSON', () => {
  const transpiler = new Bun.Transpiler({ loader: 'js' })
  for (const { at, text } of blocksIn('js')) expect(() => transpiler.scan(text), at).not.toThrow()
  for (const { at, text } of blocksIn('json')) expect(() => JSON.parse(text), at).not.toThrow()
})

test('a shell can read the commands', () => {
  const commands = blocksIn('sh')
  expect(commands.length).toBeGreaterThan(10)
  for (const { at, text } of commands) {
    const { exitCode, stderr } = Bun.spawnSync(['sh', '-n', '-c', text])
    expect({ at, exitCode, said: stderr.toString() }).toEqual({ at, exitCode: 0, said: '' })
  }
})

test('npm scripts that documents name are there', async () => {
  const { scripts } = await Bun.file(join(projectRoot, 'package.json')).json()
  const named = all.flatMap((document) =>
    [...readDocument(document).matchAll(/npm run ([\w:]+)/g)].map(([, name = '']) => name),
  )
  expect(named.length).toBeGreaterThan(5)
  for (const name of new Set(named)) expect(Object.keys(scripts)).toContain(name)
})

/** Blocks that tests take by `block(…)`, with the document named in place or by a constant of the test. */
function takenByTests(): ReadonlySet<string> {
  const listed = Bun.spawnSync(['git', 'ls-files', '*.test.ts'], { cwd: projectRoot }).stdout.toString().trim()
  const taken = new Set<string>()
  for (const file of listed.split('\n')) {
    const text = readFileSync(join(projectRoot, file), 'utf8')
    const names = new Map([...text.matchAll(/const (\w+) = '([^']+\.md)'/g)].map(([, name, path]) => [name, path]))
    for (const [, of = '', language = '', after = ''] of text.matchAll(/\bblock\(([^,()]+), '(\w+)', '([^']+)'\)/g)) {
      const document = of.startsWith("'") ? of.slice(1, -1) : names.get(of)
      if (document) taken.add(document + block(document, language, after))
    }
  }
  return taken
}

test('what README and guides tell a new user to run, a test runs', () => {
  const taken = takenByTests()
  const guides = all.filter((document) => document === 'README.md' || document.startsWith('docs/guide/'))
  const told = guides.flatMap((document) => blocks(document).map((it) => ({ ...it, document })))
  expect(told.length).toBeGreaterThan(15)
  const left = told.filter(({ document, text }) => !taken.has(document + text))
  // Without a test of its own: scripts/start.mjs, which the README has as `npm start` too.
  expect(left.map(({ document, text }) => `${document}: ${text}`)).toEqual([
    'docs/guide/app-developers.md: npm start\n',
  ])
})
