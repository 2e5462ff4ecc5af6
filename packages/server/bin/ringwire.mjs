#!/usr/bin/env node
// Starts Ringwire on the Bun that was installed with it. Needs nothing but Node.
import { readFileSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { launch, linksToNpm } from './launch.mjs'
import { runtimeSettings } from './runtime-settings.mjs'

const main = join(dirname(dirname(fileURLToPath(import.meta.url))), 'src', 'main.ts')
const args = process.argv.slice(2)

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

/** Becomes Bun if Node can: one process, so that its parent has the service itself. */
function become(program) {
  if (typeof process.execve !== 'function') return
  // It is an experiment in Node; the warning would only puzzle.
  process.removeAllListeners('warning')
  try {
    process.execve(program, [program, main, ...args], { ...runtimeSettings, ...process.env })
  } catch {
    // Then as a child.
  }
}

const program = findBun()
const links = linksToNpm()
if (links.length === 0) become(program)
launch({ program, main, args, links })
