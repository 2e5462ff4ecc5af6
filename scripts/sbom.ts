// `npm run sbom`: prints what is shipped as CycloneDX 1.5, from nothing but the lock file: no network, the same each time.
import { type LockedPackage, lockedPackages, type ShippedPackage, shipped } from './lock-file.ts'

/** Licences that what is shipped may have: those that ask for no more than their text. */
const allowedLicences = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT']

/** One line for each package whose licence is not allowed, or not known. */
export function licenceProblems(packages: readonly ShippedPackage[]): string[] {
  return packages
    .filter(({ entry }) => !allowedLicences.includes(entry.license ?? ''))
    .map(
      ({ name, entry }) =>
        `${name} ${entry.version}: ${entry.license === undefined ? 'names no licence' : `${entry.license} is not on the list`}`,
    )
}

export function createSbom(packages: readonly ShippedPackage[], rootPath = 'packages/server') {
  const references = new Map(packages.map((it) => [it.path, purl(it)]))
  const root = packages.find(({ path }) => path === rootPath)
  if (root === undefined) throw new Error(`${rootPath} is not shipped`)
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { component: { type: 'application', ...identity(root) } },
    components: packages.filter((it) => it !== root).map(component),
    dependencies: packages.map((it) => ({
      ref: purl(it),
      dependsOn: [...new Set(it.needs.map((path) => references.get(path) ?? path))].sort(),
    })),
  }
}

function component(shippedPackage: ShippedPackage) {
  const { entry } = shippedPackage
  return {
    type: 'library',
    ...identity(shippedPackage),
    scope: entry.optional ? 'optional' : 'required',
    ...(entry.integrity === undefined ? {} : { hashes: hashes(entry.integrity) }),
  }
}

function identity(shippedPackage: ShippedPackage) {
  const { name, entry } = shippedPackage
  const reference = purl(shippedPackage)
  return { 'bom-ref': reference, name, version: versionOf(entry), purl: reference, ...licences(entry) }
}

/** A licence by its SPDX id where it is one, else as the package says it. */
function licences({ license }: LockedPackage) {
  if (license === undefined) return {}
  return { licenses: [/^[\w.-]+$/.test(license) ? { license: { id: license } } : { expression: license }] }
}

/** `sha512-<base64>`, as the lock file has it. */
function hashes(integrity: string) {
  return integrity.split(' ').map((it) => ({
    alg: it.startsWith('sha512-') ? 'SHA-512' : 'SHA-1',
    content: Buffer.from(it.slice(it.indexOf('-') + 1), 'base64').toString('hex'),
  }))
}

function purl({ name, entry }: ShippedPackage): string {
  return `pkg:npm/${name.replace('@', '%40')}@${versionOf(entry)}`
}

function versionOf({ version }: LockedPackage): string {
  if (version === undefined) throw new Error('a package without a version')
  return version
}

if (import.meta.main) console.log(JSON.stringify(createSbom(shipped(lockedPackages())), null, 2))
