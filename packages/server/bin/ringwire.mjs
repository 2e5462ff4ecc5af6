#!/usr/bin/env node
// Starts Ringwire on the Bun that was installed with it. Needs nothing but Node.
import { spawn } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const main = join(dirname(dirname(fileURLToPath(import.meta.url))), 'src', 'main.ts')
const args = [main, ...process.argv.slice(2)]

function fail(message) {
  console.error(message)
  process.exit(1)
}

function findBun() {
  let description
  try {
    description = createRequire(import.meta.url).resolve('bun/package.json')
  } catch {
    return fail('The package "bun" is missing: install Ringwire again with npm.')
  }
  const directory = dirname(description)
  const { bin } = JSON.parse(readFileSync(description, 'utf8'))
  const program = join(directory, bin.bun)
  // Until its install script has run, the package holds a short text in the place of the program.
  const size = statSync(program, { throwIfNoEntry: false })?.size ?? 0
  if (size < 1_000_000) {
    return fail(`Bun is not set up, because its install script did not run. Run: node ${join(directory, 'install.js')}`)
  }
  return program
}

/** Becomes Bun where Node can: one process, so that signals and the exit code are Bun's own. */
function become(program) {
  if (typeof process.execve !== 'function') return
  // It is an experiment in Node; the warning would only puzzle.
  process.removeAllListeners('warning')
  try {
    process.execve(program, [program, ...args], process.env)
  } catch {
    // Then as a child.
  }
}

function runAsChild(program) {
  const child = spawn(program, args, { stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => fail(`Bun could not be started: ${error.message}`))
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)))
}

const bun = findBun()
become(bun)
runAsChild(bun)
