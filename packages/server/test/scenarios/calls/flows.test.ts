import { registerCallStates } from './call-states.ts'
import { startEmbedded } from './composition.ts'
import { registerHangingUp } from './hanging-up.ts'
import { registerInterfaceEvents } from './interface-events.ts'
import { registerRaces } from './races.ts'
import { registerRelay } from './relay.ts'

registerInterfaceEvents('embedded', startEmbedded)
registerCallStates('embedded', startEmbedded)
registerHangingUp('embedded', startEmbedded)
registerRelay('embedded', startEmbedded)
registerRaces('embedded', startEmbedded)
