import { registerProducts } from './busy.ts'
import { startTwoNodes } from './composition.ts'
import { registerGlare } from './glare.ts'
import { registerInvites } from './invites.ts'
import { registerLimits } from './limits.ts'
import { registerRedial } from './redial.ts'
import { registerRepeats } from './repeats.ts'

const start = startTwoNodes()
registerInvites('two nodes', start)
registerRepeats('two nodes', start)
registerGlare('two nodes', start)
registerRedial('two nodes', start)
registerProducts('two nodes', start)
registerLimits('two nodes', start)
