import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UsageError } from './arguments.mjs'
import { findPackages, manifest } from './packages.mjs'

const root = join(import.meta.dir, '..', '..', '..')
const read = (path: string) => JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8'))
const { version } = read('packages/create-ringwire')
const flavours = ['react', 'plain'] as const
const made = (flavour: (typeof flavours)[number], tarballs?: Record<string, string>) =>
  JSON.parse(manifest({ name: 'phone', flavour, version, tarballs }))

test('every package of Ringwire has the version of this one', () => {
  for (const name of ['client', 'server-sdk', 'ui', 'server', 'protocol', 'demo'])
    expect([name, read(`packages/${name}`).version]).toEqual([name, version])
})

test('an application asks for what it imports, in the versions that the examples and the components are tested with', () => {
  const quickstart = read('examples/quickstart').dependencies
  const { devDependencies } = read('packages/ui')
  for (const flavour of flavours) {
    const { dependencies, devDependencies: types = {} } = made(flavour)
    for (const [name, asked] of Object.entries(dependencies)) {
      const isOwn = /^(@ringwire\/|ringwire$)/.test(name)
      expect([name, asked]).toEqual([name, isOwn ? version : quickstart[name]])
    }
    for (const [name, asked] of Object.entries(types)) expect([name, asked]).toEqual([name, devDependencies[name]])
  }
  expect(Object.keys(made('plain').dependencies)).not.toContain('react')
})

test('tarballs are taken from a folder, what they need included; one that is not there is named', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ringwire-packages-'))
  try {
    for (const name of ['ringwire', 'ringwire-client', 'ringwire-demo', 'ringwire-protocol', 'ringwire-server-sdk'])
      writeFileSync(join(folder, `${name}-${version}.tgz`), '')
    writeFileSync(join(folder, 'ringwire-ui-0.0.1.tgz'), '')
    for (const flavour of flavours) {
      expect(() => findPackages(folder, flavour, version)).toThrow(UsageError)
      expect(() => findPackages(folder, flavour, version)).toThrow(`lacks ringwire-ui-${version}.tgz: npm run pack`)
    }
    writeFileSync(join(folder, `ringwire-ui-${version}.tgz`), '')
    for (const flavour of flavours) {
      const { dependencies } = made(flavour, findPackages(folder, flavour, version))
      for (const name of ['client', 'demo', 'protocol', 'server-sdk', 'ui'])
        expect(dependencies[`@ringwire/${name}`]).toBe(`file:${folder}/ringwire-${name}-${version}.tgz`)
      expect(dependencies.ringwire).toBe(`file:${folder}/ringwire-${version}.tgz`)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})
