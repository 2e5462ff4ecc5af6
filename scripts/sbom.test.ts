import { expect, test } from 'bun:test'
import { type LockedPackages, lockedPackages, shipped } from './lock-file.ts'
import { createSbom, licenceProblems } from './sbom.ts'

const packages = lockedPackages()

test('what is shipped has licences of the list alone', () => {
  expect(licenceProblems(shipped(packages))).toEqual([])
})

test('a licence that is not on the list, and one that is missing, are named', () => {
  const planted: LockedPackages = {
    'packages/server': { name: 'ringwire', version: '1.0.0', license: 'MIT', dependencies: { a: '1', c: '1' } },
    'node_modules/a': { version: '1.0.0', license: 'GPL-3.0-only', optionalDependencies: { b: '2' } },
    'node_modules/a/node_modules/b': { version: '2.0.0' },
    'node_modules/b': { version: '1.0.0', license: 'MIT' },
    'node_modules/c': { version: '1.0.0', license: 'MIT' },
    'node_modules/only-tests-need-it': { version: '1.0.0', license: 'UNLICENSED' },
  }
  expect(licenceProblems(shipped(planted))).toEqual([
    'a 1.0.0: GPL-3.0-only is not on the list',
    'b 2.0.0: names no licence',
  ])
})

test('the SBOM has each package that is shipped, the runtime for every platform among them, and no other', () => {
  const { metadata, components, dependencies } = createSbom(shipped(packages))
  expect(metadata.component).toMatchObject({ name: 'ringwire', purl: `pkg:npm/ringwire@${metadata.component.version}` })
  const names = components.map(({ name }) => name)
  expect(names).toContain('bun')
  for (const name of ['@oven/bun-linux-x64', '@oven/bun-darwin-aarch64']) expect(names).toContain(name)
  for (const name of ['playwright-core', 'socket.io', 'react', 'typescript']) expect(names).not.toContain(name)
  for (const [name, version] of Object.entries(packages['packages/server']?.dependencies ?? {})) {
    expect(components.filter((it) => it.name === name && it.version === version)).toHaveLength(1)
  }
  // Every needed package is there, and every package from a registry has the hash that npm checks.
  const references = new Set([metadata.component['bom-ref'], ...components.map((it) => it['bom-ref'])])
  expect(references.size).toBe(components.length + 1)
  for (const { ref, dependsOn } of dependencies) {
    for (const it of [ref, ...dependsOn]) expect(references).toContain(it)
  }
  for (const { name, hashes } of components) {
    if (name.startsWith('@ringwire/')) continue
    expect([name, hashes?.map(({ alg, content }) => [alg, content.length])]).toEqual([name, [['SHA-512', 128]]])
  }
})
