import { startOnPostgres } from './composition.ts'
import { registerMixed } from './mixed.ts'

const start = startOnPostgres()
registerMixed('PostgreSQL', start)
