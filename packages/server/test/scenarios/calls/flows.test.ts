import { registerCallStates } from './call-states.ts'
import { startEmbedded } from './composition.ts'
import { registerHangingUp } from './hanging-up.ts'
import { registerInterfaceEvents } from './interface-events.ts'

registerInterfaceEvents('embedded', startEmbedded)
registerCallStates('embedded', startEmbedded)
registerHangingUp('embedded', startEmbedded)
