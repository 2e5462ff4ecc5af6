import { registerProducts } from './busy.ts'
import { startOnPostgres } from './composition.ts'
import { registerGlare } from './glare.ts'
import { registerInvites } from './invites.ts'
import { registerLimits } from './limits.ts'
import { registerRedial } from './redial.ts'
import { registerRepeats } from './repeats.ts'

const start = startOnPostgres()
registerInvites('PostgreSQL', start)
registerRepeats('PostgreSQL', start)
registerGlare('PostgreSQL', start)
registerRedial('PostgreSQL', start)
registerProducts('PostgreSQL', start)
registerLimits('PostgreSQL', start)
