import { registerCallStates } from './call-states.ts'
import { startTwoNodes } from './composition.ts'
import { registerHangingUp } from './hanging-up.ts'
import { registerInterfaceEvents } from './interface-events.ts'
import { registerRaces } from './races.ts'
import { registerRelay } from './relay.ts'

const start = startTwoNodes()
registerInterfaceEvents('two nodes', start)
registerCallStates('two nodes', start)
registerHangingUp('two nodes', start)
registerRelay('two nodes', start)
registerRaces('two nodes', start)
