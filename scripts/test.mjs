// `npm test`: the tests that a change needs; `npm run test:all`: these and the long ones; `npm test -- WORD…`: those
// whose name holds one of the words. The rest is done by Bun, after the set-up.
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { bun, root, setup } from './setup.mjs'

setup()
// Whatever kills this process: Bun notices, and ends with everything that it has started.
const args = ['--no-orphans', join('scripts', 'test', 'main.ts'), ...process.argv.slice(2)]
const child = spawn(bun, args, { cwd: root, stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('error', (error) => {
  console.error(`${bun}: ${error.message}`)
  process.exit(1)
})
child.on('exit', (code) => process.exit(code ?? 1))
