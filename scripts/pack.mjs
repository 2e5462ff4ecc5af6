// `npm run pack`: the packages as npm would publish them, into packed/; `npm run pack -- FOLDER` into another folder.
// Further arguments go to `npm pack`, whose answer is then printed as it is.
import { mkdirSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { withLock } from './lock.mjs'
import { root, run, setup } from './setup.mjs'

const packages = ['protocol', 'client', 'server-sdk', 'ui', 'demo', 'server', 'create-ringwire']

const [folder, ...more] = process.argv.slice(2)
// npm runs scripts in the folder of package.json; a path is meant from where it was typed.
const target = folder === undefined ? join(root, 'packed') : resolve(process.env.INIT_CWD ?? '', folder)
mkdirSync(target, { recursive: true })
setup()
const folders = packages.map((name) => `./packages/${name}`)
const isQuiet = more.length === 0
const quiet = isQuiet ? ['--silent'] : []
// The built files of a package stand in its folder meanwhile.
const code = withLock(join(root, 'packages'), () =>
  run('npm', ['pack', ...folders, '--pack-destination', target, ...quiet, ...more], {
    stdio: ['inherit', isQuiet ? 'ignore' : 'inherit', 'inherit'],
  }),
)
if (code === 0 && isQuiet) console.log(summary())
process.exit(code)

/** The packages' folder, and what to install for what, as it can be typed in any folder. */
function summary() {
  const near = relative(process.env.INIT_CWD ?? process.cwd(), target)
  const shown = near.startsWith('..') || near === '' ? target : near
  const names = (...some) => some.map((name) => `${shell(target)}/${name}-*.tgz`).join(' ')
  return `${packages.length} packages are in ${shown}. In the folder of your application:

  everything, also the service:  npm install ${shell(target)}/*.tgz
  the SDK:                       npm install ${names('ringwire-protocol', 'ringwire-client')}
  React components, and the SDK: npm install ${names('ringwire-protocol', 'ringwire-client', 'ringwire-ui')}
  the SDK for backends:          npm install ${names('ringwire-server-sdk')}

A new application, in any folder:

  npx --package ${shell(target)}/create-ringwire-*.tgz create-ringwire my-app --packages ${shell(target)}

docs/guide/app-developers.md goes on from there.`
}

/** As a shell reads it as one word, before a wildcard. */
function shell(path) {
  return /^[\w./:@%+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}
