import { registerChaos } from './run-test.ts'

registerChaos('one process with its own file', { durationS: 20, nodes: 1, store: 'sqlite', users: 30 })
