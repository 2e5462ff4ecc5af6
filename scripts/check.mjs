// `npm run check`: format, lint with the import rules, types, and generated documents up to date.
import { join } from 'node:path'
import { bun, root, run, setup } from './setup.mjs'

setup()
const bin = (name) => join(root, 'node_modules', '.bin', name)
const steps = [
  [
    'format and lint',
    bin('biome'),
    ['ci', '--error-on-warnings', ...(process.stdout.isTTY ? [] : ['--colors=off']), '.'],
  ],
  ['types', bin('tsc'), ['--noEmit', '-p', 'tsconfig.json']],
  ['generated documents', bun, ['scripts/generate.ts', '--check']],
]
let failed = 0
for (const [name, command, args] of steps) {
  const code = run(command, args)
  console.log(`${code === 0 ? 'ok  ' : 'FAIL'} ${name}`)
  if (code !== 0) failed++
}
process.exit(failed === 0 ? 0 : 1)
