import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

interface LockedPackage {
  readonly link?: boolean
  readonly dependencies?: Record<string, string>
  readonly optionalDependencies?: Record<string, string>
}

/** Every place where Node looks for a package, from the inside out. */
function* places(from: string, name: string): Generator<string> {
  for (let folder = from; folder !== ''; folder = folder.replace(/(^|\/)[^/]*$/, '')) {
    if (!folder.endsWith('node_modules')) yield `${folder}/node_modules/${name}`
  }
  yield `node_modules/${name}`
}

test('the lock file names everything that its packages need, for every platform: else npm ci refuses it', () => {
  const file = join(dirname(import.meta.dir), 'package-lock.json')
  const packages: Record<string, LockedPackage> = JSON.parse(readFileSync(file, 'utf8')).packages
  const missing = Object.entries(packages).flatMap(([path, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies })
      .filter((name) => ![...places(path, name)].some((place) => place in packages))
      .map((name) => `${name}, for ${path}`),
  )
  expect(missing).toEqual([])
})
