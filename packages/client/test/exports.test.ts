import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../package.json'

/* What applications may import: no test hooks, and no file that is nobody's business. */

const folder = join(import.meta.dir, '..')
const source = (entry: string) => join(folder, entry.replace('./dist/', './src/').replace(/(\.d)?\.(ts|js)$/, '.ts'))

test('the exports are named one by one, and each way to resolve one leads to the same source', () => {
  const { './package.json': _, ...entries } = manifest.exports
  expect(Object.keys(entries)).toEqual([
    ...['.', './media', './media/preview', './media/types', './presence', './push', './react', './types'],
  ])
  for (const { bun, types, default: js } of Object.values(entries)) {
    expect([source(types), source(js)]).toEqual([join(folder, bun), join(folder, bun)])
    expect(existsSync(join(folder, bun))).toBe(true)
  }
})

test('TypeScript that does not read exports finds the same declarations', async () => {
  for (const name of ['protocol', 'client', 'ui', 'server-sdk']) {
    const read = await Bun.file(join(folder, '..', name, 'package.json')).json()
    const { exports, main, types, typesVersions = { '*': {} } } = read as Manifest
    const found = Object.entries(exports).flatMap(([path, entry]) => {
      if (typeof entry === 'string') return []
      return path === '.' ? [[path, types, main]] : [[path, `./${typesVersions['*'][path.slice(2)]}`, entry.default]]
    })
    const meant = Object.entries(exports).flatMap(([path, entry]) =>
      typeof entry === 'string' ? [] : [[path, entry.types, entry.default]],
    )
    expect([name, found]).toEqual([name, meant])
  }
})

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly types: string; readonly default: string }>>
  readonly main?: string
  readonly types?: string
  readonly typesVersions?: { readonly '*': Readonly<Record<string, readonly string[]>> }
}

test('the client comes with its error class and codes, and without what tests take', async () => {
  const client = await import('../src/ringwire.ts')
  expect(Object.keys(client).sort()).toEqual(['RingwireError', 'clientErrorCodes', 'createCallClient', 'ownReasons'])
  const media = await import('../src/media/call-media.ts')
  expect(Object.keys(media).sort()).toEqual(['MediaError', 'createCallMedia'])
  const codes = await import('../src/media/types.ts')
  expect(Object.keys(codes).sort()).toEqual(['MediaError', 'mediaErrorCodes'])
})

test('hooks are for the browser’s part of a React application', async () => {
  expect(await Bun.file(join(folder, 'src/react/hooks.ts')).text()).toStartWith("'use client'\n")
})
