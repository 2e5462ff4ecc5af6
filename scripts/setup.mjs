// Installs what the lock file names, with Node and npm alone, and only where something of it is missing.
// Every npm script goes through this file, so a fresh clone needs no step of its own.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withLock } from './lock.mjs'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))
const modules = join(root, 'node_modules')
export const bun = join(modules, '.bin', 'bun')

/** Runs a command to its end and gives its exit code; a signal counts as a failure. */
export function run(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options })
  if (result.error) {
    console.error(`${command}: ${result.error.message}`)
    return 1
  }
  return result.status ?? 1
}

function requireOk(code, what) {
  if (code !== 0) {
    console.error(`${what} failed (exit code ${code}).`)
    process.exit(code)
  }
}

function packagesOf(path) {
  return JSON.parse(readFileSync(path, 'utf8')).packages
}

/**
 * Whether everything that the lock file names for this platform is there. npm writes its own record of what it
 * installed last of all, so an install that was interrupted has none, or an older one.
 */
function isInstalled() {
  const record = join(modules, '.package-lock.json')
  if (!existsSync(record)) return false
  const installed = packagesOf(record)
  return Object.entries(packagesOf(join(root, 'package-lock.json'))).every(([path, wanted]) => {
    if (path === '') return true
    const found = installed[path]
    if (found === undefined) return wanted.optional === true
    const same = found.version === wanted.version && found.integrity === wanted.integrity
    return same && existsSync(join(root, path, 'package.json'))
  })
}

function isBunRunnable() {
  return spawnSync(bun, ['--version']).status === 0
}

/** `npm ci`, by the npm that runs this script where there is one. */
function install() {
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
  const npm = process.env.npm_execpath
  return npm?.endsWith('npm-cli.js') ? run(process.execPath, [npm, ...args]) : run('npm', args)
}

/** Makes `node_modules` match the lock file and the pinned Bun runnable. */
export function setup() {
  if (Number.parseInt(process.versions.node, 10) < 20) {
    console.error(`Node 20 or newer is needed; this is ${process.versions.node}.`)
    process.exit(1)
  }
  if (isInstalled() && isBunRunnable()) return
  // Two npm scripts may be started at once: the second waits, and finds everything done.
  withLock(root, () => {
    if (!isInstalled()) {
      console.error('Installing dependencies (npm ci) …')
      requireOk(install(), 'npm ci')
    }
    // Some npm versions do not run install scripts; the one of `bun` puts its binary in place.
    if (!isBunRunnable()) {
      requireOk(run(process.execPath, ['install.js'], { cwd: join(modules, 'bun') }), 'Installing Bun')
    }
  })
}
