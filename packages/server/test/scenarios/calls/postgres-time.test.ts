import { startOnPostgres } from './composition.ts'
import { registerLosses } from './losses.ts'
import { registerRinging } from './ringing.ts'

const start = startOnPostgres()
registerRinging('PostgreSQL', start)
registerLosses('PostgreSQL', start)
