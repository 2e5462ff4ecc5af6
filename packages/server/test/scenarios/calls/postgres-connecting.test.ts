import { startOnPostgres } from './composition.ts'
import { registerConnecting } from './connecting.ts'
import { registerNotices } from './notices.ts'

const start = startOnPostgres()
registerNotices('PostgreSQL', start)
registerConnecting('PostgreSQL', start)
