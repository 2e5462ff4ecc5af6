// Installs what the lock file names, only with Node and npm, and only if something of it is missing. Every npm script goes
// through this file, so a fresh clone needs no step of its own. `npm start` needs no more than the service does; whatever
// else comes with the first script that needs it.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withLock } from './lock.mjs'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))
const modules = join(root, 'node_modules')
export const bun = join(modules, '.bin', 'bun')
/** npm's own record of what it installed. It is written last of all: an interrupted install has none, or an older one. */
const record = join(modules, '.package-lock.json')
/** There while packages are added to those of the service: their files may be there in part. */
const unfinished = join(modules, '.ringwire-unfinished')

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
 * Whether everything that the lock file names for this platform is there: `service` leaves out what develops and tests
 * it.
 */
function isInstalled(scope) {
  if (!existsSync(record) || existsSync(unfinished)) return false
  const installed = packagesOf(record)
  return Object.entries(packagesOf(join(root, 'package-lock.json'))).every(([path, wanted]) => {
    if (path === '' || (scope === 'service' && wanted.dev === true)) return true
    const found = installed[path]
    if (found === undefined) return wanted.optional === true
    const same = found.version === wanted.version && found.integrity === wanted.integrity
    return same && existsSync(join(root, path, 'package.json'))
  })
}

/** Whether what is there came with more than the service: who develops keeps that when the lock file changes. */
function hasTools() {
  return existsSync(record) && Object.values(packagesOf(record)).some(({ dev }) => dev === true)
}

function isBunRunnable() {
  return spawnSync(bun, ['--version']).status === 0
}

/** Runs npm: the one that runs this script where there is one. stdout stays the script's own. */
function npm(...args) {
  const all = [...args, '--no-audit', '--no-fund', '--loglevel=error']
  const stdio = ['inherit', 2, 2]
  const own = process.env.npm_execpath
  const code = own?.endsWith('npm-cli.js')
    ? run(process.execPath, [own, ...all], { stdio })
    : run('npm', all, { stdio })
  requireOk(code, `npm ${args[0]}`)
}

function install(scope) {
  if (scope === 'all' && isInstalled('service')) {
    // A service that runs keeps its files: what is missing is added, and nothing is taken away.
    console.error('Installing what develops and tests Ringwire (npm install) …')
    writeFileSync(unfinished, '')
    npm('install', '--no-save', '--include=dev')
    rmSync(unfinished)
  } else {
    console.error('Installing dependencies (npm ci) …')
    npm('ci', scope === 'service' && !hasTools() ? '--omit=dev' : '--include=dev')
  }
}

/**
 * Makes `node_modules` match the lock file and the pinned Bun runnable.
 * `scope` is `service`, what `npm start` needs, or `all`.
 */
export function setup(scope = 'all') {
  if (Number.parseInt(process.versions.node, 10) < 20) {
    console.error(`Node 20 or newer is needed; this is ${process.versions.node}.`)
    process.exit(1)
  }
  if (isInstalled(scope) && isBunRunnable()) return
  // Two npm scripts may be started at once: the second waits, and finds everything done.
  withLock(root, () => {
    if (!isInstalled(scope)) install(scope)
    // Some npm versions do not run install scripts; the one of `bun` puts its binary in place.
    if (!isBunRunnable()) {
      requireOk(run(process.execPath, ['install.js'], { cwd: join(modules, 'bun') }), 'Installing Bun')
    }
  })
}
