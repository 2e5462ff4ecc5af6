import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { blocks } from '@ringwire/testkit/documents'
import { installCommands, run, shell } from './commands.ts'

/* What is packed, in the tools of others: those that do not read `exports`, and Next.js. */

const root = new URL('../../../..', import.meta.url).pathname
const work = mkdtempSync(join(tmpdir(), 'ringwire-tools-'))
const packages = ['protocol', 'client', 'ui']
/** It is only for Node and Bun, which read `exports`. */
const backend = 'server-sdk'
const tools = {
  // Of Jest before 28.
  resolve: '1.22.14',
  // Of webpack 4.
  'enhanced-resolve': '4.5.0',
  // The last with `node10`.
  typescript: '5.9.3',
  ...{ next: '16.4.6', react: '19.3.1', 'react-dom': '19.3.1' },
  ...{ '@types/react': '19.3.0', '@types/node': '24.10.1' },
}

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>
}

/** What is imported, and the two files that are meant. */
interface Entry {
  readonly name: string
  readonly types: string
  readonly file: string
}

function entriesOf(name: string): readonly Entry[] {
  const folder = join(work, 'node_modules', '@ringwire', name)
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
  const named = Object.entries(exports).flatMap(([path, files]) => (typeof files === 'string' ? [] : [{ path, files }]))
  const all = named.flatMap(({ path, files }) =>
    path === './*' ? ['close-codes', 'events/call'].map((entry) => ({ path: `./${entry}`, files })) : [{ path, files }],
  )
  return all.map(({ path, files }) => {
    const meant = (file: string) => join(folder, file.replace('*', path.slice(2)))
    return { name: `@ringwire/${name}${path.slice(1)}`, types: meant(files.types), file: meant(files.default) }
  })
}

let entries: readonly Entry[] = []
beforeAll(async () => {
  const tarballs = join(work, 'tarballs')
  await shell(root, installCommands('client', tarballs)[0])
  const all = [...packages, backend]
  const dependencies = Object.fromEntries(all.map((name) => [`@ringwire/${name}`, `file:${tarballs}/${name}.tgz`]))
  for (const name of all) await shell(tarballs, `mv ringwire-${name}-*.tgz ${name}.tgz`)
  writeFileSync(
    join(work, 'package.json'),
    JSON.stringify({ private: true, dependencies: { ...dependencies, ...tools } }),
  )
  await run(work, ['npm', 'install', '--no-audit', '--no-fund'])
  entries = packages.flatMap(entriesOf)
}, 600_000)
afterAll(() => rmSync(work, { recursive: true, force: true }))

test('the resolvers of webpack 4 and of older Jest find the file of every entry', async () => {
  writeFileSync(
    join(work, 'find.cjs'),
    `const old = require('resolve')
const webpack = require('enhanced-resolve').create.sync({ mainFields: ['browser', 'module', 'main'] })
const names = ${JSON.stringify(entries.map(({ name }) => name))}
const found = names.map((name) => ({ name, old: old.sync(name, { basedir: __dirname }), webpack: webpack(__dirname, name) }))
console.log(JSON.stringify(found.map(({ name, old, webpack }) => [name, require('fs').readFileSync(old, 'utf8'), require('fs').readFileSync(webpack, 'utf8')])))
`,
  )
  const { out } = await run(work, ['node', 'find.cjs'])
  const meant = entries.map(({ name, file }) => {
    const text = readFileSync(file, 'utf8')
    return [name, text, text]
  })
  expect(meant.length).toBeGreaterThan(10)
  expect(JSON.parse(out)).toEqual(meant)
}, 240_000)

test('TypeScript that does not read `exports` finds the types of every entry', async () => {
  const imports = entries.map(({ name }) => `import '${name}'\n`).join('')
  writeFileSync(
    join(work, 'old.ts'),
    `${imports}
import { createCallMedia } from '@ringwire/client/media'
import { useCall } from '@ringwire/client/react'
import { shouldReconnect } from '@ringwire/protocol/close-codes'
import { CallStage } from '@ringwire/ui'
// @ts-expect-error: they are known
export const unknown: number[] = [createCallMedia, useCall, shouldReconnect, CallStage]
`,
  )
  const options = ['--strict', '--noEmit', '--noUncheckedSideEffectImports', '--target', 'es2022', '--types', 'react']
  const old = ['--module', 'commonjs', '--moduleResolution', 'node10', '--ignoreDeprecations', '5.0']
  await run(work, ['node', 'node_modules/typescript/bin/tsc', 'old.ts', ...options, ...old])
}, 240_000)

test('Next.js builds a page of the server with the components, as the README has it', async () => {
  mkdirSync(join(work, 'app', 'call-token'), { recursive: true })
  const [phone, page, route] = blocks('packages/ui/README.md', '## In Next.js', '## Components')
  writeFileSync(join(work, 'app', 'phone.tsx'), phone?.text ?? '')
  writeFileSync(join(work, 'app', 'page.tsx'), page?.text ?? '')
  writeFileSync(join(work, 'app', 'call-token', 'route.ts'), route?.text ?? '')
  writeFileSync(
    join(work, 'app', 'layout.tsx'),
    `export default ({ children }: { children: React.ReactNode }) => <html lang="en"><body>{children}</body></html>\n`,
  )
  const include = ['next-env.d.ts', 'app', '.next/types/**/*.ts']
  const compilerOptions = { strict: true, lib: ['dom', 'dom.iterable', 'esnext'], skipLibCheck: true, jsx: 'react-jsx' }
  const how = { ...compilerOptions, module: 'esnext', moduleResolution: 'bundler', noEmit: true, isolatedModules: true }
  writeFileSync(join(work, 'tsconfig.json'), JSON.stringify({ compilerOptions: how, include }))
  await run(work, ['npx', 'next', 'build'], { NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' })
  const html = readFileSync(join(work, '.next', 'server', 'app', 'index.html'), 'utf8')
  expect(html).toContain('Nobody calls.')
  expect(html).toContain('rw-stage')
}, 600_000)
