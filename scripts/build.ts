// `npm run build`: the service as one executable, with all that it needs: dist/ringwire. `npm run build -- FILE` names another.
import { resolve } from 'node:path'
import * as demo from '../packages/demo/src/backend/page-files.ts'
import * as operators from '../packages/server/src/operators/page-files.ts'

const root = resolve(import.meta.dir, '..')
const outfile = resolve(process.env.INIT_CWD ?? root, process.argv[2] ?? `${root}/dist/ringwire`)
const service = 'packages/server'

/** Files that the service reads while it runs: they are found in it under the same names (package-root.ts). */
const assets = [`${service}/sql/*/*.sql`, `${service}/src/stores/redis/lua/*.lua`].flatMap((pattern) =>
  [...new Bun.Glob(pattern).scanSync({ cwd: root })].sort(),
)

for (const name of Object.keys(demo.pageFiles) as demo.PageFile[])
  await addAsset(demo.builtFile(name), await demo.makePageFile(name))
for (const name of Object.keys(operators.pageFiles) as operators.PageFile[])
  await addAsset(operators.builtFile(name), await operators.makePageFile(name))

/** A file that is made first. */
async function addAsset(file: string, text: string): Promise<void> {
  await Bun.write(resolve(root, file), text)
  assets.push(file)
}

const { success, logs } = await Bun.build({
  root,
  // The first is what runs; the second is started as a thread.
  entrypoints: [`${service}/src/executable.ts`, `${service}/src/stores/sqlite/write-worker.ts`, ...assets].map((file) =>
    resolve(root, file),
  ),
  loader: { '.sql': 'file', '.lua': 'file', '.page': 'file' },
  naming: { asset: '[dir]/[name].[ext]' },
  target: 'bun',
  minify: { whitespace: true, syntax: true },
  format: 'esm',
  bytecode: true,
  // The process begins twice (executable.ts): the first time it reads a small part of itself.
  splitting: true,
  compile: { outfile },
})
for (const log of logs) console.error(log)
if (!success) process.exit(1)
console.log(`${outfile}: ${(Bun.file(outfile).size / 1e6).toFixed(0)} MB`)
