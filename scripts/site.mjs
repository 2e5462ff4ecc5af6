// `npm run docs`: the documents as a site, into site/dist/. What builds it has a lock file of its own (site/), and is
// installed here, so that nobody else has to.
//
//   npm run docs                        build
//   npm run docs -- --serve             build, and show it on this machine; --port 8081
//   npm run docs -- --base /ringwire/   for a server that has the site below this path
//   npm run docs -- --out FOLDER        another folder
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { withLock } from './lock.mjs'
import { bun, root, run, setup } from './setup.mjs'

const site = join(root, 'site')

const { values } = parseArgs({
  options: {
    base: { type: 'string', default: '/' },
    out: { type: 'string' },
    serve: { type: 'boolean', default: false },
    port: { type: 'string', default: '8081' },
  },
})
const base = `/${values.base}/`.replaceAll(/\/+/g, '/')
// npm runs scripts in the folder of package.json; a path is meant from where it was typed.
const out = values.out === undefined ? join(site, 'dist') : resolve(process.env.INIT_CWD ?? '', values.out)
/** npm's own record of what it installed; it has no entry for the folder itself. */
const record = join(site, 'node_modules', '.package-lock.json')

function isInstalled() {
  if (!existsSync(record)) return false
  const packagesOf = (file) => JSON.parse(readFileSync(file, 'utf8')).packages
  const installed = packagesOf(record)
  return Object.entries(packagesOf(join(site, 'package-lock.json'))).every(
    ([path, { integrity, optional }]) =>
      path === '' || (installed[path] === undefined ? optional : installed[path].integrity === integrity),
  )
}

function step(command, args) {
  const code = run(command, args, { cwd: site })
  if (code !== 0) process.exit(code)
}

setup('service')
// Two builds would write the same pages.
withLock(site, () => {
  if (!isInstalled()) step('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'])
  step(bun, ['src/prepare.ts'])
  const vitepress = join('node_modules', 'vitepress', 'bin', 'vitepress.js')
  step(process.execPath, [vitepress, 'build', '.', '--base', base, '--outDir', out])
  step(bun, ['src/finish.ts', out, base])
})
if (values.serve) serve()

/** Until a signal comes. Whatever kills this process: Bun notices, and ends. */
function serve() {
  const child = spawn(bun, ['--no-orphans', 'src/serve.ts', out, base, values.port], { cwd: site, stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code) => process.exit(code ?? 1))
}
