import { startOnPostgres } from './composition.ts'
import { registerRestart } from './restart.ts'

const start = startOnPostgres()
registerRestart('PostgreSQL', start)
