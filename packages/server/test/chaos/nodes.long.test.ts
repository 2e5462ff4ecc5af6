import { registerChaos } from './run-test.ts'

registerChaos('three nodes', { durationS: 60, nodes: 3, store: 'postgresql', users: 45 })
