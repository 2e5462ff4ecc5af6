import { registerCallStates } from './call-states.ts'
import { startNode } from './composition.ts'
import { registerHangingUp } from './hanging-up.ts'
import { registerInterfaceEvents } from './interface-events.ts'
import { registerRaces } from './races.ts'
import { registerRelay } from './relay.ts'

const start = startNode()
registerInterfaceEvents('one node', start)
registerCallStates('one node', start)
registerHangingUp('one node', start)
registerRelay('one node', start)
registerRaces('one node', start)
