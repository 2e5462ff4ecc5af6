// `npm test`: every test of every package; `npm test -- PATH…`: those whose path holds one of the words.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { bun, root, setup } from './setup.mjs'
import { requireSystem } from './system.mjs'
import { runFiles } from './test-files.mjs'

function findTests(filters) {
  const files = ['scripts', 'packages'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .map((file) => `${folder}/${file}`)
      .filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules/')),
  )
  const chosen = files.filter((file) => filters.length === 0 || filters.some((filter) => file.includes(filter)))
  // The long ones first, so that no core waits for one at the end.
  return chosen.sort((a, b) => Number(usesService(b)) - Number(usesService(a)) || (a < b ? -1 : 1))
}

/** Tests in a `test` folder run the service, a browser or a relay; the others need nothing but Bun. */
function usesService(file) {
  return /^packages\/[^/]+\/test\//.test(file)
}

/** Two browsers, media and a service take more than one core; so do many people on several nodes. */
function isHeavy(file) {
  return /^packages\/(demo\/test|client\/test\/(media|react|docs)|server\/test\/chaos)\//.test(file)
}

function finish({ passed, failed, failedFiles }) {
  if (failedFiles.length > 0) console.log(`\nFailed:\n${failedFiles.map((file) => `  ${file}`).join('\n')}`)
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed === 0 ? 0 : 1
}

setup()
const filters = process.argv.slice(2).map((filter) => filter.replace(/^\.\//, ''))
const files = findTests(filters)
if (files.length === 0) {
  console.log(`No test file matches ${filters.join(' ')}.`)
  finish({ passed: 0, failed: 1, failedFiles: [] })
} else {
  if (files.some(usesService)) requireSystem(['chromium', 'coturn', 'nginx', 'haproxy', 'postgresql', 'redis'])
  finish(await runFiles({ root, bun, files, isHeavy }))
}
