import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { withLock } from '../../../scripts/lock.mjs'

/* What the components add to an application that has React and the client already. */

const source = join(import.meta.dir, '..', 'src')
const gzipped = (text: string) => Bun.gzipSync(text, { level: 9 }).byteLength

async function bundle(file: string): Promise<string> {
  const { outputs } = await Bun.build({
    entrypoints: [resolve(source, file)],
    minify: true,
    define: { 'process.env.NODE_ENV': '"production"' },
    target: 'browser',
    external: ['react', 'react/*', '@ringwire/client', '@ringwire/client/*'],
  })
  return outputs[0]!.text()
}

test('the components are under 16.9 KB, minified and gzipped, and bring no dependency', async () => {
  const text = await bundle('ui.ts')
  const size = gzipped(text)
  console.log(`the components: ${text.length} bytes minified, ${size} gzipped`)
  expect(size).toBeLessThan(16_900)
  const imported = [...text.matchAll(/from\s*"([^"]+)"/g)].map(([, name]) => name)
  expect(imported.length).toBeGreaterThan(0)
  for (const name of imported) expect(name).toMatch(/^(react|@ringwire\/client)(\/|$)/)
})

test('a phone that transfers and takes no calls leaves these parts out, and is under 14.6 KB', async () => {
  const entry = join(import.meta.dir, 'support', 'plain-phone.ts')
  const text = await bundle(entry)
  console.log(`a plain phone: ${gzipped(text)} gzipped`)
  expect(gzipped(text)).toBeLessThan(14_600)
  expect(text).not.toMatch(/transfer-dialog|continue-here/)
})

test('the style sheet is under 3.5 KB, minified and gzipped', async () => {
  const size = gzipped(await bundle('ui.css'))
  console.log(`the style sheet: ${size} bytes gzipped`)
  expect(size).toBeLessThan(3500)
})

test('the style sheet styles no class that no component has', () => {
  const files = readdirSync(source).filter((file) => file.endsWith('.tsx') && !file.includes('.test.'))
  const code = files.map((file) => readFileSync(join(source, file), 'utf8')).join('\n')
  const names = (text: string, pattern: RegExp) => [...new Set([...text.matchAll(pattern)].map(([, name]) => name))]
  const used = names(code, /(?<![-\w])(rw-[a-z-]+)/g)
  const styled = names(readFileSync(join(source, 'ui.css'), 'utf8'), /\.(rw-[a-z-]+)/g)
  expect(styled.filter((name) => !used.includes(name))).toEqual([])
})

test('what npm gets says that the components are for the browser, so that a server component may import them', () => {
  const packages = join(source, '..', '..')
  const run = (...argv: string[]) =>
    expect(Bun.spawnSync(['node', join(packages, '..', 'scripts', 'build-package.mjs'), ...argv]).exitCode).toBe(0)
  // As `npm run pack` does it: what is built for a package stands in its folder meanwhile.
  const text = withLock(packages, () => {
    run('ui')
    const built = readFileSync(join(packages, 'ui', 'dist', 'ui.js'), 'utf8')
    run('clean')
    return built
  })
  // Nothing but comments may stand before a directive.
  expect(text.replace(/^\/\/.*\n/gm, '')).toStartWith("'use client'")
}, 240_000)
