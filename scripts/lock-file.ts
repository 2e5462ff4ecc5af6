/**
 * The contents of package-lock.json.
 *
 *   lockedPackages()          → path → entry, as in the file
 *   places(from, name)        → where Node looks for a package, from the inside out
 *   shipped(packages)         → what somebody gets who installs a package of this repository
 */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

export interface LockedPackage {
  readonly name?: string
  readonly version?: string
  readonly integrity?: string
  readonly license?: string
  readonly link?: boolean
  /** Of a link: the folder of the workspace. */
  readonly resolved?: string
  readonly optional?: boolean
  readonly dependencies?: Record<string, string>
  readonly optionalDependencies?: Record<string, string>
}

export type LockedPackages = Readonly<Record<string, LockedPackage>>

/** Of the project, or of the folder that has a lock file of its own. */
export function lockedPackages(folder = ''): LockedPackages {
  return JSON.parse(readFileSync(join(dirname(import.meta.dir), folder, 'package-lock.json'), 'utf8')).packages
}

export function* places(from: string, name: string): Generator<string> {
  for (let folder = from; folder !== ''; folder = folder.replace(/(^|\/)[^/]*$/, '')) {
    if (!folder.endsWith('node_modules')) yield `${folder}/node_modules/${name}`
  }
  yield `node_modules/${name}`
}

export interface ShippedPackage {
  readonly path: string
  readonly name: string
  readonly entry: LockedPackage
  /** Whether it is this repository's own. */
  readonly isOwn: boolean
  /** Paths of what it needs. */
  readonly needs: readonly string[]
}

/** The packages that the service needs, for every platform; nothing that only builds or tests it. */
export function shipped(packages: LockedPackages, roots = ['packages/server']): ShippedPackage[] {
  const found = new Map<string, ShippedPackage>()
  const waiting = [...roots]
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (found.has(path)) continue
    const entry = packages[path]
    if (entry === undefined) throw new Error(`package-lock.json has no ${path}`)
    const names = Object.keys({ ...entry.dependencies, ...entry.optionalDependencies })
    const needs = names.map((name) => resolve(packages, path, name))
    const name = entry.name ?? path.replace(/^.*node_modules\//, '')
    found.set(path, { path, name, entry, isOwn: !path.includes('node_modules/'), needs })
    waiting.push(...needs)
  }
  return [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1))
}

function resolve(packages: LockedPackages, from: string, name: string): string {
  const place = [...places(from, name)].find((it) => it in packages)
  if (place === undefined) throw new Error(`package-lock.json has no ${name} for ${from}`)
  const { link, resolved } = packages[place] ?? {}
  return link && resolved !== undefined ? resolved : place
}
