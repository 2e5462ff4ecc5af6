import { registerCallStates } from './call-states.ts'
import { startSharedCluster, startTwoNodes } from './composition.ts'
import { registerHangingUp } from './hanging-up.ts'
import { registerInterfaceEvents } from './interface-events.ts'
import { registerRaces } from './races.ts'
import { registerRelay } from './relay.ts'

const start = startTwoNodes(undefined, startSharedCluster)
registerInterfaceEvents('two nodes on a cluster', start)
registerCallStates('two nodes on a cluster', start)
registerHangingUp('two nodes on a cluster', start)
registerRelay('two nodes on a cluster', start)
registerRaces('two nodes on a cluster', start)
