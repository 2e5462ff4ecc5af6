import { registerChaos } from './run-test.ts'

registerChaos('one process', { durationS: 20, nodes: 1, store: 'postgresql', users: 30, decides: true })
