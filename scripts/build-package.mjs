// The files that npm gets in addition to the source of a package: JavaScript and declarations in `dist`, for those who do
// not read TypeScript, and a folder for each entry, for those who do not read `exports`. Run by `npm pack` and
// `npm publish`; `clean` takes it away again.
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, posix } from 'node:path'
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
      exclude: ['src/**/*.test.ts', 'src/**/*.fixture.ts'],
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

/** The entries of a package beside its main one: what stands after its name in an import, and the files behind it. */
function entriesOf(folder) {
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  return Object.entries(exports).flatMap(([path, files]) => {
    if (path === '.' || typeof files === 'string') return []
    if (path !== './*') return [{ path: path.slice(2), ...files }]
    const sources = readdirSync(join(folder, 'src'), { recursive: true })
      .map((source) => source.replaceAll('\\', '/'))
      .filter((source) => /(?<!\.(?:test|fixture))\.ts$/.test(source))
    return sources.map((source) => {
      const path = source.slice(0, -3)
      return { path, types: files.types.replace('*', path), default: files.default.replace('*', path) }
    })
  })
}

/** A tool that looks for an entry as for a file of the package finds a folder that leads to it, or the style sheet itself. */
function place(folder) {
  for (const { path, types, default: file } of entriesOf(folder)) {
    // `clean` removes what is placed.
    if (['src', 'test', 'dist'].includes(path.split('/')[0]))
      throw new Error(`${folder}/${path} is no name for an entry`)
    if (file.endsWith('.css')) {
      copyFileSync(join(folder, file), join(folder, path))
      copyFileSync(join(folder, types), join(folder, `${path}.d.ts`))
    } else {
      const toRoot = posix.relative(path, '.')
      const manifest = { main: posix.join(toRoot, file), types: posix.join(toRoot, types), sideEffects: false }
      mkdirSync(join(folder, path), { recursive: true })
      writeFileSync(join(folder, path, 'package.json'), JSON.stringify(manifest))
    }
  }
}

function clean(name) {
  const folder = join(root, 'packages', name)
  for (const { path } of entriesOf(folder))
    for (const placed of [path.split('/')[0], `${path}.d.ts`])
      rmSync(join(folder, placed), { recursive: true, force: true })
  rmSync(join(folder, 'dist'), { recursive: true, force: true })
}

const [name] = process.argv.slice(2)
if (name === 'clean') for (const each of [...packages, ...alone]) clean(each)
else {
  // The declarations of one name those of the packages before it.
  const needed = alone.includes(name) ? [name] : packages.slice(0, packages.indexOf(name) + 1)
  for (const each of needed) build(each)
  place(join(root, 'packages', name))
}
