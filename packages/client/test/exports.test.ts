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
    ...['.', './media', './media/preview', './media/types', './presence', './push', './react', './react-native'],
    ...['./take', './transfer', './types', './waiting'],
  ])
  for (const { bun, types, default: js } of Object.values(entries)) {
    expect([source(types), source(js)]).toEqual([join(folder, bun), join(folder, bun)])
    expect(existsSync(join(folder, bun))).toBe(true)
  }
})

test('the main entry is the same for those who do not read exports', async () => {
  for (const name of ['client', 'ui', 'server-sdk']) {
    const read = await Bun.file(join(folder, '..', name, 'package.json')).json()
    const { exports, main, types } = read as Manifest
    expect([name, exports['.']]).toMatchObject([name, { types, default: main }])
  }
})

interface Manifest {
  readonly exports: { readonly '.': { readonly types: string; readonly default: string } }
  readonly main: string
  readonly types: string
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
