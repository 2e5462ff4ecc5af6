// Installs what the lock file names, with Node and npm alone, and only when it is not there yet.
// Every npm script goes through this file, so a fresh clone needs no step of its own.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))
const installedMarker = join(root, 'node_modules', '.ringwire-lock.json')
const bunPackage = join(root, 'node_modules', 'bun')
export const bun = join(root, 'node_modules', '.bin', 'bun')

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

/** Makes `node_modules` match the lock file and the pinned Bun runnable. */
export function setup() {
  const lock = readFileSync(join(root, 'package-lock.json'), 'utf8')
  const installed = existsSync(installedMarker) ? readFileSync(installedMarker, 'utf8') : ''
  if (installed !== lock) {
    console.error('Installing dependencies (npm ci) …')
    requireOk(run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']), 'npm ci')
  }
  // Some npm versions do not run install scripts; the one of `bun` puts its binary in place.
  if (spawnSync(bun, ['--version']).status !== 0) {
    requireOk(run(process.execPath, ['install.js'], { cwd: bunPackage }), 'Installing Bun')
  }
  if (installed !== lock) writeFileSync(installedMarker, lock)
}
