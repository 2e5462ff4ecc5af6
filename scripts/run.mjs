// `node scripts/run.mjs TOOL ARGS…`: runs a tool of node_modules/.bin after the set-up.
import { join } from 'node:path'
import { root, run, setup } from './setup.mjs'

const [tool, ...args] = process.argv.slice(2)
setup()
process.exit(run(join(root, 'node_modules', '.bin', tool), args))
