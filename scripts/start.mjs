// `npm start`: the service with the demo page, on this machine only. Stop it with Ctrl-C.
import { join } from 'node:path'
import { launch, linksToNpm } from '../packages/server/bin/launch.mjs'
import { bun, root, setup } from './setup.mjs'

// The set-up may take minutes, and npm may be gone after it.
const links = linksToNpm()
setup('service')
process.chdir(root)
// The listener for operators is for one process.
const hasWorkers = 'RINGWIRE_WORKERS' in process.env || process.argv.some((word) => word.startsWith('--workers'))
launch({
  program: bun,
  main: join('packages', 'server', 'src', 'main.ts'),
  args: ['serve', ...process.argv.slice(2)],
  env: { RINGWIRE_DEMO: '1', ...(hasWorkers ? {} : { RINGWIRE_ADMIN_PORT: '0' }), ...process.env },
  links,
})
