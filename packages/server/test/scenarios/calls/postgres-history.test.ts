import { startOnPostgres } from './composition.ts'
import { registerHistory } from './history.ts'

const start = startOnPostgres()
registerHistory('PostgreSQL', start)
