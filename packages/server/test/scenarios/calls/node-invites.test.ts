import { registerProducts } from './busy.ts'
import { startNode } from './composition.ts'
import { registerGlare } from './glare.ts'
import { registerInvites } from './invites.ts'
import { registerLimits } from './limits.ts'
import { registerRedial } from './redial.ts'
import { registerRepeats } from './repeats.ts'

const start = startNode()
registerInvites('one node', start)
registerRepeats('one node', start)
registerGlare('one node', start)
registerRedial('one node', start)
registerProducts('one node', start)
registerLimits('one node', start)
