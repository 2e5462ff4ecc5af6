import { expect, test } from 'bun:test'
import { lockedPackages, places } from './lock-file.ts'

test('the lock file names everything that its packages need, for every platform: else npm ci refuses it', () => {
  const packages = lockedPackages()
  const missing = Object.entries(packages).flatMap(([path, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies })
      .filter((name) => ![...places(path, name)].some((place) => place in packages))
      .map((name) => `${name}, for ${path}`),
  )
  expect(missing).toEqual([])
})
