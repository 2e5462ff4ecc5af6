// `npm start`: the service with the demo page, on this machine only. Stop it with Ctrl-C.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { bun, root, setup } from './setup.mjs'

setup()
const child = spawn(bun, [join('packages', 'server', 'src', 'main.ts'), 'serve', ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
  env: { RINGWIRE_DEMO: '1', ...process.env },
  // A group of its own: Ctrl-C reaches it once, through us, and not also from the terminal.
  detached: true,
})
let signalledAt = Number.NEGATIVE_INFINITY
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    // The terminal and npm both tell us of one Ctrl-C; a second one comes later.
    if (performance.now() - signalledAt < 300) return
    signalledAt = performance.now()
    child.kill(signal)
  })
}
child.on('error', (error) => {
  console.error(`${bun}: ${error.message}`)
  process.exit(1)
})
child.on('exit', (code, signal) => process.exit(code ?? (signal ? 1 : 0)))
