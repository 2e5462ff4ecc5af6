import { registerCallStates } from './call-states.ts'
import { startOnPostgres } from './composition.ts'
import { registerHangingUp } from './hanging-up.ts'
import { registerInterfaceEvents } from './interface-events.ts'
import { registerRaces } from './races.ts'
import { registerRelay } from './relay.ts'

const start = startOnPostgres()
registerInterfaceEvents('PostgreSQL', start)
registerCallStates('PostgreSQL', start)
registerHangingUp('PostgreSQL', start)
registerRelay('PostgreSQL', start)
registerRaces('PostgreSQL', start)
