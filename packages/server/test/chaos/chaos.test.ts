import { registerChaos } from './run-test.ts'

registerChaos('one process', { durationS: 20, nodes: 1, users: 30 })
