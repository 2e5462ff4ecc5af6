// `npm run pack`: the packages as npm would publish them, into packed/; `npm run pack -- FOLDER` into another folder.
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { withLock } from './lock.mjs'
import { root, run, setup } from './setup.mjs'

const packages = ['protocol', 'client', 'server-sdk', 'ui', 'demo', 'server']

const [folder, ...more] = process.argv.slice(2)
// npm runs scripts in the folder of package.json; a path is meant from where it was typed.
const target = folder === undefined ? join(root, 'packed') : resolve(process.env.INIT_CWD ?? '', folder)
mkdirSync(target, { recursive: true })
setup()
const workspaces = packages.flatMap((name) => ['--workspace', `packages/${name}`])
// What is built for a package stands in its folder meanwhile.
process.exit(
  withLock(join(root, 'packages'), () => run('npm', ['pack', ...workspaces, '--pack-destination', target, ...more])),
)
