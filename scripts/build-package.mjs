// What npm gets beside the source of a package: JavaScript and declarations in `dist`, for those who do not read
// TypeScript. Run by `npm pack` and `npm publish`; `clean` takes it away again.
import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './setup.mjs'

const packages = ['protocol', 'client', 'ui']
/** For backends: it names no other package, and Node. */
const alone = ['server-sdk']

function build(name) {
  const folder = join(root, 'packages', name)
  const config = join(folder, 'tsconfig.dist.json')
  rmSync(join(folder, 'dist'), { recursive: true, force: true })
  writeFileSync(
    config,
    JSON.stringify({
      extends: '../../tsconfig.json',
      compilerOptions: {
        noEmit: false,
        declaration: true,
        rewriteRelativeImportExtensions: true,
        rootDir: 'src',
        outDir: 'dist',
        // The other package as its users see it, and not its source.
        paths: {},
        types: alone.includes(name) ? ['node'] : [],
      },
      include: ['src'],
      exclude: ['src/**/*.test.ts'],
    }),
  )
  try {
    const tsc = join(root, 'node_modules', '.bin', 'tsc')
    // Nothing but the file's own name goes to stdout: that is the answer of `npm pack --json`.
    const { status } = spawnSync(tsc, ['-p', config], { stdio: ['ignore', 2, 2] })
    if (status !== 0) process.exit(1)
  } finally {
    rmSync(config)
  }
}

const [name] = process.argv.slice(2)
if (name === 'clean')
  for (const each of [...packages, ...alone])
    rmSync(join(root, 'packages', each, 'dist'), { recursive: true, force: true })
else if (alone.includes(name)) build(name)
else {
  // The declarations of one name those of the packages before it.
  for (const each of packages.slice(0, packages.indexOf(name) + 1)) build(each)
}
