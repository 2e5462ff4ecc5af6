import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { lockedPackages, places } from './lock-file.ts'

const lockFiles = {
  'package-lock.json': lockedPackages(),
  'site/package-lock.json': lockedPackages('site'),
  'examples/react-native/package-lock.json': lockedPackages('examples/react-native'),
}

for (const [file, packages] of Object.entries(lockFiles)) {
  test(`${file} names everything that its packages need, for every platform: else npm ci refuses it`, () => {
    const missing = Object.entries(packages).flatMap(([path, { dependencies, optionalDependencies }]) =>
      Object.keys({ ...dependencies, ...optionalDependencies })
        .filter((name) => ![...places(path, name)].some((place) => place in packages))
        .map((name) => `${name}, for ${path}`),
    )
    expect(missing).toEqual([])
  })

  test(`${file} names no registry, and every package has the hash that npm checks`, () => {
    const entries = Object.entries(packages).filter(([path, { link }]) => path.includes('node_modules/') && !link)
    expect(entries.length).toBeGreaterThan(100)
    const wrong = entries.filter(([, { resolved, integrity }]) => resolved !== undefined || !integrity)
    expect(wrong.map(([path]) => path)).toEqual([])
  })
}

test('what the site is built with has one version each', () => {
  const { devDependencies } = JSON.parse(readFileSync(join(dirname(import.meta.dir), 'site/package.json'), 'utf8'))
  const ranges = Object.values<string>(devDependencies).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))
  expect(ranges).toEqual([])
})
