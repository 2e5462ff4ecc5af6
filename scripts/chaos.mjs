// `npm run chaos`: people who call without pause while nodes, PostgreSQL and Redis break, and a checker of what they saw.
import { bun, run, setup } from './setup.mjs'
import { requireSystem } from './system.mjs'

setup()
requireSystem(['postgresql', 'redis'])
process.exit(run(bun, ['packages/server/test/chaos/main.ts', ...process.argv.slice(2)]))
