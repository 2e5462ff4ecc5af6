import { startTwoNodes } from '../calls/composition.ts'
import { registerNetworkChangeScenarios } from './network-change.ts'
import { registerPlaceScenarios } from './places.ts'

const start = startTwoNodes({})
registerPlaceScenarios('two nodes', start)
registerNetworkChangeScenarios('two nodes', start)
