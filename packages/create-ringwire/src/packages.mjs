/**
 * The package.json of a new application.
 *
 *   findPackages(folder, version)  → file name by package, of tarballs of this version; a UsageError names what is missing
 *   manifest({ … })                → the text of package.json
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { UsageError } from './arguments.mjs'

/** Of Ringwire: what an application of a flavour imports or runs. */
const direct = {
  react: ['@ringwire/client', '@ringwire/server-sdk', '@ringwire/ui', 'ringwire'],
  plain: ['@ringwire/client', '@ringwire/server-sdk', 'ringwire'],
}
/** Packages that these need: a registry finds them by itself, a folder of tarballs has to name them. */
const indirect = ['@ringwire/demo', '@ringwire/protocol', '@ringwire/ui']
const others = {
  react: { esbuild: '0.28.2', react: '19.3.1', 'react-dom': '19.3.1' },
  plain: { esbuild: '0.28.2' },
}
const forEditors = { react: { '@types/react': '19.3.0', '@types/react-dom': '19.3.0' }, plain: {} }

/** `@ringwire/client` is packed as ringwire-client-0.1.0.tgz. */
const tarballOf = (name, version) => `${name.replace('@', '').replace('/', '-')}-${version}.tgz`

export function findPackages(folder, flavour, version) {
  const files = [...new Set([...direct[flavour], ...indirect])].map((name) => [
    name,
    join(folder, tarballOf(name, version)),
  ])
  const missing = files.filter(([, file]) => !existsSync(file)).map(([name]) => tarballOf(name, version))
  if (missing.length > 0) throw new UsageError(`${folder} lacks ${missing.join(', ')}: npm run pack puts them there.`)
  return Object.fromEntries(files.map(([name, file]) => [name, `file:${file}`]))
}

/** `tarballs` is what `findPackages` gave; undefined where a registry has the packages. */
export function manifest({ name, flavour, version, tarballs }) {
  const own = tarballs ?? Object.fromEntries(direct[flavour].map((it) => [it, version]))
  const dependencies = Object.fromEntries(
    Object.entries({ ...own, ...others[flavour] }).sort(([a], [b]) => (a < b ? -1 : 1)),
  )
  const developing = Object.keys(forEditors[flavour]).length > 0 && { devDependencies: forEditors[flavour] }
  const all = {
    name,
    private: true,
    type: 'module',
    engines: { node: '>=20.12' },
    scripts: { start: 'node start.mjs' },
    dependencies,
    ...developing,
    // npm 11 runs the install scripts of these, and of nothing else.
    allowScripts: { bun: true, esbuild: true },
  }
  return `${JSON.stringify(all, null, 2)}\n`
}
