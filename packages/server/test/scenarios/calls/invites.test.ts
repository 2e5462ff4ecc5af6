import { registerProducts } from './busy.ts'
import { startEmbedded } from './composition.ts'
import { registerGlare } from './glare.ts'
import { registerInvites } from './invites.ts'
import { registerLimits } from './limits.ts'
import { registerRedial } from './redial.ts'
import { registerRepeats } from './repeats.ts'

registerInvites('embedded', startEmbedded)
registerRepeats('embedded', startEmbedded)
registerGlare('embedded', startEmbedded)
registerRedial('embedded', startEmbedded)
registerProducts('embedded', startEmbedded)
registerLimits('embedded', startEmbedded)
