// `npm start`: the service with the demo page, on this machine only. Stop it with Ctrl-C.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { bun, root, setup } from './setup.mjs'

setup()
const child = spawn(bun, [join('packages', 'server', 'src', 'main.ts'), 'serve', ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
  env: { RINGWIRE_DEMO: '1', ...process.env },
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.on('exit', (code, signal) => process.exit(code ?? (signal ? 1 : 0)))
