// `npm run check`: format, lint with the import rules, types, generated documents up to date, and what the documents say of
// the code: their links, their examples, and the tests that they name.
import { join } from 'node:path'
import { bun, root, run, setup } from './setup.mjs'

setup()
const bin = (name) => join(root, 'node_modules', '.bin', name)
const fileTests = ['docs', 'documents', 'folders', 'imports'].map((name) => `./scripts/${name}.test.ts`)
const steps = [
  [
    'format and lint',
    bin('biome'),
    ['ci', '--error-on-warnings', ...(process.stdout.isTTY ? [] : ['--colors=off']), '.'],
  ],
  ['types', bin('tsc'), ['--noEmit', '-p', 'tsconfig.json']],
  ['generated documents', bun, ['scripts/generate.ts', '--check']],
  // The tests that need nothing but the files, and a moment: `npm test` has them, too.
  ['documents and imports', bun, ['test', '--only-failures', '--timeout=120000', ...fileTests]],
]
let failed = 0
for (const [name, command, args] of steps) {
  const code = run(command, args)
  console.log(`${code === 0 ? 'ok  ' : 'FAIL'} ${name}`)
  if (code !== 0) failed++
}
process.exit(failed === 0 ? 0 : 1)
